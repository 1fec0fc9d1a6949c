package coord_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func large(bytes int) coord.Spec {
	spec := mutex
	spec.Line.Dir, spec.Data = "/large", []byte(strings.Repeat("x", bytes))
	return spec
}

const half = 1 << 19

func TestAPacketThatServersCloseOnFailsAfterAFewTriesAndNothingElseIsHarmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		h := b.acquire(c)
		ctx, stop := context.WithCancel(b.Context())
		reading := coordtest.Go(func() error {
			for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
				if _, _, err := c.Get(b.Context(), "/"); err != nil {
					return err
				}
			}
			return nil
		})
		_, err := recipe.Acquire(b.Context(), c, ptr(large(half+1)), first)
		require.ErrorIs(t, err, coord.ErrTooLarge)
		require.ErrorContains(t, err, "jute.maxbuffer")
		require.Len(t, lost, 4)
		for range 10 {
			require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), c, ptr(large(half+1)), first)), coord.ErrTooLarge)
		}
		require.Len(t, lost, 4, "it is known by now")
		smaller := b.acquire(c, large(half-1000))
		require.NoError(t, smaller.Release(b.Context()))
		stop()
		require.NoError(t, <-reading)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Minute)
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), c, ptr(large(half+1)), first)), coord.ErrTooLarge)
		require.Len(t, lost, 5, "servers may have been told otherwise")
	}, zkembed.WithMaxPacket(half))
}

func TestManyPacketsThatServersCloseOnCostNoMoreThanAFew(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		failed := make(chan error)
		for range 8 {
			time.Sleep(10 * time.Millisecond)
			go func() { failed <- coordtest.Err(recipe.Acquire(b.Context(), c, ptr(large(half+1000)), first)) }()
		}
		for range 8 {
			require.ErrorIs(t, <-failed, coord.ErrTooLarge)
		}
		require.LessOrEqual(t, len(lost), 5)
	}, zkembed.WithMaxPacket(half))
}

// F60: what a rolling restart does to a packet that waits, and what it may do,
// twice in a row, to the trial of its size.
func TestF60ConnectionsThatAreClosedUnderAPacketAreNoSignOfALimit(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
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
		c, lost := b.hearing(event.SessionDown)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1},
			zkembed.Drop())
		acquired := coordtest.Go(func() error {
			return coordtest.Err(recipe.Acquire(b.Context(), c, ptr(large(10_000)), first))
		})
		for range 6 {
			trial := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/xxx", Times: 1},
				zkembed.Drop())
			select {
			case <-trial.Struck():
			case err := <-acquired:
				require.NoError(t, err)
			}
			time.Sleep(40 * time.Millisecond) // connected again, and before the next trial
			require.NoError(t, b.Server.DropConn(c.Info().SessionID))
		}
		require.NoError(t, <-acquired)
		require.Len(t, lost, 13)
	})
}

func TestALimitThatIsConfiguredCostsNoConnection(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown, coord.WithMaxPacket(half))
		_, err := recipe.Acquire(b.Context(), c, ptr(large(half)), first)
		require.ErrorIs(t, err, coord.ErrTooLarge)
		require.ErrorContains(t, err, "524288")
		h := b.acquire(c, large(half-1000))
		require.NoError(t, h.Release(b.Context()))
		require.Empty(t, lost)
	}, zkembed.WithMaxPacket(half))
}

// A packet's size is counted to the byte: one more would cost the connection.
func TestAllOfAPacketIsCounted(t *testing.T) {
	const path, limit = "/node", 0xfffff
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown, coord.WithACL("world:anyone:cdrwa"))
		const oneByte = 9 + 4 + len(path) + 5 + 4 + 1 + 4 + 4 + 4 + 5 + 4 + 6 + 4 // "/node" and five digits
		most := (limit - 8 - 9) / oneByte
		ops := make([]coord.Op, most+1)
		for i := range ops {
			ops[i] = coord.CreateOp(fmt.Sprintf("%s%05d", path, i), []byte("x"))
		}
		require.ErrorIs(t, coordtest.Err(c.Txn(b.Context(), ops...)), coord.ErrTooLarge)
		require.NoError(t, coordtest.Err(c.Txn(b.Context(), ops[:most]...)))
		require.Empty(t, lost)
		data := make([]byte, limit-8-9-9-4-len(path)-4-4)
		require.NoError(t, c.Create(b.Context(), path, nil))
		require.NoError(t, coordtest.Err(c.Set(b.Context(), path, data, -1)))
		require.ErrorIs(t, coordtest.Err(c.Set(b.Context(), path, append(data, 0), -1)), coord.ErrTooLarge)
		const checks = 11_155 // of 94 bytes each, besides 17
		ops = slices.Repeat([]coord.Op{coord.CheckOp("/"+strings.Repeat("d", 76), -1)}, checks)
		require.ErrorIs(t, coordtest.Err(c.Txn(b.Context(), ops...)), coord.ErrTooLarge)
		_, err := c.Txn(b.Context(), ops[1:]...)
		require.ErrorIs(t, err, coord.ErrNoNode, "the server has looked at it")
		require.Empty(t, lost)
	})
}

func TestAnItemThatFitsWhereItsClaimDoesNotIsReceived(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		q, err := queue.New(c, "/q")
		require.NoError(t, err)
		data := []byte(strings.Repeat("x", half-220))
		require.NoError(t, q.Put(b.Context(), data))
		item, err := q.Receive(b.Context())
		require.NoError(t, err)
		require.Equal(t, data, item.Data)
		require.NoError(t, item.Ack(b.Context()))
		require.LessOrEqual(t, len(lost), 5)
		require.NotEmpty(t, lost, "the claim fits")
	}, zkembed.WithMaxPacket(half))
}

// As servers before ZooKeeper 3.5 do.
func TestAServerThatClosesTheConnectionOnAContainerGetsPersistentDirectories(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1000}, zkembed.Drop())
		h := b.acquire(c)
		require.Len(t, lost, 2)
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, c.EnsureDir(b.Context(), "/another/directory"))
		require.Len(t, lost, 2)
	})
}

func TestAServerThatSaysThatItKnowsNoContainersIsAskedOnceInASession(t *testing.T) {
	inBubble(t, func(b bubble) {
		unknown := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 9},
			zkembed.ReplyError(zkembed.CodeUnimplemented))
		c, lost := b.hearing(event.SessionDown)
		for _, dir := range []string{"/a", "/b"} {
			require.NoError(t, c.EnsureDir(b.Context(), dir))
			require.NoError(t, c.Create(b.Context(), dir+"/child", nil))
			require.NoError(t, c.Delete(b.Context(), dir+"/child", -1))
		}
		require.Equal(t, 1, unknown.Fired())
		require.Zero(t, b.Server.Reap(), "a container")
		require.Empty(t, lost)
	})
}

func TestAServerIsAskedForNoContainerWhereTheUserSaysSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown, coord.WithoutContainers())
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1}, zkembed.Drop())
		require.NoError(t, c.EnsureDir(b.Context(), "/a/directory"))
		require.Empty(t, lost)
	})
}

func TestAContainerWhoseConnectionsAreCutNowAndThenIsAContainer(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		for _, dir := range []string{"/a", "/b", "/c", "/d"} {
			b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, Times: 1}, zkembed.Drop())
			require.NoError(t, c.EnsureDir(b.Context(), dir))
			require.NoError(t, c.Create(b.Context(), dir+"/child", nil))
			require.NoError(t, c.Delete(b.Context(), dir+"/child", -1))
			require.Equal(t, 1, b.Server.Reap(), "%s is no container", dir)
		}
		require.Len(t, lost, 4)
	})
}
