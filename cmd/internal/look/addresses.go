package look

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// AddressBook knows which client has which session, as far as the servers say.
type AddressBook struct {
	c     *conn.Connection
	known map[string]conn.Remote
	asked time.Time
	all   bool // all servers have answered
}

// Known returns which client had which session when the servers were asked
// last, and whether all of them answered.
func (b *AddressBook) Known() (sessions map[string]conn.Remote, asked time.Time, all bool) {
	return b.known, b.asked, b.all
}

func NewAddressBook(c *conn.Connection) *AddressBook { return &AddressBook{c: c} }

// Fill adds to a report where the clients are, and how long they have been
// silent.
func (b *AddressBook) Fill(ctx context.Context, r *Report) {
	if len(r.Contenders) == 0 && r.Queue == nil {
		return
	}
	b.Refresh(ctx)
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

// Refresh asks the servers, unless they were asked a moment ago.
func (b *AddressBook) Refresh(ctx context.Context) {
	if pause := time.Duration(len(b.known)) * askForEach; time.Since(b.asked) > min(max(pause, askFirst), askLast) {
		b.ask(ctx)
	}
}

// Hear adds to all reports of a survey where the clients are, and how long they
// have been silent.
func (s *Survey) Hear(ctx context.Context, book *AddressBook) {
	for i := range s.Recipes {
		book.Fill(ctx, &s.Recipes[i])
	}
}

// Heard is what a server says about a client.
type Heard struct {
	Address   string   `json:"address"`
	SilentFor *float64 `json:"silent_for,omitempty"`      // seconds, at least, since its session last sent a packet
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
// a healthy client pings after a third of its session's timeout.
func (h Heard) Silence() string {
	if h.SilentFor == nil || *h.SilentFor < *h.Timeout/2 {
		return ""
	}
	return fmt.Sprintf("silent for %s of %s", term.Age(*h.SilentFor), term.Age(*h.Timeout))
}

// ask asks all servers at the same time.
func (b *AddressBook) ask(ctx context.Context) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	addresses, _ := conn.AddressesOf(b.c.ZK)
	told, answers := make([]map[string]conn.Remote, len(addresses)), make([]bool, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { told[i], answers[i] = b.c.Connections(ctx, address) })
	}
	asking.Wait()
	b.known, b.asked, b.all = map[string]conn.Remote{}, begun, !slices.Contains(answers, false)
	for _, sessions := range told {
		maps.Copy(b.known, sessions)
	}
}
