package rwlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// crew is several clients with several workers each, at one lock.
type crew struct {
	scene
	rec     *history.Recorder
	clients []*coord.Client
	expired [clients]int64 // the session of each that was ended last
	rand    *rand.Rand
	workers sync.WaitGroup
	faults  map[string]int
}

const (
	clients  = 4
	workers  = 3  // of each client
	rounds   = 30 // of each worker
	perFault = 40 // records
)

// TestTheHistoryUnderFaultsIsThatOfAReadersWriterLock has package history
// judge what workers saw while sessions expired, nodes were deleted and
// connections cut.
func TestTheHistoryUnderFaultsIsThatOfAReadersWriterLock(t *testing.T) {
	each(t, func(s scene) {
		seed := rand.Uint64()
		c := &crew{scene: s, rec: history.New(), rand: rand.New(rand.NewPCG(seed, 0)), faults: map[string]int{}}
		c.rec.Note("seed %d", seed)
		for i := range clients {
			c.clients = append(c.clients, coordtest.Open(s.T, s.w.ConnectString()))
			for j := range workers {
				r := rand.New(rand.NewPCG(seed, uint64(1+i*workers+j)))
				l := rw(s.T, c.clients[i], s.path)
				c.workers.Go(func() { c.work(fmt.Sprintf("client %d worker %d", i, j), l, r) })
			}
		}
		c.disturb()
		history.Check(s, c.rec, history.ReadersWriter(s.path))
		granted := 0
		for _, record := range c.rec.Records() {
			if record.Outcome == history.OK && (record.Kind == history.Shared || record.Kind == history.Exclusive) {
				granted++
			}
		}
		s.Logf("%d grants, faults: %v", granted, c.faults)
		for _, fault := range []string{"session expired", "connection cut", "node deleted"} {
			require.Positive(s, c.faults[fault], fault)
		}
		require.Greater(s, granted, clients*workers*rounds/3)
		zktest.Eventually(s, coordtest.Soon, func() bool { return len(s.line()) == 0 }, "nothing is left")
	}, zktest.Embedded, zktest.Ensemble)
}

// work acquires, downgrades and releases, and sometimes does not wait long.
func (c *crew) work(name string, l *rwlock.Lock, r *rand.Rand) {
	for range rounds {
		kind, side := history.Shared, l.AcquireRead
		if r.IntN(3) == 0 {
			kind, side = history.Exclusive, l.AcquireWrite
		}
		patience := coordtest.Soon
		if r.IntN(8) == 0 {
			patience = time.Duration(r.IntN(20)) * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		g, err := history.Acquire(c.rec, name, c.path, kind, func() (*coord.Hold, error) { return side(ctx) })
		cancel()
		if err != nil {
			continue
		}
		c.stay(g, r)
		if kind == history.Exclusive && r.IntN(2) == 0 {
			if g = c.downgrade(name, g); g == nil {
				continue
			}
			c.stay(g, r)
		}
		_ = g.Release(c.Context())
	}
}

func (c *crew) stay(g *history.Grant[*coord.Hold], r *rand.Rand) {
	select {
	case <-g.Hold.Done():
	case <-time.After(time.Duration(r.IntN(2000)) * time.Microsecond):
	}
}

func (c *crew) downgrade(name string, g *history.Grant[*coord.Hold]) (read *history.Grant[*coord.Hold]) {
	read, _ = history.Acquire(c.rec, name, c.path, history.Shared, func() (shared *coord.Hold, err error) {
		err = g.End(history.Release, nil, func() (err error) {
			shared, err = g.Hold.Downgrade(c.Context())
			return err
		})
		return shared, err
	})
	return read
}

// disturb causes a fault each time that much was recorded, until the workers
// are done.
func (c *crew) disturb() {
	done := make(chan struct{})
	go func() {
		c.workers.Wait()
		close(done)
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for next := perFault; ; {
		select {
		case <-done:
			return
		case <-look.C:
		}
		if c.rec.Len() >= next {
			c.fault(c.rand.IntN(3))
			next = c.rec.Len() + perFault
		}
	}
}

// fault also tells the history whose holds the test ends before their time.
func (c *crew) fault(kind int) {
	i := c.rand.IntN(clients)
	session := c.clients[i].SessionID()
	if session == 0 || session == c.expired[i] { // of which it has not heard yet
		return
	}
	names := c.line()
	switch {
	case kind == 0:
		c.expired[i] = session
		c.breaks(i, "session expired", func() { c.w.ExpireSession(session) })
	case kind == 1:
		c.faults["connection cut"]++
		c.w.DropConn(session)
	case len(names) > 0:
		node := c.path + "/" + names[c.rand.IntN(len(names))]
		_, stat, err := c.w.Admin().Exists(node)
		for i, client := range c.clients {
			if err == nil && stat != nil && stat.EphemeralOwner == client.SessionID() {
				c.breaks(i, "node deleted", func() { _ = c.w.Admin().Delete(node, -1) })
			}
		}
	}
}

func (c *crew) breaks(client int, how string, do func()) {
	c.faults[how]++
	before := time.Now()
	do()
	c.rec.Break(fmt.Sprintf("client %d ", client), c.path, how, before, zktest.SessionTimeout)
}
