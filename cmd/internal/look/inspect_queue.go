package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/layout"
)

const (
	QueueKind = "queue"
	// mostShown is how many claimed items are shown, and how many of the next.
	mostShown = 10
	// mostClaims is how many claimed items are looked at.
	mostClaims = 200
	// mostData is how much of an item is shown, in bytes.
	mostData = 40
	// TooOften is the number of deliveries from which an item counts as
	// poisoned.
	TooOften = 10
)

// QueueReport is what inspect shows of a queue.
type QueueReport struct {
	Items  int `json:"items"`   // including claimed ones
	InHand int `json:"in_hand"` // received, and not acknowledged yet
	// Consumers share the queue or wait. A lone consumer with enough to do is
	// not counted.
	Consumers int      `json:"consumers"`
	Dead      int      `json:"dead"`           // in the queue below, at dead
	Unseen    int      `json:"unacknowledged"` // dead letters that nobody has acknowledged
	Options   []string `json:"options"`        // of the consumers: what they do with items whose delivery failed
	// Oldest is the age in seconds of the oldest item that nobody has; 0: there
	// is none.
	Oldest float64      `json:"oldest"`
	First  []ItemReport `json:"first"` // some claimed items, and the next ones

	Put, Taken uint32    `json:"-"` // items so far; only differences count
	OldestPut  time.Time `json:"-"` // when the oldest item was put, of those that nobody has

	queue  *queue.Queue
	taken  []string                     // the names of the claimed items
	claims map[string]inspect.Contender // as far as they were read, by item name
	owners map[int64]string             // of the consumers' sessions
}

type ItemReport struct {
	Name       string  `json:"name"` // of its node
	Priority   int     `json:"priority"`
	Deliveries int     `json:"deliveries"`            // so far
	Age        float64 `json:"age"`                   // seconds since it was put
	Size       int     `json:"size"`                  // bytes
	Data       string  `json:"data"`                  // its beginning, for people to look at
	DataBase64 []byte  `json:"data_base64,omitempty"` // its beginning, if it is no text
	InHand     bool    `json:"in_hand"`
	Held       float64 `json:"held"`    // claimed: for so many seconds
	Session    string  `json:"session"` // claimed: of the consumer
	Orphan     bool    `json:"orphan"`  // claimed: by no session; the item will never come back by itself
	Heard              // claimed: of the consumer
	Owner      string  `json:"owner"`   // claimed: of the consumer, if known
	Revoked    bool    `json:"revoked"` // claimed: the consumer was asked to give it back

	PutAt     time.Time `json:"-"`
	HeldSince time.Time `json:"-"` // zero: it is not claimed, or that is not known
}

// inQueue finds out whether there is a queue at path, and returns its
// consumers.
func (r *Report) inQueue(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	if !slices.Contains(names, parts[QueueKind][0]) {
		return nil, nil
	}
	q, err := newQueueReport(client, string(path))
	if err != nil {
		return nil, err
	}
	items, taken, err := q.queue.Items(ctx)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	q.Items, q.InHand, q.taken = len(items), len(taken), taken
	r.is(QueueKind)
	r.Queue = q
	if stat, _, err := client.Exists(ctx, layout.QueueAt(client.Info().Dialect, string(path)).Entries); err == nil {
		q.Put, q.Taken = uint32(stat.Cversion+stat.Children)/2, uint32(stat.Cversion-stat.Children)/2
	}
	dead := layout.QueueAt(client.Info().Dialect, layout.QueueAt(client.Info().Dialect, string(path)).Dead)
	if stat, found, err := client.Exists(ctx, dead.Entries); err == nil && found {
		q.Dead, q.Unseen = int(stat.Children), int(stat.Children)
	}
	if q.Dead > 0 {
		if seen, err := q.queue.Acknowledged(ctx); err == nil {
			q.Unseen = max(0, q.Dead-len(seen))
		}
	}
	if err := q.look(ctx, taken[:min(len(taken), mostClaims)]); err != nil {
		return nil, err
	}
	consumers, err := q.queue.Consumers(ctx)
	if err != nil {
		return nil, err
	}
	q.Consumers = len(consumers)
	q.Options = []string{}
	for _, c := range consumers {
		q.owners[c.Session] = c.Owner
		if options := layout.OptionsOf(c.Name); options != "" && !slices.Contains(q.Options, options) {
			q.Options = append(q.Options, options)
		}
	}
	slices.Sort(q.Options)
	var shown [2][]string // claimed, and not
	for _, name := range items {
		which := 1
		if _, found := slices.BinarySearch(taken, name); found {
			which = 0
		}
		if len(shown[which]) < mostShown {
			shown[which] = append(shown[which], name)
		}
	}
	for _, names := range shown {
		first, err := q.queue.PeekAt(ctx, names...)
		if err != nil {
			return nil, err
		}
		for _, item := range first {
			q.First = append(q.First, q.item(item))
		}
	}
	return consumers, q.date(ctx, items)
}

