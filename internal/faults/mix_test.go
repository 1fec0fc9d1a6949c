package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// mix is what the recipes do to which paths, and its history.
type mix struct {
	s       scene
	rec     *history.Recorder
	ctx     context.Context
	wg      sync.WaitGroup
	clients []*coord.Client
}

const leases, party = 2, 3

// keys are the parts of the mix.
var keys = []string{"lock", "shared", "semaphore", "election", "queue", "double"}

// All recipes, while connections flap, the server is killed and comes back, and
// sessions are ended.
func TestF45TheRecipesKeepTheirPromisesUnderAMixOfFaults(t *testing.T) {
	onReal(t, func(s scene) {
		ctx, cancel := context.WithCancel(context.Background())
		m := &mix{s: s, rec: history.New(), ctx: ctx}
		s.Cleanup(func() { cancel(); m.wg.Wait() })
		for i := range party {
			m.join(fmt.Sprint("c", i))
		}
		last := m.trouble(long(20*time.Second, 6*time.Second))
		for _, name := range keys {
			zktest.Eventually(s, progress, func() bool { return m.grantedSince(name, last) }, "%s is stuck", name)
		}
		cancel()
		m.wg.Wait()
		m.drain()
		s.Logf("%d operations", m.rec.Len())
		history.Check(s, m.rec, history.Mutex(s.w.Path("lock")), history.ReadersWriter(s.w.Path("shared")),
			history.Leases(s.w.Path("semaphore"), leases), history.Election(s.w.Path("election")),
			history.Queue(s.w.Path("queue"), true), history.Rounds(s.w.Path("double"), party))
		// All leases are free again.
		free, err := semaphore.New(m.clients[0], s.w.Path("semaphore"), leases)
		require.NoError(s, err)
		g, err := free.AcquireN(s.Context(), leases)
		require.NoError(s, err)
		require.NoError(s, g.Release(context.Background()))
		require.Empty(s, s.drained(progress, s.ephemerals), "ephemeral nodes are left")
		// The watches of a semaphore's limit and a barrier's state last as long
		// as their clients, one of each.
		for _, c := range m.clients {
			require.NoError(s, c.Close(context.Background()))
		}
	})
}

// join has another client take part in everything.
func (m *mix) join(who string) {
	s, c := m.s, m.s.behind()
	m.clients = append(m.clients, c)
	mu, err := lock.New(c, s.w.Path("lock"))
	require.NoError(s, err)
	rw, err := rwlock.New(c, s.w.Path("shared"))
	require.NoError(s, err)
	sem, err := semaphore.New(c, s.w.Path("semaphore"), leases)
	require.NoError(s, err)
	e, err := election.New(c, s.w.Path("election"))
	require.NoError(s, err)
	q, err := queue.New(c, s.w.Path("queue"))
	require.NoError(s, err)
	b, err := doublebarrier.New(c, s.w.Path("double"), party, doublebarrier.WaitForNextRound())
	require.NoError(s, err)
	campaign := func(ctx context.Context) (*election.Term, error) { return e.Campaign(ctx, []byte(who)) }
	m.wg.Go(func() { occupy(m, who, "lock", history.Exclusive, mu.Acquire) })
	m.wg.Go(func() { occupy(m, who+".r", "shared", history.Shared, rw.AcquireRead) })
	m.wg.Go(func() { occupy(m, who+".w", "shared", history.Exclusive, rw.AcquireWrite) })
	m.wg.Go(func() { occupy(m, who, "semaphore", history.Lease, sem.Acquire) })
	m.wg.Go(func() { occupy(m, who, "election", history.Exclusive, campaign) })
	m.wg.Go(func() { m.serve(who, q) })
	m.wg.Go(func() { m.meet(who, b) })
}

// trouble makes the faults, for some time, and returns when the last was over.
func (m *mix) trouble(lasts time.Duration) (over time.Time) {
	s := m.s
	random, kinds := s.random(), map[string]int{}
	server, flapping := s.w.Real(), s.w.Proxy().Flap(50*time.Millisecond, 500*time.Millisecond, random.Uint64())
	end := time.Now().Add(lasts)
	for n := 0; n < 2 || time.Now().Before(end); n++ {
		if n == 0 || n > 1 && random.IntN(2) == 0 {
			m.rec.Note("kill -9")
			require.NoError(s, server.Restart())
			kinds["kill -9"]++
		} else {
			i := random.IntN(len(m.clients))
			from := time.Now()
			if server.ExpireSession(m.clients[i].SessionID()) == nil {
				kinds["session ended"]++
			}
			m.rec.Break(fmt.Sprint("c", i), "", "its session was ended", from, T)
		}
		s.wait(300*time.Millisecond+time.Duration(random.Int64N(int64(700*time.Millisecond))), time.Now())
	}
	kinds["cut"] = flapping()
	over = time.Now()
	for _, kind := range []string{"kill -9", "session ended", "cut"} {
		require.Positive(s, kinds[kind], kind)
	}
	s.Logf("faults %v", kinds)
	return over
}

