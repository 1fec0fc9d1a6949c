package coord_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// counting opens a client that counts its lost connections.
func (b bubble) counting(opts ...coord.Option) (*coord.Client, *atomic.Int32) {
	lost := new(atomic.Int32)
	return b.Open(append(opts, coord.WithObserver(func(e event.Event) {
		if e.Kind == event.SessionDown {
			lost.Add(1)
		}
	}))...), lost
}

func large(bytes int) coord.Spec {
	spec := mutex
	spec.Line.Dir, spec.Data = "/large", []byte(strings.Repeat("x", bytes))
	return spec
}

const half = 1 << 19

func TestAPacketThatServersCloseOnFailsAfterAFewTriesAndNothingElseIsHarmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		h := b.acquire(c)
		ctx, stop := context.WithCancel(b.Context())
		reading := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				if _, _, err := c.Get(b.Context(), "/"); err != nil {
					reading <- err
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			reading <- nil
		}()
		_, err := c.Acquire(b.Context(), large(half+1), first)
		require.ErrorIs(t, err, coord.ErrTooLarge)
		require.ErrorContains(t, err, "jute.maxbuffer")
		require.EqualValues(t, 4, lost.Load())
		for range 10 {
			require.ErrorIs(t, coordtest.Err(c.Acquire(b.Context(), large(half+1), first)), coord.ErrTooLarge)
		}
		require.EqualValues(t, 4, lost.Load(), "it is known by now")
		smaller := b.acquire(c, large(half-1000))
		require.NoError(t, smaller.Release(b.Context()))
		stop()
		require.NoError(t, <-reading)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Minute)
		require.ErrorIs(t, coordtest.Err(c.Acquire(b.Context(), large(half+1), first)), coord.ErrTooLarge)
		require.EqualValues(t, 5, lost.Load(), "servers may have been told otherwise")
	}, zkembed.WithMaxPacket(half))
}

func TestManyPacketsThatServersCloseOnCostNoMoreThanAFew(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		failed := make(chan error)
		for range 8 {
			time.Sleep(10 * time.Millisecond)
			go func() {
				_, err := c.Acquire(b.Context(), large(half+1000), first)
				failed <- err
			}()
		}
		for range 8 {
			require.ErrorIs(t, <-failed, coord.ErrTooLarge)
		}
		require.LessOrEqual(t, lost.Load(), int32(5))
	}, zkembed.WithMaxPacket(half))
}

// F60: what a rolling restart does to a packet that waits, and what it may do,
// twice in a row, to the trial of its size.
func TestF60ConnectionsThatAreClosedUnderAPacketAreNoSignOfALimit(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, _ := b.counting()
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/large/", Times: 5}, zkembed.Drop())
		for i := range 3 {
			b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/xxx", Times: 2}, zkembed.Drop())
			h := b.acquire(c, large(10_000*(i+1)))
			require.NoError(t, h.Release(b.Context()))
		}
	})
}

// A proxy that flaps closes connections with and without a packet.
func TestF60ConnectionsThatAreClosedAnywayAreNoSignOfALimit(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Drop())
		acquired := coordtest.Go(func() error { return coordtest.Err(c.Acquire(b.Context(), large(10_000), first)) })
		for range 6 {
			trial := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/xxx", Times: 1}, zkembed.Drop())
			select {
			case <-trial.Struck():
			case err := <-acquired:
				require.NoError(t, err)
			}
			time.Sleep(40 * time.Millisecond) // connected again, and before the next trial
			require.NoError(t, b.Server.DropConn(c.SessionID()))
		}
		require.NoError(t, <-acquired)
		require.EqualValues(t, 13, lost.Load())
	})
}

func TestALimitThatIsConfiguredCostsNoConnection(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting(coord.WithMaxPacket(half))
		_, err := c.Acquire(b.Context(), large(half), first)
		require.ErrorIs(t, err, coord.ErrTooLarge)
		require.ErrorContains(t, err, "524288")
		h := b.acquire(c, large(half-1000))
		require.NoError(t, h.Release(b.Context()))
		require.Zero(t, lost.Load())
	}, zkembed.WithMaxPacket(half))
}