// date finds out the age of the oldest item that nobody has: the item with the
// lowest number, whatever its priority.
func (q *QueueReport) date(ctx context.Context, items []string) error {
	number := func(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }
	oldest := ""
	for _, name := range items {
		if _, taken := slices.BinarySearch(q.taken, name); !taken && (oldest == "" || number(name) < number(oldest)) {
			oldest = name
		}
	}
	if oldest == "" {
		return nil
	}
	found, err := q.queue.PeekAt(ctx, oldest)
	for _, item := range found {
		q.Oldest, q.OldestPut = term.Seconds(max(0, time.Since(item.Put))), item.Put
	}
	return err
}

func newQueueReport(client *coord.Client, path string) (*QueueReport, error) {
	all, err := queue.New(client, path)
	return &QueueReport{
		queue: all, First: []ItemReport{}, claims: map[string]inspect.Contender{}, owners: map[int64]string{},
	}, err
}

// look reads the claims on items.
func (q *QueueReport) look(ctx context.Context, items []string) error {
	claims, err := q.queue.Claims(ctx, items...)
	for _, c := range claims {
		q.claims[c.Name] = c
	}
	return err
}

// orphans counts the items in the hand of no session.
func (q *QueueReport) orphans() (n int) {
	if q == nil {
		return 0
	}
	for _, claim := range q.claims {
		if !claim.Since.IsZero() && isNoSession(claim.Session) {
			n++
		}
	}
	return n
}

// often counts the shown items that were delivered TooOften or more.
func (q *QueueReport) often() (n int) {
	if q == nil {
		return 0
	}
	for _, item := range q.First {
		if item.Deliveries >= TooOften {
			n++
		}
	}
	return n
}

// unseen counts the dead letters that nobody has acknowledged.
func (q *QueueReport) unseen() int {
	if q == nil {
		return 0
	}
	return q.Unseen
}

// Claimants are the consumers that have an item, as contenders: all of them, or
// if node is not "", the ones that it names. It may name an item, a claim or a
// consumer.
func (q *QueueReport) Claimants(ctx context.Context, r Report, node string) (found []Contender, err error) {
	err = q.look(ctx, q.taken[min(len(q.taken), mostClaims):])
	session := "" // of the consumer that node names
	for _, c := range r.Contenders {
		if c.IsNamed(node) {
			session = c.Session
		}
	}
	entries := layout.QueueAt(coord.Curator, r.Path).Entries + "/"
	for _, name := range q.taken {
		claim, known := q.claims[name]
		c := r.contender(0, claim)
		if known && (node == "" || node == name || node == c.Node || node == entries+name || session == c.Session) {
			c.Owner, c.HeldFor = q.ownerOf(claim), c.Age
			found = append(found, c)
		}
	}
	return found, err
}

