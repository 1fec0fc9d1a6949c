package cli

import (
	"context"
	"maps"
	"sync"
	"time"
)

const (
	// askWithin is how long the servers have to tell who is connected.
	askWithin = time.Second
	// askEvery is how often they are asked at most: where many are connected,
	// the answer is long.
	askEvery = 10 * time.Second
)

// addressBook is which client has which session, as far as the servers tell.
type addressBook struct {
	c     *connection
	known map[string]string
	asked time.Time
}

// fill adds the addresses to a report.
func (b *addressBook) fill(ctx context.Context, r *report) {
	unknown := false
	of := func(session string, none bool) string {
		address, known := b.known[session]
		unknown = unknown || !known && !none
		return address
	}
	enter := func() {
		for i, c := range r.Contenders {
			r.Contenders[i].Address = of(c.Session, c.Orphan || c.Age == nil)
		}
		if r.Queue != nil {
			for i, item := range r.Queue.First {
				r.Queue.First[i].Address = of(item.Session, !item.InHand || item.Orphan)
			}
		}
	}
	if enter(); unknown && (b.asked.IsZero() || time.Since(b.asked) > askEvery) {
		b.ask(ctx)
		enter()
	}
}

// ask asks all servers at once.
func (b *addressBook) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	addresses, _ := addressesOf(b.c.ZK)
	told := make([]map[string]string, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { told[i], _ = b.c.connections(ctx, address) })
	}
	asking.Wait()
	b.known, b.asked = map[string]string{}, time.Now()
	for _, sessions := range told {
		maps.Copy(b.known, sessions)
	}
}
