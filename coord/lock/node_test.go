package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The other is a program that knows nothing but the node.
func TestALockThatIsOneNodeExcludesAndIsExcluded(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		n, err := lock.NewNode(c, "/a/controller")
		require.NoError(b, err)
		require.NoError(b, other.EnsureDir(b.Context(), "/a"))
		_, err = other.Txn(b.Context(), coord.EphemeralOp(n.Path(), []byte("other")))
		require.NoError(b, err)
		require.ErrorIs(b, coordtest.Err(n.TryAcquire(b.Context())), coord.ErrBusy)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		require.ErrorIs(b, coordtest.Err(n.Acquire(ctx)), context.DeadlineExceeded)
		held := make(chan *coord.Hold, 2)
		for range 2 {
			go func() {
				h, err := n.Acquire(b.Context())
				if err == nil {
					held <- h
				}
			}()
		}
		time.Sleep(coordtest.T)
		require.Empty(b, held)
		require.NoError(b, other.Delete(b.Context(), n.Path(), -1))
		time.Sleep(time.Second)
		require.Len(b, held, 1, "two of one client exclude each other, too")
		h := <-held
		require.NotZero(b, h.Token())
		_, err = other.Txn(b.Context(), coord.EphemeralOp(n.Path(), nil))
		require.ErrorIs(b, err, coord.ErrNodeExists)
		require.NoError(b, coordtest.Err(h.Txn(b.Context(), coord.CheckOp("/a", -1))))
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, (<-held).Release(b.Context()))
	})
}

func TestALockThatIsOneNodeIsGrantedOnceWhenTheReplyIsLost(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop(), zkembed.CarryOutLate(coordtest.T / 4)} {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			const n = 3
			c := b.Open()
			require.NoError(b, c.EnsureDir(b.Context(), "/a"))
			l, err := lock.NewNode(c, "/a/controller")
			require.NoError(b, err)
			lost := b.Server.Inject(zkembed.Match{
				Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: n,
			}, fault)
			held := make(chan *coord.Hold, n)
			for range n {
				go func() {
					if h, err := l.Acquire(b.Context()); err == nil {
						held <- h
					}
				}()
			}
			for range n {
				time.Sleep(2 * coordtest.T)
				require.Len(b, held, 1)
				require.NoError(b, (<-held).Release(b.Context()))
			}
			require.Equal(b, n, lost.Fired())
		})
	}
}

func TestAMutexInADescribedLineShowsItsContendersAndRefusesWhatDoesNotGoThere(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		m, err := lock.New(c, "/l", lock.Dialect(coord.ZooKeeper), lock.Data([]byte(`{"host":"a"}`)))
		require.NoError(b, err)
		h, err := m.Acquire(b.Context())
		require.NoError(b, err)
		line, err := m.Contenders(b.Context())
		require.NoError(b, err)
		require.Len(b, line, 1)
		require.True(b, line[0].Holds)
		require.Equal(b, `{"host":"a"}`, line[0].Owner)
		require.Equal(b, h.Token(), line[0].Token)
		for _, opts := range [][]lock.Option{
			{lock.Dialect(coord.ZooKeeper), lock.Delay(time.Second)}, {lock.Dialect("n_")}, {lock.Data([]byte("unlock"))},
		} {
			require.ErrorIs(b, coordtest.Err(lock.New(c, "/l", opts...)), coord.ErrInvalid)
		}
		one, err := lock.New(c, "/l", lock.Dialect(coord.Named("one")))
		require.NoError(b, err)
		two, err := lock.New(c, "/l", lock.Dialect(coord.Named("two")))
		require.NoError(b, err)
		require.ErrorIs(b, coordtest.Err(lock.NewMulti(one, one)), coord.ErrInvalid)
		multi, err := lock.NewMulti(two, one)
		require.NoError(b, err)
		g, err := multi.Acquire(b.Context())
		require.NoError(b, err)
		require.NoError(b, g.Release(b.Context()))
		require.NoError(b, h.Release(b.Context()))
	})
}
