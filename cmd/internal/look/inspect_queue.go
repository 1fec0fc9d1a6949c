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
)

const (
	QueueKind = "queue"
	// consumerKind is the kind of a queue's consumers.
	consumerKind string = "consumer"
	// mostShown is how many items in hand are shown, and how many of those that
	// come next.
	mostShown = 10
	// mostClaims is how many items in hand are looked at.
	mostClaims = 200
	// mostData is how much of an item is shown.
	mostData = 40
	// TooOften is how often an item is delivered before it is odd that it is
	// still there.
	TooOften = 10
)

// QueueReport is what inspect tells about a queue.
type QueueReport struct {
	Items     int          `json:"items"`     // those in hand counted
	InHand    int          `json:"in_hand"`   // received, and not acknowledged yet
	Consumers int          `json:"consumers"` // that share the queue or wait; one alone that has enough to do is not counted
	Dead      int          `json:"dead"`      // in the queue below, at dead
	First     []ItemReport `json:"first"`     // some in hand, and those that come next

	taken  []string         // the names of the items in hand
	claims map[string]claim // of those that were looked at
	owners map[int64]string // of the consumers' sessions
}

// claim is a consumer's node for an item in its hand.
type claim struct {
	coord.Stat
	owner   string // "" if it does not tell
	revoked bool
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
	Held       float64 `json:"held"`    // in hand: for so many seconds
	Session    string  `json:"session"` // in hand: of the consumer
	Orphan     bool    `json:"orphan"`  // in hand: of no session, so that it will never come back by itself
	Address    string  `json:"address"` // in hand: of the consumer, if a server tells
	Owner      string  `json:"owner"`   // in hand: of the consumer, if that is known
	Revoked    bool    `json:"revoked"` // in hand: the consumer was asked to give it back
}

// inQueue finds out whether there is a queue at path, and returns its
// consumers.
func (r *Report) inQueue(ctx context.Context, client *coord.Client, path conn.NodePath) ([]inspect.Contender, error) {
	at := string(path)
	entries, err := client.Children(ctx, at+"/entries")
	if err != nil {
		return nil, err
	}
	taken, err := Children(ctx, client, at+"/taken")
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(name string) bool { return !strings.HasPrefix(name, "entry-") })
	slices.Sort(entries)
	slices.Sort(taken)
	q := &QueueReport{
		Items: len(entries), InHand: len(taken), First: []ItemReport{},
		taken: taken, claims: map[string]claim{}, owners: map[int64]string{},
	}
	r.Kind, r.Queue = QueueKind, q
	if dead, found, err := client.Exists(ctx, at+"/dead/entries"); err == nil && found {
		q.Dead = int(dead.Children)
	}
	q.look(ctx, client, at, taken[:min(len(taken), mostClaims)])
	consumers, err := q.consumers(ctx, client, at)
	if err != nil {
		return nil, err
	}
	for _, inHand := range []bool{true, false} {
		if err := q.list(ctx, client, at, entries, taken, inHand); err != nil {
			return nil, err
		}
	}
	return consumers, nil
}

// look reads the claims on items. Their data begin with a line that names the
// consumer; those of other programs do not.
func (q *QueueReport) look(ctx context.Context, client *coord.Client, path string, taken []string) {
	for _, name := range taken {
		data, stat, err := client.Get(ctx, path+"/taken/"+name)
		if err != nil {
			continue // it is done, or need not be known
		}
		owner, _, named := strings.Cut(string(inspect.OwnData(data)), "\n")
		c := claim{Stat: stat, revoked: inspect.IsRevocation(data)}
		if named {
			c.owner = owner
		}
		q.claims[name] = c
	}
}

// orphans counts the items in the hand of no session.
func (q *QueueReport) orphans() (n int) {
	for _, claim := range q.claims {
		if isNoSession(claim.Owner) {
			n++
		}
	}
	return n
}

// often counts the items, of those that are shown, that were delivered too
// often to go on like that.
func (q *QueueReport) often() (n int) {
	for _, item := range q.First {
		if item.Deliveries >= TooOften {
			n++
		}
	}
	return n
}

// Claimants are the consumers with an item in hand, as contenders: all of them,
// or if node is not "", that of an item or of its claim, which it names, or
// those of a consumer that it names.
func (q *QueueReport) Claimants(ctx context.Context, client *coord.Client, r Report, node string) (found []Contender) {
	q.look(ctx, client, r.Path, q.taken[min(len(q.taken), mostClaims):])
	session := "" // of that consumer
	for _, c := range r.Contenders {
		if c.IsNamed(r.Path, node) {
			session = c.Session
		}
	}
	for _, name := range q.taken {
		claim, known := q.claims[name]
		c := Contender{
			Holds: true, Owner: q.ownerOf(claim), Session: SessionName(claim.Owner),
			Age: term.SinceThen(claim.Created), HeldFor: term.SinceThen(claim.Created), Node: r.Path + "/taken/" + name, Revoked: claim.revoked,
		}
		if known && (node == "" || node == name || node == c.Node || node == r.Path+"/entries/"+name || session == c.Session) {
			found = append(found, c)
		}
	}
	return found
}