// Workers are the consumers that have these items.
func Workers(ctx context.Context, q *queue.Queue, taken []string) ([]Contender, error) {
	claims, err := q.Claims(ctx, taken...)
	all := []Contender{}
	for i, claim := range claims {
		c := (&Report{}).contender(i+1, claim)
		c.State, c.HeldFor = "works", c.Age
		all = append(all, c)
	}
	return all, err
}

// ownerOf is the consumer that has a claim, as the claim says, or else its
// session.
func (q *QueueReport) ownerOf(c inspect.Contender) string {
	return cmp.Or(c.Owner, q.owners[c.Session])
}

// place sets a consumer's state if it has an item.
func (q *QueueReport) place(c *Contender) {
	for _, claim := range q.claims {
		if SessionName(claim.Session) == c.Session {
			c.State = "works"
		}
	}
}

func (q *QueueReport) item(i queue.Peeked) ItemReport {
	item := ItemReport{
		Name: i.Name, Priority: i.Priority, Deliveries: i.Deliveries, Age: term.Seconds(max(0, time.Since(i.Put))),
		Size: len(i.Data), Data: Beginning(i.Data), DataBase64: term.NotText(i.Data), PutAt: i.Put,
	}
	item.DataBase64 = item.DataBase64[:min(len(item.DataBase64), mostData)]
	if claim, found := q.claims[i.Name]; found {
		item.InHand = true
		if !claim.Since.IsZero() { // else the claim may not be read
			item.Held, item.HeldSince = term.Seconds(max(0, time.Since(claim.Since))), claim.Since
			item.Session, item.Orphan = SessionName(claim.Session), isNoSession(claim.Session)
		}
		item.Owner, item.Revoked = q.ownerOf(claim), claim.Revoked
	}
	return item
}

// Beginning is the first mostData bytes of an item, for people.
func Beginning(data []byte) string {
	text := strings.ToValidUTF8(string(data), "�")
	if len(text) <= mostData {
		return text
	}
	for at := mostData; ; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at] + "…"
		}
	}
}

func (q *QueueReport) about(path string) string {
	about := fmt.Sprintf("queue of %s, %d in hand", term.Plural(q.Items, "item", "items"), q.InHand)
	if q.Consumers > 0 {
		about += "; " + term.Plural(q.Consumers, "consumer", "consumers")
	}
	if q.Dead > 0 {
		seen := ""
		if n := q.Dead - q.Unseen; n > 0 {
			seen = fmt.Sprintf(", %d acknowledged", n)
		}
		about += fmt.Sprintf("; %s%s (%s/dead)", term.Plural(q.Dead, "dead letter", "dead letters"), seen, path)
	}
	return about
}

func (q *QueueReport) table(to term.Page) {
	if len(q.First) > 0 {
		t := term.Table{Heads: []string{"ITEM", "DATA", "PRIORITY", "DELIVERED", "AGE", "IN HAND", "CONSUMER"}}
		for _, item := range q.First {
			inHand, consumer := "", ""
			if item.InHand {
				inHand, consumer = "for "+term.Age(item.Held), item.consumer()
				if item.Session == "" {
					inHand = "yes"
				}
			}
			t.Add("", term.Plain(item.Name), strconv.Quote(item.Data), strconv.Itoa(item.Priority),
				strconv.Itoa(item.Deliveries),
				term.Age(item.Age), inHand, consumer)
		}
		_ = t.Write(to)
	}
	if more := q.Items - len(q.First); more > 0 {
		fmt.Fprintf(to, "… and %d more\n", more)
	}
}

// consumer is who has the item.
func (i ItemReport) consumer() string {
	who := "session " + i.Session
	switch {
	case i.Owner != "":
		who = Contender{Owner: i.Owner}.Who()
	case i.Orphan:
		who = "no session"
	case i.Session == "":
		who = "unknown"
	}
	if i.Address != "" {
		who += " at " + term.Plain(i.Address)
	}
	if i.Revoked {
		who += ", asked to give it back"
	}
	if silence := i.Silence(); silence != "" {
		who += ", " + silence
	}
	return who
}
