package look

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// Report is what inspect shows of a path.
type Report struct {
	Path       string          `json:"path"`
	Kind       string          `json:"kind"`            // of all contenders; rwlock; semaphore; slots; group; doublebarrier; queue; once; cron; barrier; unknown; mixed; "" if there is nothing
	Dialect    string          `json:"dialect"`         // of all contenders; mixed; "" if there are none
	Exists     bool            `json:"exists"`          // the node at the path does
	Others     int             `json:"others"`          // nodes below it that belong to nothing that was found there
	Limit      int             `json:"limit,omitempty"` // of a semaphore, if one is stored
	Left       int64           `json:"sequence_left"`   // numbers between the last that was given to a node, as far as that is known, and the end of the counter
	Odd        []string        `json:"odd"`             // as ls shows it
	Contenders []Contender     `json:"contenders"`
	Round      *RoundReport    `json:"round,omitempty"` // of a double barrier
	Queue      *QueueReport    `json:"queue,omitempty"`
	Numbers    *NumbersReport  `json:"slots,omitempty"`
	Ledger     *LedgerReport   `json:"ledger,omitempty"`
	Schedule   *ScheduleReport `json:"schedule,omitempty"`
	Shards     *ShardsReport   `json:"shards,omitempty"`
	Closed     *Closing        `json:"closed,omitempty"` // where there is nothing else: a barrier was set

	kinds    []string        // of all recipes that were found
	members  map[string]bool // the names of a group's members
	deadlock []string        // the paths of a circle that it is part of
}

// Closing is who has set a barrier, and when.
type Closing struct {
	By  string  `json:"by"`
	Age float64 `json:"age"`
}

type Contender struct {
	Position int    `json:"position"` // 1 is first
	Holds    bool   `json:"holds"`
	State    string `json:"state"` // holds, waits; in a double barrier inside, finished, leaves; at a queue works; unknown
	Kind     string `json:"kind"`
	Dialect  string `json:"dialect"`
	Owner    string `json:"owner"`
	OwnerRaw []byte `json:"owner_base64,omitempty"` // if it is no text
	Session  string `json:"session"`                // as ZooKeeper's own tools write it
	Orphan   bool   `json:"orphan"`                 // it belongs to no session, and will never go by itself
	Heard
	Age *float64 `json:"age"` // seconds since the node was made, by the servers' clock against ours; null: unknown
	Held
	Node    string   `json:"node"`
	Token   int64    `json:"token"`
	Revoked bool     `json:"revoked"`
	Under   []string `json:"under,omitempty"` // the names of the nodes of the holds that it was made under, if it says
}

func (r *Report) contender(position int, info inspect.Contender) Contender {
	c := Contender{
		Position: position, Holds: info.Holds, State: "waits", Kind: cmp.Or(info.Kind, UnknownKind), Owner: info.Owner,
		Dialect: string(info.Dialect), Session: SessionName(info.Session), Age: term.SinceThen(info.Since),
		Orphan: !info.Since.IsZero() && isNoSession(info.Session),
		Node:   info.Node, Token: info.Token, Revoked: info.Revoked, Under: info.Under,
	}
	if c.Holds {
		c.State = "holds"
	}
	switch {
	case !isKnown(info.Contender):
		c.State = UnknownKind
	case r.Round != nil:
		r.Round.place(&c)
	case r.Queue != nil:
		r.Queue.place(&c)
	}
	c.OwnerRaw = term.NotText([]byte(c.Owner))
	return c
}

// SessionName is a session as ZooKeeper's own tools write it.
func SessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// isNoSession reports whether the servers report this owner for a node of no
// session, such as a container.
func isNoSession(id int64) bool { return id == 0 }

// family is the recipe a kind belongs to. A plain lock is at home in the line
// of a shared one, too.
func family(k string) string {
	switch k {
	case "read", "write":
		return "rwlock"
	case semaphore.Kind:
		return SlotsKind
	case doublebarrier.Kind:
		return roundsKind
	case queue.ConsumerKind:
		return QueueKind
	case slots.Kind:
		return NumbersKind
	case memberKind:
		return GroupKind
	case "latch": // as Curator calls the candidates' nodes
		return electionKind
	}
	return cmp.Or(k, UnknownKind)
}

// common is what all contenders so far have, given what the next one has.
func common(sofar, next string) string {
	switch {
	case sofar == "" || sofar == next || sofar == "lock" && next == "rwlock":
		return next
	case (sofar == "rwlock" || sofar == SlotsKind || sofar == NumbersKind) && next == "lock":
		return sofar // the queue of a semaphore, and of slots, is a lock
	}
	return mixed
}

// mixed is the kind, or the dialect, of what is of several.
const mixed = "mixed"

// Holders are the contenders that hold.
func (r Report) Holders() []Contender {
	return slices.DeleteFunc(slices.Clone(r.Contenders), func(c Contender) bool { return !c.Holds })
}

// IsNamed reports whether node is the contender's, by its name or path.
func (c Contender) IsNamed(node string) bool {
	return c.Node == node || strings.HasSuffix(c.Node, "/"+node)
}

const (
	// askWithin is how long the servers have to say who is connected.
	askWithin = time.Second
	// They are asked again after askForEach for each connected client, since
	// the answer grows with their number, but after askFirst at least and
	// askLast at most.
	askForEach = 10 * time.Millisecond
	askFirst   = 500 * time.Millisecond
	askLast    = 10 * time.Second
)

