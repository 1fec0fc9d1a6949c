package cli

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type inspectVerb struct {
	Path nodePath `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// report is what inspect tells about a path.
type report struct {
	Path       string       `json:"path"`
	Kind       string       `json:"kind"`            // of all contenders; rwlock; semaphore; doublebarrier; queue; barrier; mixed; "" if there is nothing
	Dialect    string       `json:"dialect"`         // of all contenders; mixed; "" if there are none
	Exists     bool         `json:"exists"`          // the node at the path does
	Others     int          `json:"others"`          // nodes below it that belong to nothing that was found there
	Limit      int          `json:"limit,omitempty"` // of a semaphore, if one is stored
	Left       int64        `json:"sequence_left"`   // numbers between the last that was given to a node, as far as that is known, and the end of the counter
	Odd        []string     `json:"odd"`             // as ls tells
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
	Dialect  string   `json:"dialect"`
	Owner    string   `json:"owner"`
	OwnerRaw []byte   `json:"owner_base64,omitempty"` // if it is no text
	Session  string   `json:"session"`                // as ZooKeeper's own tools write it
	Orphan   bool     `json:"orphan"`                 // it belongs to no session, and will never go by itself
	Address  string   `json:"address"`                // of the client, if a server tells
	Age      *float64 `json:"age"`                    // seconds since the node was made, by the servers' clock against ours; null: unknown
	Node     string   `json:"node"`
	Token    int64    `json:"token"`
	Revoked  bool     `json:"revoked"`
}

// Run shows the line at the path.
func (v *inspectVerb) Run(s *streams, c *connection) error {
	return c.with(func(ctx context.Context, client *coord.Client) error {
		return show(ctx, client, v.Path, &addressBook{c: c}, s, s.page())
	})
}

// show writes what there is at the path.
func show(ctx context.Context, client *coord.Client, path nodePath, book *addressBook, s *streams, to page) error {
	r, err := inspect(ctx, client, path)
	if err == nil {
		err = r.count(ctx, client)
	}
	if err != nil {
		return err
	}
	book.fill(ctx, &r)
	r.Odd = r.oddities()
	if s.json {
		s.told = true
		return writeJSON(s.out, r)
	}
	return r.table(to)
}

func (r *report) contender(position int, info coord.ContenderInfo) contender {
	c := contender{
		Position: position, Holds: info.Holds, State: "waits", Kind: info.Kind, Owner: info.Owner,
		Dialect: string(info.Dialect), Session: sessionName(info.Session), Age: sinceThen(info.Since),
		Orphan: !info.Since.IsZero() && isNoSession(info.Session),
		Node:   info.Node, Token: info.Token, Revoked: info.Revoked,
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

// isNoSession reports whether that is what the servers tell of the owner of a
// node that belongs to no session, or of a container.
func isNoSession(id int64) bool { return id == 0 || id == math.MinInt64 }

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

func sinceThen(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	age := seconds(max(0, time.Since(t)))
	return &age
}
