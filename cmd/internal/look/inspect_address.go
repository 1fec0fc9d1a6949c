package look

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

const (
	// askWithin is how long the servers have to say who is connected.
	askWithin = time.Second
	// They are asked again after askForEach client that is connected, since the
	// answer is as long, but no sooner than after askFirst and no later than
	// after askLast.
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
			r.Queue.First[i].Address = b.known[item.Session].Address
		}
	}
}

// Hear notes what a server says about the contender's client.
func (c *Contender) Hear(of conn.Remote) {
	c.Address = of.Address
	if of.Timeout > 0 {
		timeout, silent := term.Seconds(of.Timeout), term.Seconds(of.Silent)
		c.Timeout, c.SilentFor = &timeout, &silent
	}
}

// Silence says for how long a client is silent, if that is longer than it is
// for any that works, which pings after a third of its session's time-out.
func (c Contender) Silence() string {
	if c.SilentFor == nil || *c.SilentFor < *c.Timeout/2 {
		return ""
	}
	return fmt.Sprintf("silent for %s of %s", term.Age(*c.SilentFor), term.Age(*c.Timeout))
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
