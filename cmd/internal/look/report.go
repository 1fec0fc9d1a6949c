package look

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Report is what inspect shows of a path.
type Report struct {
	Path string `json:"path"`
	// Kind is that of all contenders: rwlock; semaphore; slots; group;
	// doublebarrier; queue; once; cron; barrier; node; unknown; mixed; "" if
	// there is nothing.
	Kind    string `json:"kind"`
	Dialect string `json:"dialect"`         // of all contenders; mixed; "" if there are none
	Exists  bool   `json:"exists"`          // the node at the path does
	Others  int    `json:"others"`          // nodes below it that belong to no recipe found there
	Limit   int    `json:"limit,omitempty"` // of a semaphore, if one is stored
	// Left is how many sequence numbers are left until the counter is full, as
	// far as is known.
	Left       int64           `json:"sequence_left"`
	Odd        []string        `json:"odd"` // as ls shows it
	Contenders []Contender     `json:"contenders"`
	Round      *RoundReport    `json:"round,omitempty"` // of a double barrier
	Queue      *QueueReport    `json:"queue,omitempty"`
	Numbers    *NumbersReport  `json:"slots,omitempty"`
	Ledger     *LedgerReport   `json:"ledger,omitempty"`
	Schedule   *ScheduleReport `json:"schedule,omitempty"`
	Shards     *ShardsReport   `json:"shards,omitempty"`
	Closed     *Closing        `json:"closed,omitempty"` // a barrier that was set, where there is nothing else

	kinds    []string        // of all recipes that were found
	members  map[string]bool // the names of a group's members
	deadlock []string        // the paths of a circle that the recipe is part of
}

// Closing says who has set a barrier, and when.
type Closing struct {
	By  string    `json:"by"`
	Age float64   `json:"age"`
	At  time.Time `json:"-"`
}

type Contender struct {
	Position int    `json:"position"` // 1 is first
	Holds    bool   `json:"holds"`
	State    string `json:"state"` // holds, waits; in a double barrier inside, finished, leaves; at a queue works; unknown
	Kind     string `json:"kind"`
	Dialect  string `json:"dialect"`
	Owner    string `json:"owner"`
	OwnerRaw []byte `json:"owner_base64,omitempty"` // if the owner is no text
	Session  string `json:"session"`                // as ZooKeeper's own tools write it
	Orphan   bool   `json:"orphan"`                 // its node belongs to no session, and will never go by itself
	Heard
	Age *float64 `json:"age"` // seconds since the node was made, by the servers' clock against ours; null: unknown
	Held
	Node    string   `json:"node"`
	Token   int64    `json:"token"`
	Revoked bool     `json:"revoked"`
	Under   []string `json:"under,omitempty"` // the names of the nodes of the holds that it was made under, if it says so

	Made time.Time `json:"-"` // when the node was made, by the servers' clock
}

func (r *Report) contender(position int, info inspect.Contender) Contender {
	c := Contender{
		Position: position, Holds: info.Holds, State: "waits", Kind: cmp.Or(info.Kind, UnknownKind), Owner: info.Owner,
		Dialect: string(info.Dialect), Session: SessionName(info.Session), Age: term.SinceThen(info.Since),
		Orphan: !info.Since.IsZero() && isNoSession(info.Session),
		Node:   info.Node, Token: info.Token, Revoked: info.Revoked, Under: info.Under, Made: info.Since,
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

// isNoSession reports whether a node with this owner belongs to no session,
// such as a container.
func isNoSession(id int64) bool { return id == 0 }

// family is the recipe that a kind of contender belongs to.
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

// common is the kind, or dialect, of all contenders so far and the next. A
// plain lock may stand in the line of a shared one, too.
func common(sofar, next string) string {
	switch {
	case sofar == "" || sofar == next || sofar == "lock" && next == "rwlock":
		return next
	case (sofar == "rwlock" || sofar == SlotsKind || sofar == NumbersKind) && next == "lock":
		return sofar // the queue of a semaphore, and of slots, is a lock
	}
	return mixed
}

// mixed is the kind of several kinds, and the dialect of several dialects.
const mixed = "mixed"

// Holders are the contenders that hold.
func (r Report) Holders() []Contender {
	return slices.DeleteFunc(slices.Clone(r.Contenders), func(c Contender) bool { return !c.Holds })
}

// IsNamed reports whether node is the name or path of the contender's node.
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

const (
	// MostNamed is how many holders are read and named, at most.
	MostNamed = 3
	// LearnWithin bounds a look at why a wait failed.
	LearnWithin = 300 * time.Millisecond
)

// Read reads the nodes of the first contenders in a directory.
func (r *Report) Read(
	ctx context.Context, client *coord.Client, dir string, those []coord.Contender,
) ([]Contender, error) {
	infos, err := inspect.Describe(ctx, client, dir, those[:min(MostNamed, len(those))])
	first := []Contender{}
	for i, info := range infos {
		info.Holds = true
		first = append(first, r.contender(i+1, info))
	}
	return first, err
}

// KeyOf is a key that differs when the nodes do.
func KeyOf(those []Contender) (key string) {
	for _, c := range those {
		key += c.Node + " "
	}
	return key
}

// fewLeft is how many sequence numbers a directory has left when reports begin
// to warn of their end.
const fewLeft = math.MaxInt32 / 10

func newReport(path string) Report {
	return Report{Path: path, Contenders: []Contender{}, Left: math.MaxInt32, Odd: []string{}}
}

// used notes a sequence number that was given to a node.
func (r *Report) used(number int64) { r.Left = min(r.Left, math.MaxInt32-number) }

// Count reads the counters of the directories in which the recipe makes its
// numbered nodes. The servers number a new node by the count of all nodes ever
// made in its directory. The directory's child version is twice that count less
// its children, in 32 bits.
func (r *Report) Count(ctx context.Context, client *coord.Client) error {
	directories := []string{r.Path}
	switch r.Kind {
	case SlotsKind:
		for _, d := range dialects {
			l := layout.SemaphoreAt(d, r.Path)
			directories = append(directories, l.Leases.Dir, l.Queue.Dir)
		}
	case NumbersKind:
		directories = []string{layout.SlotNodes(r.Path).Line().Dir}
	case QueueKind:
		directories = nil
		for _, d := range dialects {
			l := layout.QueueAt(d, r.Path)
			directories = append(directories, l.Entries, l.Waiting.Dir)
		}
	}
	slices.Sort(directories)
	for _, dir := range slices.Compact(directories) {
		stat, there, err := client.Exists(ctx, dir)
		if err != nil {
			return err
		}
		if made := uint32(stat.Cversion+stat.Children) / 2; there && made > 0 {
			r.used(int64(made) - 1)
		}
	}
	return nil
}