// AddressBook is which client has which session, as far as the servers say.
type AddressBook struct {
	c     *conn.Connection
	known map[string]conn.Remote
	asked time.Time
}

func NewAddressBook(c *conn.Connection) *AddressBook { return &AddressBook{c: c} }

// Fill adds to a report where the clients are, and how long they are silent.
func (b *AddressBook) Fill(ctx context.Context, r *Report) {
	if len(r.Contenders) == 0 && r.Queue == nil {
		return
	}
	if pause := time.Duration(len(b.known)) * askForEach; time.Since(b.asked) > min(max(pause, askFirst), askLast) {
		b.ask(ctx)
	}
	for i, c := range r.Contenders {
		if is, known := b.known[c.Session]; known {
			r.Contenders[i].Hear(is)
		}
	}
	if r.Queue == nil {
		return
	}
	for i, item := range r.Queue.First {
		if item.InHand {
			r.Queue.First[i].Hear(b.known[item.Session])
		}
	}
}

// Hear adds to all reports of a survey where the clients are, and how long they
// are silent.
func (s *Survey) Hear(ctx context.Context, book *AddressBook) {
	for i := range s.Recipes {
		book.Fill(ctx, &s.Recipes[i])
	}
}

// Heard is what a server says about a client.
type Heard struct {
	Address   string   `json:"address"`
	SilentFor *float64 `json:"silent_for,omitempty"`      // seconds, at least, for which its session was not heard of
	Timeout   *float64 `json:"session_timeout,omitempty"` // seconds
}

// Hear notes what a server says.
func (h *Heard) Hear(of conn.Remote) {
	h.Address = of.Address
	if of.Timeout > 0 {
		timeout, silent := term.Seconds(of.Timeout), term.Seconds(of.Silent)
		h.Timeout, h.SilentFor = &timeout, &silent
	}
}

// Silence says for how long a client has been silent, or "" if that is normal:
// a client that works pings after a third of its session's timeout.
func (h Heard) Silence() string {
	if h.SilentFor == nil || *h.SilentFor < *h.Timeout/2 {
		return ""
	}
	return fmt.Sprintf("silent for %s of %s", term.Age(*h.SilentFor), term.Age(*h.Timeout))
}

// ask asks all servers together.
func (b *AddressBook) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	addresses, _ := conn.AddressesOf(b.c.ZK)
	told := make([]map[string]conn.Remote, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { told[i], _ = b.c.Connections(ctx, address) })
	}
	asking.Wait()
	b.known, b.asked = map[string]conn.Remote{}, time.Now()
	for _, sessions := range told {
		maps.Copy(b.known, sessions)
	}
}

const (
	// MostNamed is how many holders are read, and named.
	MostNamed = 3
	// LearnWithin bounds a look at why a wait was in vain.
	LearnWithin = 300 * time.Millisecond
)

// Situation is what a task waits for, as one look shows it. Each look costs a
// few requests, however many wait.
type Situation struct {
	Text   string         // who holds, or how many have come
	Others int            // that wait in the same line
	place  int            // in the line, from 1; 0: none
	Key    string         // changes when there is news
	Over   bool           // our turn has come
	Fields map[string]any // for JSON
}

// String is the message for a waiter, or for one that has given up.
func (s Situation) String() string {
	switch {
	case s.place > 0:
		return fmt.Sprintf("%s; place %d in the line", s.Text, s.place)
	case s.Others > 0:
		return fmt.Sprintf("%s; %s", s.Text, term.Plural(s.Others, "other waits", "others wait"))
	}
	return s.Text
}

// WithoutPlace is for one that has given up its own.
func (s Situation) WithoutPlace() Situation {
	s.place = 0
	delete(s.Fields, "place")
	return s
}

// StandIn finds this process's place in a line behind so many others.
func (s *Situation) StandIn(line []coord.Contender, before int, own Names) {
	s.Others = len(line)
	for i, c := range line {
		if own[c.Name] {
			s.place = before + i + 1
			s.Fields["place"] = s.place
			s.Key += fmt.Sprint(s.place)
			s.Others--
		}
	}
	s.Fields["waiting"] = s.Others
}

// Names are of nodes, without their directory.
type Names map[string]bool

// HeldBy names the first of so many holders.
func HeldBy(first []Contender, count int) string {
	if count == 0 {
		return "held by nobody"
	}
	var all []string
	for _, c := range first {
		all = append(all, fmt.Sprintf("%s, %s", c.Who(), c.Since()))
	}
	if more := count - len(first); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return "held by " + strings.Join(all, "; ")
}

// Read reads the nodes of the first contenders in a directory.
func (r *Report) Read(ctx context.Context, client *coord.Client, dir string, those []coord.Contender) ([]Contender, error) {
	infos, err := inspect.Describe(ctx, client, dir, those[:min(MostNamed, len(those))])
	first := []Contender{}
	for i, info := range infos {
		info.Holds = true
		first = append(first, r.contender(i+1, info))
	}
	return first, err
}

// KeyOf is different for different nodes.
func KeyOf(those []Contender) (key string) {
	for _, c := range those {
		key += c.Node + " "
	}
	return key
}