// Workers are those with the items in hand.
func Workers(ctx context.Context, client *coord.Client, path string, taken []string) []Contender {
	q := &QueueReport{taken: taken, claims: map[string]claim{}}
	q.look(ctx, client, path, taken)
	all := append([]Contender{}, q.Claimants(ctx, client, Report{Path: path}, "")...)
	for i := range all {
		all[i].Position, all[i].State, all[i].Kind = i+1, "works", consumerKind
	}
	return all
}

// ownerOf is the consumer with that claim, as the claim tells, or its session.
func (q *QueueReport) ownerOf(c claim) string { return cmp.Or(c.owner, q.owners[c.Owner]) }

// consumers lists the consumers that share the queue or wait, by age.
func (q *QueueReport) consumers(ctx context.Context, client *coord.Client, path string) ([]inspect.Contender, error) {
	dir := path + "/consumers"
	names, err := Children(ctx, client, dir)
	if err != nil {
		return nil, err
	}
	var all []inspect.Contender
	for _, name := range names {
		data, stat, err := client.Get(ctx, dir+"/"+name)
		if err != nil {
			continue // it is gone, or need not be known
		}
		owner := string(inspect.OwnData(data))
		q.owners[stat.Owner] = owner
		all = append(all, inspect.Contender{
			Contender: coord.Contender{Name: name, Kind: consumerKind, Dialect: client.Dialect()},
			Node:      dir + "/" + name, Owner: owner, Session: stat.Owner, Since: stat.Created, Token: stat.Czxid,
			Revoked: inspect.IsRevocation(data),
		})
	}
	q.Consumers = len(all)
	slices.SortFunc(all, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	return all, nil
}

// place reports whether a consumer has something to do.
func (q *QueueReport) place(c *Contender) {
	for _, claim := range q.claims {
		if SessionName(claim.Owner) == c.Session {
			c.State = "works"
		}
	}
}

// list adds the first items that are in hand, or those that are not.
func (q *QueueReport) list(ctx context.Context, client *coord.Client, path string, entries, taken []string, inHand bool) error {
	shown := 0
	for _, name := range entries {
		if shown == mostShown {
			return nil
		}
		if _, found := slices.BinarySearch(taken, name); found != inHand {
			continue
		}
		data, stat, err := client.Get(ctx, path+"/entries/"+name)
		if errors.Is(err, coord.ErrNoNode) {
			continue // it is done
		}
		if err != nil {
			return err
		}
		q.First = append(q.First, q.item(name, data, stat))
		shown++
	}
	return nil
}

func (q *QueueReport) item(name string, data []byte, stat coord.Stat) ItemReport {
	item := ItemReport{
		Name: name, Deliveries: int(stat.Version), Age: term.Seconds(max(0, time.Since(stat.Created))),
		Size: len(data), Data: Beginning(data), DataBase64: term.NotText(data),
	}
	item.DataBase64 = item.DataBase64[:min(len(item.DataBase64), mostData)]
	_, _ = fmt.Sscanf(name, "entry-%03d-", &item.Priority)
	if claim, found := q.claims[name]; found {
		item.InHand, item.Held = true, term.Seconds(max(0, time.Since(claim.Created)))
		item.Session, item.Orphan = SessionName(claim.Owner), isNoSession(claim.Owner)
		item.Owner, item.Revoked = q.ownerOf(claim), claim.revoked
	}
	return item
}

// Beginning is as much of an item as a person wants to see.
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
		about += fmt.Sprintf("; %s (%s/dead)", term.Plural(q.Dead, "dead letter", "dead letters"), path)
	}
	return about
}

func (q *QueueReport) table(to term.Page) error {
	if len(q.First) > 0 {
		t := term.Table{Heads: []string{"ITEM", "DATA", "PRIORITY", "DELIVERED", "AGE", "IN HAND", "CONSUMER"}}
		for _, item := range q.First {
			inHand, consumer := "", ""
			if item.InHand {
				inHand, consumer = "for "+term.Age(item.Held), item.consumer()
			}
			t.Add("", term.Plain(item.Name), strconv.Quote(item.Data), strconv.Itoa(item.Priority), strconv.Itoa(item.Deliveries),
				term.Age(item.Age), inHand, consumer)
		}
		if err := t.Write(to); err != nil {
			return err
		}
	}
	if more := q.Items - len(q.First); more > 0 {
		_, err := fmt.Fprintf(to, "… and %d more\n", more)
		return err
	}
	return nil
}

// consumer is who has the item in hand.
func (i ItemReport) consumer() string {
	who := "session " + i.Session
	switch {
	case i.Owner != "":
		who = Contender{Owner: i.Owner}.Who()
	case i.Orphan:
		who = "no session"
	}
	if i.Address != "" {
		who += " at " + term.Plain(i.Address)
	}
	if i.Revoked {
		who += ", asked to give it back"
	}
	return who
}
