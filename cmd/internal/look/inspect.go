package look

import (
	"fmt"
	"math"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// Report is what inspect shows of a path.
type Report struct {
	Path       string       `json:"path"`
	Kind       string       `json:"kind"`            // of all contenders; rwlock; semaphore; doublebarrier; queue; barrier; mixed; "" if there is nothing
	Dialect    string       `json:"dialect"`         // of all contenders; mixed; "" if there are none
	Exists     bool         `json:"exists"`          // the node at the path does
	Others     int          `json:"others"`          // nodes below it that belong to nothing that was found there
	Limit      int          `json:"limit,omitempty"` // of a semaphore, if one is stored
	Left       int64        `json:"sequence_left"`   // numbers between the last that was given to a node, as far as that is known, and the end of the counter
	Odd        []string     `json:"odd"`             // as ls shows it
	Contenders []Contender  `json:"contenders"`
	Round      *RoundReport `json:"round,omitempty"` // of a double barrier
	Queue      *QueueReport `json:"queue,omitempty"`
	Closed     *Closing     `json:"closed,omitempty"` // where there is nothing else: a barrier was set

	deadlock []string // the paths of a circle that it is part of
}

// Closing is who has set a barrier, and when.
type Closing struct {
	By  string  `json:"by"`
	Age float64 `json:"age"`
}

type Contender struct {
	Position  int      `json:"position"` // 1 is first
	Holds     bool     `json:"holds"`
	State     string   `json:"state"` // holds, waits; in a double barrier inside, finished, leaves; at a queue works
	Kind      string   `json:"kind"`
	Dialect   string   `json:"dialect"`
	Owner     string   `json:"owner"`
	OwnerRaw  []byte   `json:"owner_base64,omitempty"`    // if it is no text
	Session   string   `json:"session"`                   // as ZooKeeper's own tools write it
	Orphan    bool     `json:"orphan"`                    // it belongs to no session, and will never go by itself
	Address   string   `json:"address"`                   // of the client, if a server says
	SilentFor *float64 `json:"silent_for,omitempty"`      // seconds, at least, for which its session was not heard of, if a server says
	Timeout   *float64 `json:"session_timeout,omitempty"` // seconds, if a server says
	Age       *float64 `json:"age"`                       // seconds since the node was made, by the servers' clock against ours; null: unknown
	HeldFor   *float64 `json:"held_for"`                  // seconds since the grant; null: it does not hold, or nobody saw that
	Node      string   `json:"node"`
	Token     int64    `json:"token"`
	Revoked   bool     `json:"revoked"`
	Under     []string `json:"under,omitempty"` // the names of the nodes of the holds that it was made under, if it says
}

func (r *Report) contender(position int, info inspect.Contender) Contender {
	c := Contender{
		Position: position, Holds: info.Holds, State: "waits", Kind: info.Kind, Owner: info.Owner,
		Dialect: string(info.Dialect), Session: SessionName(info.Session), Age: term.SinceThen(info.Since),
		Orphan: !info.Since.IsZero() && isNoSession(info.Session),
		Node:   info.Node, Token: info.Token, Revoked: info.Revoked, Under: info.Under,
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
	c.OwnerRaw = term.NotText([]byte(c.Owner))
	return c
}

// SessionName is a session as ZooKeeper's own tools write it.
func SessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// isNoSession reports whether the servers report this owner for a node of no
// session, or for a container.
func isNoSession(id int64) bool { return id == 0 || id == math.MinInt64 }

// family is the recipe a kind belongs to. A plain lock is at home in the line
// of a shared one, too.
func family(k string) string {
	if k == "read" || k == "write" {
		return "rwlock"
	}
	switch k {
	case semaphore.Kind:
		return SlotsKind
	case doublebarrier.Kind:
		return roundsKind
	case queue.ConsumerKind:
		return QueueKind
	}
	return k
}

// common is what all contenders so far have, given what the next one has.
func common(sofar, next string) string {
	switch {
	case sofar == "" || sofar == next || sofar == "lock" && next == "rwlock":
		return next
	case (sofar == "rwlock" || sofar == SlotsKind) && next == "lock":
		return sofar // a semaphore's queue is a lock
	}
	return "mixed"
}

// Holders are the contenders that hold.
func (r Report) Holders() []Contender {
	var holders []Contender
	for _, c := range r.Contenders {
		if c.Holds {
			holders = append(holders, c)
		}
	}
	return holders
}

// IsNamed reports whether node is the contender's, by its name or path.
func (c Contender) IsNamed(path, node string) bool { return c.Node == node || c.Node == path+"/"+node }