// grantedSince reports whether something that began since then succeeded.
func (m *mix) grantedSince(name string, since time.Time) bool {
	for _, r := range m.rec.Records() {
		if r.Key != m.s.w.Path(name) || r.Outcome != history.OK || r.Call < since.Sub(m.rec.Begin()) {
			continue
		}
		switch r.Kind {
		case history.Exclusive, history.Shared, history.Lease, history.Receive, history.Enter:
			return true
		}
	}
	return false
}

// linger holds for a moment.
func linger(done <-chan struct{}) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// occupy holds for a moment, again and again.
func occupy[H history.Holder](m *mix, who, name string, kind history.Kind, acquire func(context.Context) (H, error)) {
	for m.ctx.Err() == nil {
		g, err := history.Acquire(m.rec, who, m.s.w.Path(name), kind, func() (H, error) { return acquire(m.ctx) })
		if err != nil {
			continue
		}
		linger(g.Hold.Done())
		_ = g.Release(context.Background())
	}
}

// serve puts an item into the queue and receives one, again and again.
func (m *mix) serve(who string, q *queue.Queue) {
	key := m.s.w.Path("queue")
	for i := 0; m.ctx.Err() == nil; i++ {
		item := fmt.Sprint(who, "-", i)
		put := m.rec.Call(who, key, history.Put, history.Item(item))
		if err := q.Put(m.ctx, []byte(item)); err != nil {
			put.End(history.Unknown, err)
		} else {
			put.End(history.OK, nil)
		}
		m.consume(m.ctx, who, q)
	}
	_ = q.Close(context.Background())
}

// consume receives an item, if one comes soon, and acknowledges it.
func (m *mix) consume(ctx context.Context, who string, q *queue.Queue) {
	key := m.s.w.Path("queue")
	soon, cancel := context.WithTimeout(ctx, T)
	defer cancel()
	op := m.rec.Call(who, key, history.Receive)
	item, err := q.Receive(soon)
	if err != nil {
		op.End(history.Failed, err)
		return
	}
	op.End(history.OK, nil, history.Item(string(item.Data)))
	sure := m.rec.Begin()
	if now := time.Now(); item.Err() == nil {
		sure = now
	}
	linger(item.Done())
	ack := m.rec.Call(who, key, history.Ack, history.Of(op))
	if err := item.Err(); err != nil {
		op.Lost(sure, err)
	}
	settled, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch err := item.Ack(settled); {
	case err == nil:
		ack.End(history.OK, nil)
	case errors.Is(err, queue.ErrStale):
		ack.End(history.Failed, err)
	default:
		ack.End(history.Unknown, err)
	}
}

// drain empties the queue, so that what is missing then is lost.
func (m *mix) drain() {
	s := m.s
	q := s.queue(m.clients[0])
	zktest.Eventually(s, patience, func() bool {
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		if n > 0 {
			m.consume(s.Context(), "drain", q)
		}
		return n == 0
	}, "the queue does not become empty")
	require.NoError(s, q.Close(s.Context()))
}

// meet takes part in the double barrier's rounds.
func (m *mix) meet(who string, b *doublebarrier.Barrier) {
	key := m.s.w.Path("double")
	for m.ctx.Err() == nil {
		op := m.rec.Call(who, key, history.Enter)
		member, err := b.Enter(m.ctx)
		if err != nil {
			op.End(history.Failed, err)
			continue
		}
		op.End(history.OK, nil, history.Round(member.Round()), history.Weight(member.Count()))
		linger(member.Done())
		left := m.rec.Call(who, key, history.Leave, history.Of(op))
		if err := member.Err(); err != nil {
			op.Lost(member.Hold().Deadline(), err)
		}
		leaving, cancel := context.WithTimeout(context.Background(), patience)
		err = member.Leave(leaving)
		cancel()
		var incomplete *doublebarrier.IncompleteError
		switch {
		case err == nil:
			left.End(history.OK, nil, history.Verdict(history.Complete))
		case errors.As(err, &incomplete):
			left.End(history.OK, err, history.Verdict(fmt.Sprint("missing ", incomplete.Missing)))
		default:
			left.End(history.Unknown, err)
		}
	}
}
