package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type inspectVerb struct {
	Path nodePath `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// report is what inspect tells about a path.
type report struct {
	Path       string       `json:"path"`
	Kind       string       `json:"kind"`    // of all contenders; rwlock; semaphore; doublebarrier; queue; barrier; mixed; "" if there is nothing
	Dialect    string       `json:"dialect"` // of all contenders; mixed; "" if there are none
	Exists     bool         `json:"exists"`  // the node at the path does
	Others     int          `json:"others"`  // nodes below it that belong to nothing that was found there
	Contenders []contender  `json:"contenders"`
	Round      *roundReport `json:"round,omitempty"` // of a double barrier
	Queue      *queueReport `json:"queue,omitempty"`
	Closed     *closing     `json:"closed,omitempty"` // where there is nothing else: a barrier was set
}

// closing is who has set a barrier, and when.
type closing struct {
	By  string  `json:"by"`
	Age float64 `json:"age"`
}

type contender struct {
	Position int      `json:"position"` // 1 is first
	Holds    bool     `json:"holds"`
	State    string   `json:"state"` // holds, waits; in a double barrier inside, finished, leaves; at a queue works
	Kind     string   `json:"kind"`
	Owner    string   `json:"owner"`
	OwnerRaw []byte   `json:"owner_base64,omitempty"` // if it is no text
	Session  string   `json:"session"`                // as ZooKeeper's own tools write it
	Age      *float64 `json:"age"`                    // seconds since the node was made, by the servers' clock against ours; null: unknown
	Node     string   `json:"node"`
	Token    int64    `json:"token"`
	Revoked  bool     `json:"revoked"`
}

// Run shows the line at the path.
func (v *inspectVerb) Run(s *streams, c *connection) error {
	return c.with(func(ctx context.Context, client *coord.Client) error {
		r, err := inspect(ctx, client, v.Path)
		if err != nil {
			return err
		}
		if s.json {
			return writeJSON(s.out, r)
		}
		return r.table(s.out)
	})
}

func (r *report) contender(position int, info coord.ContenderInfo) contender {
	c := contender{
		Position: position, Holds: info.Holds, State: "waits", Kind: info.Kind, Owner: info.Owner,
		Session: sessionName(info.Session), Age: sinceThen(info.Since),
		Node: info.Node, Token: info.Token, Revoked: info.Revoked,
	}
	if c.Holds {
		c.State = "holds"
	}
	switch {
	case r.Round != nil:
		r.Round.place(&c)
	case r.Queue != nil:
		r.Queue.place(&c)
	}
	c.OwnerRaw = notText([]byte(c.Owner))
	return c
}

// sessionName is a session as ZooKeeper's own tools write it.
func sessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// family is the recipe a kind belongs to. A plain lock is at home in the line
// of a shared one, too.
func family(k string) string {
	if k == "read" || k == "write" {
		return "rwlock"
	}
	switch k {
	case "lease":
		return slotsKind
	case memberKind:
		return roundsKind
	case consumerKind:
		return queueKind
	}
	return string(k)
}

// common is what all contenders so far have, given what the next one has.
func common(sofar, next string) string {
	switch {
	case sofar == "" || sofar == next || sofar == "lock" && next == "rwlock":
		return next
	case (sofar == "rwlock" || sofar == slotsKind) && next == "lock":
		return sofar // a semaphore's queue is a lock
	}
	return "mixed"
}

// seconds is d in seconds, to the millisecond.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// measured is d in milliseconds, rounded as it is printed, or null in JSON if
// nothing was measured.
func measured(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Round(time.Millisecond).Milliseconds()
	return &ms
}

// holders are the contenders that hold.
func (r report) holders() []contender {
	var holders []contender
	for _, c := range r.Contenders {
		if c.Holds {
			holders = append(holders, c)
		}
	}
	return holders
}

func (r report) table(to io.Writer) error {
	switch {
	case r.Queue != nil:
		return r.Queue.table(to, r)
	case r.Round != nil:
		fmt.Fprintf(to, "%s: %s%s\n", r.Path, r.Round, r.beside())
	case r.Closed != nil:
		_, err := fmt.Fprintf(to, "%s: a closed barrier, set %s ago by %q\n", r.Path, age(r.Closed.Age), r.Closed.By)
		return err
	case len(r.Contenders) == 0:
		_, err := fmt.Fprintf(to, "%s: %s\n", r.Path, r.nobody())
		return err
	default:
		fmt.Fprintf(to, "%s: %s, %s dialect%s\n", r.Path, r.Kind, r.Dialect, r.beside())
	}
	return r.contenderTable(to)
}

// nobody says what there is where no contender is.
func (r report) nobody() string {
	if !r.Exists {
		return "there is nothing"
	}
	return "nobody holds it, nobody waits" + r.beside()
}

// beside says what there is beside what inspect knows.
func (r report) beside() string {
	if r.Others == 0 {
		return ""
	}
	return fmt.Sprintf("; %s below it", plural(r.Others, "other node is", "other nodes are"))
}

func (r report) contenderTable(to io.Writer) error {
	if len(r.Contenders) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tSTATE\tKIND\tOWNER\tAGE\tSESSION\tNODE")
	for _, c := range r.Contenders {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Position, c.state(), c.Kind, c.owner(), c.age(), c.Session,
			plain(strings.TrimPrefix(c.Node, r.Path+"/")))
	}
	return w.Flush()
}

func (c contender) state() string {
	if c.Revoked {
		return c.State + ", asked to give up"
	}
	return c.State
}

func (c contender) owner() string {
	if c.Owner == "" {
		return "unknown"
	}
	return fmt.Sprintf("%.60q", c.Owner)
}

// age is the contender's as people write it. That of a node that may not be
// read is not known.
func (c contender) age() string {
	if c.Age == nil {
		return "unknown"
	}
	return age(*c.Age)
}

func sinceThen(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	age := seconds(max(0, time.Since(t)))
	return &age
}

// plain is a name from the servers as a terminal may show it: quoted, if there
// is anything in it that is not seen.
func plain(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// age is a number of seconds as people write it.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
