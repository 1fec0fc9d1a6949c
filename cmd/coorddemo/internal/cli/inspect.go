package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

type inspectVerb struct {
	Path nodePath `arg:"" help:"The lock's path."`
}

// report is what inspect tells about a path.
type report struct {
	Path       string      `json:"path"`
	Kind       string      `json:"kind"`    // of all contenders; rwlock; semaphore; mixed; "" if there are none
	Dialect    string      `json:"dialect"` // of all contenders; mixed; "" if there are none
	Contenders []contender `json:"contenders"`
}

type contender struct {
	Position int     `json:"position"` // 1 is first
	Holds    bool    `json:"holds"`
	Kind     string  `json:"kind"`
	Owner    string  `json:"owner"`
	Session  string  `json:"session"` // as ZooKeeper's own tools write it
	Age      float64 `json:"age"`     // seconds since the node was made, by the servers' clock against ours
	Node     string  `json:"node"`
	Token    int64   `json:"token"`
	Revoked  bool    `json:"revoked"`
}

// Run shows the line at the path.
func (v *inspectVerb) Run(s *streams, c *connection) error {
	return c.with(func(ctx context.Context, client *coord.Client) error {
		r, err := inspect(ctx, client, v.Path)
		if err != nil {
			return err
		}
		if s.json {
			writeJSON(s.out, r)
			return nil
		}
		return r.table(s.out)
	})
}

// inspect lists the line at path. A path that does not exist is a line in which nobody stands: that is how a line
// looks before its first contender, and after its last.
func inspect(ctx context.Context, client *coord.Client, path nodePath) (report, error) {
	r := report{Path: string(path), Contenders: []contender{}}
	line, slots, err := contendersAt(ctx, client, path)
	if err == nil && len(line) == 0 {
		line, err = leases(ctx, client, path)
	}
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return r, err
	}
	for i, info := range line {
		r.Kind = common(r.Kind, family(info.Kind))
		r.Dialect = common(r.Dialect, info.Dialect.String())
		r.Contenders = append(r.Contenders, contender{
			Position: i + 1, Holds: info.Holds, Kind: string(info.Kind), Owner: info.Owner,
			Session: fmt.Sprintf("0x%x", uint64(info.Session)), Age: seconds(max(0, time.Since(info.Since))),
			Node: info.Node, Token: info.Token, Revoked: info.Revoked,
		})
	}
	if slots {
		r.Kind = slotsKind
	}
	return r, nil
}

// leases lists the contenders of a semaphore, whose nodes are below directories of their own. A path that is none has
// none.
func leases(ctx context.Context, client *coord.Client, path nodePath) ([]coord.ContenderInfo, error) {
	if _, exists, err := client.Exists(ctx, string(path)+"/leases"); err != nil || !exists {
		return nil, err
	}
	s, err := semaphore.New(client, string(path), 1) // the limit that is stored counts
	if err != nil {
		return nil, err
	}
	return s.Contenders(ctx)
}

// family is the recipe a kind belongs to. A plain lock is at home in the line of a shared one, too.
func family(k coord.Kind) string {
	if k == coord.Read || k == coord.Write {
		return "rwlock"
	}
	if k == coord.Lease {
		return "semaphore"
	}
	return string(k)
}

// common is what all contenders so far have, given what the next one has.
func common(sofar, next string) string {
	switch {
	case sofar == "" || sofar == next || sofar == string(coord.Lock) && next == "rwlock":
		return next
	case (sofar == "rwlock" || sofar == "semaphore") && next == string(coord.Lock):
		return sofar // a semaphore's queue is a lock
	}
	return "mixed"
}

// seconds is d in seconds, to the millisecond.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// milliseconds is d rounded as it is printed.
func milliseconds(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

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
	if len(r.Contenders) == 0 {
		_, err := fmt.Fprintf(to, "%s: nobody holds it, nobody waits\n", r.Path)
		return err
	}
	fmt.Fprintf(to, "%s: %s, %s dialect\n", r.Path, r.Kind, r.Dialect)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tSTATE\tKIND\tOWNER\tAGE\tSESSION\tNODE")
	for _, c := range r.Contenders {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Position, c.state(), c.Kind, c.owner(), c.age(), c.Session, c.Node)
	}
	return w.Flush()
}

func (c contender) state() string {
	state := "waits"
	if c.Holds {
		state = "holds"
	}
	if c.Revoked {
		state += ", asked to give up"
	}
	return state
}

func (c contender) owner() string {
	if c.Owner == "" {
		return "unknown"
	}
	return fmt.Sprintf("%.60q", c.Owner)
}

func (c contender) age() string {
	d := time.Duration(c.Age * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