// A packet's size is counted to the byte: one more would cost the connection.
func TestAllOfAPacketIsCounted(t *testing.T) {
	const path, limit = "/node", 0xfffff
	inBubble(t, func(b bubble) {
		c, lost := b.counting(coord.WithACL("world:anyone:cdrwa"))
		const oneByte = 9 + 4 + len(path) + 5 + 4 + 1 + 4 + 4 + 4 + 5 + 4 + 6 + 4 // "/node" and five digits
		most := (limit - 8 - 9) / oneByte
		ops := make([]coord.Op, most+1)
		for i := range ops {
			ops[i] = coord.CreateOp(path+string([]byte{'0' + byte(i/10000), '0' + byte(i/1000%10), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)}), []byte("x"))
		}
		require.ErrorIs(t, coordtest.Err(c.Txn(b.Context(), ops...)), coord.ErrTooLarge)
		require.NoError(t, coordtest.Err(c.Txn(b.Context(), ops[:most]...)))
		require.Zero(t, lost.Load())
		data := make([]byte, limit-8-9-9-4-len(path)-4-4)
		require.NoError(t, c.Create(b.Context(), path, nil))
		require.NoError(t, coordtest.Err(c.Set(b.Context(), path, data, -1)))
		require.ErrorIs(t, coordtest.Err(c.Set(b.Context(), path, append(data, 0), -1)), coord.ErrTooLarge)
		require.Zero(t, lost.Load())
	})
}

func TestAnItemThatFitsWhereItsClaimDoesNotIsReceived(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		q, err := queue.New(c, "/q")
		require.NoError(t, err)
		data := []byte(strings.Repeat("x", half-220))
		require.NoError(t, q.Put(b.Context(), data))
		item, err := q.Receive(b.Context())
		require.NoError(t, err)
		require.Equal(t, data, item.Data)
		require.NoError(t, item.Ack(b.Context()))
		require.LessOrEqual(t, lost.Load(), int32(5))
		require.Positive(t, lost.Load(), "the claim fits")
	}, zkembed.WithMaxPacket(half))
}

// As servers before ZooKeeper 3.5 do.
func TestAServerThatClosesTheConnectionOnAContainerGetsPersistentDirectories(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1000}, zkembed.Drop())
		h := b.acquire(c)
		require.EqualValues(t, 2, lost.Load())
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, c.EnsureDir(b.Context(), "/another/directory"))
		require.EqualValues(t, 2, lost.Load())
	})
}

func TestAServerThatSaysThatItKnowsNoContainersIsAskedOnceInASession(t *testing.T) {
	inBubble(t, func(b bubble) {
		unknown := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 9}, zkembed.ReplyError(zkembed.CodeUnimplemented))
		c, lost := b.counting()
		for _, dir := range []string{"/a", "/b"} {
			require.NoError(t, c.EnsureDir(b.Context(), dir))
			require.NoError(t, c.Create(b.Context(), dir+"/child", nil))
			require.NoError(t, c.Delete(b.Context(), dir+"/child", -1))
		}
		require.Equal(t, 1, unknown.Fired())
		require.Zero(t, b.Server.Reap(), "a container")
		require.Zero(t, lost.Load())
	})
}

func TestAServerIsAskedForNoContainerWhereTheUserSaysSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting(coord.WithoutContainers())
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1}, zkembed.Drop())
		require.NoError(t, c.EnsureDir(b.Context(), "/a/directory"))
		require.Zero(t, lost.Load())
	})
}

func TestAContainerWhoseConnectionsAreCutNowAndThenIsAContainer(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.counting()
		for _, dir := range []string{"/a", "/b", "/c", "/d"} {
			b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1}, zkembed.Drop())
			require.NoError(t, c.EnsureDir(b.Context(), dir))
			require.NoError(t, c.Create(b.Context(), dir+"/child", nil))
			require.NoError(t, c.Delete(b.Context(), dir+"/child", -1))
			require.Equal(t, 1, b.Server.Reap(), "%s is no container", dir)
		}
		require.EqualValues(t, 4, lost.Load())
	})
}
