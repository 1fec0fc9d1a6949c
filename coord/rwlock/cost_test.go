package rwlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// embedded returns a scene on a server that counts requests. Its sessions last
// so long that no probe and no ping gets into the count.
func embedded(t *testing.T) scene {
	t.Helper()
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	w.SetTimeout(time.Hour)
	return scene{t, w, w.Path("lock")}
}

// counted is a client whose requests are counted.
type counted struct {
	*coord.Client
	*rwlock.Lock
	s      scene
	before zkembed.Counts
}

func (s scene) counted() *counted {
	s.Helper()
	c := coordtest.Open(s.T, s.w.ConnectString(), coord.WithSessionTimeout(time.Hour))
	return &counted{c, rw(s.T, c, s.path), s, s.w.Embedded().SessionCounts(c.Info().SessionID)}
}

// since returns what the client has requested since the last call.
func (c *counted) since() zkembed.Counts {
	c.s.Helper()
	now := c.s.w.Embedded().SessionCounts(c.Info().SessionID)
	defer func() { c.before = now }()
	return now.Since(c.before)
}

// watches waits until the client has n watches.
func (c *counted) watches(n int) {
	c.s.Helper()
	zktest.Eventually(c.s, coordtest.Soon, func() bool {
		return slices.ContainsFunc(c.s.w.Embedded().Sessions(), func(session zkembed.SessionInfo) bool {
			return session.ID == c.Info().SessionID && session.Watches == n
		})
	}, "%d watches", n)
}

// waits joins the line and returns when the claim waits.
func (c *counted) waits(side *rwlock.Side) <-chan grant {
	c.s.Helper()
	granted := c.s.joins(side)
	c.watches(2) // our node, and one other
	return granted
}

func TestAReaderThatWaitsMakesSixRequestsAndIsWokenOnce(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().WriteSide())
	first, second := s.joins(s.lock().WriteSide()), s.joins(s.lock().WriteSide())
	c := s.counted()
	reader := c.waits(c.ReadSide())
	made := c.since()
	require.Equal(t, zkembed.Counts{zkembed.OpCreate: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 2}, made)
	release(t, h)
	release(t, coordtest.Had(t, first))
	holds := coordtest.Had(t, second)
	require.Zero(t, c.since().Total(), "the writers before the nearest are not its business")
	release(t, holds)
	reads := coordtest.Had(t, reader)
	require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1}, c.since())
	release(t, reads)
	require.Equal(t, zkembed.Counts{zkembed.OpDelete: 1, zkembed.OpNotify: 1}, c.since(), "the event is our node's")
}

func TestAReleaseWakesOnlyThoseWhoseTurnComes(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().WriteSide())
	var readers []*counted
	var turns []<-chan grant
	for range 4 {
		c := s.counted()
		readers, turns = append(readers, c), append(turns, c.waits(c.ReadSide()))
	}
	writer, last := s.counted(), s.counted()
	writes, reads := writer.waits(writer.WriteSide()), last.waits(last.ReadSide())
	before := s.w.Embedded().Counts()
	for _, c := range append(readers, writer, last) {
		c.since()
	}
	release(t, h)
	var held []*coord.Hold
	for i, c := range readers {
		held = append(held, coordtest.Had(t, turns[i]))
		require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1}, c.since())
	}
	require.Equal(t, len(readers)+1, s.w.Embedded().Counts().Since(before)[zkembed.OpNotify],
		"and the holder hears of its own node")
	release(t, held[:3]...)
	require.Zero(t, writer.since().Total()+last.since().Total(), "readers that leave early wake no waiter")
	release(t, held[3])
	holds := coordtest.Had(t, writes)
	require.Equal(t, 1, writer.since()[zkembed.OpNotify])
	require.Zero(t, last.since().Total())
	release(t, holds)
	release(t, coordtest.Had(t, reads))
}

func TestABusyTryIsOneReadAndARefusalNone(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().ReadSide())
	c := s.counted()
	require.ErrorIs(t, coordtest.Err(c.TryAcquireWrite(coordtest.Limited(t))), coord.ErrBusy)
	require.Equal(t, zkembed.Counts{zkembed.OpGetChildren2: 1}, c.since())
	mine := coordtest.Acquire(t, c.ReadSide())
	c.watches(1) // our node's, which every hold that lasts has
	c.since()
	require.ErrorIs(t, coordtest.Err(c.AcquireWrite(mine.Context(coordtest.Limited(t)))), coord.ErrInvalid)
	again := rw(t, c.Client, s.path, rwlock.Reentrant())
	inner, err := again.AcquireRead(mine.Context(coordtest.Limited(t)))
	require.NoError(t, err)
	require.Zero(t, c.since().Total())
	release(t, inner, mine, h)
}
