package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// acquirer is a lock, and releaser what is held of it.
type (
	acquirer func(context.Context) (releaser, error)
	releaser func(context.Context) error
)

// herdLock is the simple lock, to compare with and not to use: one ephemeral
// node, which all try to create and all watch.
type herdLock struct{ client *coord.Client }

const herdNode = "/herd"

func (l herdLock) acquire(ctx context.Context) (releaser, error) {
	for {
		_, err := l.client.Txn(ctx, coord.CreateOp(herdNode, nil, coord.Ephemeral))
		if err == nil {
			return func(ctx context.Context) error { return l.client.Delete(ctx, herdNode, -1) }, nil
		}
		if !errors.Is(err, coord.ErrNodeExists) {
			return nil, err
		}
		err = l.client.Wait(ctx, func(v *coord.View) (gone bool, err error) {
			_, _, err = v.Get(herdNode)
			return false, err
		})
		if !errors.Is(err, coord.ErrNoNode) {
			return nil, err
		}
	}
}

type lineLock struct{ *lock.Mutex }

func (l lineLock) acquire(ctx context.Context) (releaser, error) {
	h, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return h.Release, nil
}

// handOver is what the server saw.
type handOver struct{ requests, events int }

// handOvers has n wait, each in a session of its own, and releases the lock
// until all have had it. It returns what the server saw when n waited, and in
// all of the n hand-overs.
func handOvers(t *testing.T, n int, lockOf func(*coord.Client) acquirer) (first, all handOver) {
	t.Helper()
	const long = 10 * time.Hour // no client pings or probes meanwhile
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		granted := make(chan releaser, 1)
		for range n + 1 {
			acquire := lockOf(b.Open(coord.WithSessionTimeout(long)))
			go func() {
				release, err := acquire(b.Context())
				if err != nil {
					b.Error(err)
				}
				granted <- release
			}()
			synctest.Wait()
		}
		release := <-granted
		time.Sleep(time.Second) // whatever is still done in the background
		begun := b.Server.Counts()
		for i := range n {
			require.NoError(b, release(b.Context()))
			release = <-granted
			time.Sleep(time.Second)
			seen := b.Server.Counts().Since(begun)
			all = handOver{seen.Total(), seen[zkembed.OpNotify]}
			if i == 0 {
				first = all
			}
		}
		require.NoError(b, release(b.Context()))
	}, zkembed.WithSessionTimeouts(0, long))
	return first, all
}

// What the herd costs, and what it costs to have none: in the simple lock each
// release wakes every waiter, in this one the same two however many wait.
func TestAHandOverCostsTheSameHoweverManyWaitAndWithAHerdItDoesNot(t *testing.T) {
	type row struct{ herd, line handOver }
	rows := map[int]row{}
	t.Log("waiting | herd: requests, events | line: requests, events | all n hand-overs: herd | line")
	for _, n := range []int{2, 8, 32} {
		var r, all row
		r.herd, all.herd = handOvers(t, n, func(c *coord.Client) acquirer { return herdLock{c}.acquire })
		r.line, all.line = handOvers(t, n, func(c *coord.Client) acquirer { return lineLock{mutex(t, c, "/line")}.acquire })
		rows[n] = r
		t.Logf("%7d | %14d, %6d | %14d, %6d | %8d, %5d | %4d, %5d", n, r.herd.requests, r.herd.events,
			r.line.requests, r.line.events, all.herd.requests, all.herd.events, all.line.requests, all.line.events)
		// The delete, a create by each, and a read by each that came too late.
		require.Equal(t, handOver{1 + n + n - 1, n}, r.herd)
	}
	require.Equal(t, rows[8].line, rows[32].line)
	require.Less(t, rows[32].line.requests, 10)
	require.Less(t, rows[32].line.events, 10)
}
