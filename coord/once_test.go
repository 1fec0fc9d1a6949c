package coord_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func (b bubble) once(c *coord.Client) *coord.ExactlyOnce {
	b.Helper()
	o, err := c.ExactlyOnce("/once")
	require.NoError(b, err)
	return o
}

// release releases a hold by a transaction.
func (b bubble) release(ctx context.Context, c *coord.Client, h *coord.Hold, ops ...coord.Op) error {
	o := b.once(c)
	defer o.Close(context.Background())
	return o.Release(ctx, []*coord.Hold{h}, ops...)
}

// add is an operation that would be seen if it was carried out twice.
var add = coord.CreateOp("/count/n-", nil, coord.Sequential)

func (b bubble) children(path string) (n int) {
	for _, node := range b.Server.Nodes() {
		if strings.HasPrefix(node.Path, path+"/") {
			n++
		}
	}
	return n
}

// strike makes the server lose, or never see, the transactions of an
// ExactlyOnce with one operation.
func (b bubble) strike(a zkembed.Action, times int) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: times, Func: func(r zkembed.Request) bool {
		return len(r.Parts) == 2
	}}, a)
}

func TestATransactionWhoseReplyIsLostIsNotCarriedOutTwice(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			c := b.Open()
			require.NoError(b, c.EnsureDir(b.Context(), "/count"))
			o := b.once(c)
			for times := range 4 {
				f := b.strike(fault, times)
				if times == 0 {
					f.Remove()
				}
				results, err := o.Txn(b.Context(), add)
				require.NoError(b, err)
				require.Equal(b, times+1, b.children("/count"))
				if results != nil {
					require.Equal(b, fmt.Sprintf("/count/n-%010d", times), results[0].Path)
				}
				f.Remove()
			}
			require.Equal(b, 1, b.children("/once"))
		})
	}
}

func TestARefusedTransactionNamesTheOperationThatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		for _, fault := range []int{0, 1} {
			f := b.strike(zkembed.Drop(), 1)
			if fault == 0 {
				f.Remove()
			}
			_, err := o.Txn(b.Context(), add, coord.DeleteOp("/missing", -1))
			var refused *coord.TxnError
			require.ErrorAs(b, err, &refused)
			require.Equal(b, 1, refused.Index)
			require.ErrorIs(b, err, coord.ErrNoNode)
			require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		}
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)), "the witness is still good")
		require.Equal(b, 1, b.children("/count"))
	})
}

func TestTransactionsAtTheSameTimeShareAtMostThirtyTwoWitnesses(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)))
			})
		}
		wg.Wait()
		require.Equal(b, 200, b.children("/count"))
		require.LessOrEqual(b, b.children("/once"), 32)
		require.NoError(b, o.Close(b.Context()))
		require.Zero(b, b.children("/once"))
		require.ErrorIs(b, coordtest.Err(o.Txn(b.Context(), add)), coord.ErrReleased)
	})
}

func TestAnIdleWitnessIsNotProbedFor(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		require.NoError(b, coordtest.Err(b.once(c).Txn(b.Context(), add)))
		before := b.Server.SessionCounts(c.SessionID())
		time.Sleep(10 * T)
		require.Zero(b, b.Server.SessionCounts(c.SessionID()).Since(before).Total())
	})
}

func TestAWitnessDeletedByHandOrEndedWithItsSessionIsReplaced(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)))
		names, err := c.Children(b.Context(), "/once")
		require.NoError(b, err)
		require.NoError(b, c.Delete(b.Context(), "/once/"+names[0], -1))
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)))
		names, err = c.Children(b.Context(), "/once")
		require.NoError(b, err)
		require.NoError(b, coordtest.Err(c.Set(b.Context(), "/once/"+names[0], nil, -1)))
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)), "another client wrote the witness")
		require.NoError(b, b.Server.ExpireSession(c.SessionID()))
		require.NoError(b, coordtest.Write(b.Context(), c), "the client has another session")
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)))
		require.Equal(b, 4, b.children("/count"))
	})
}

func TestATransactionLeftInItsMiddleIsUnconfirmedAndLeavesNoWitness(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		f := b.strike(zkembed.DelayReply(time.Second), 1)
		_, err := o.Txn(b.Within(500*time.Millisecond), add)
		require.ErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Equal(b, 1, f.Fired())
		time.Sleep(2 * time.Second)
		require.Equal(b, 1, b.children("/count"))
		require.Zero(b, b.children("/once"))
	})
}

func TestATransactionGivenUpWhileItsWitnessIsMadeLeavesNoWitness(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/once"))
		for range 500 {
			ctx, cancel := context.WithCancel(b.Context())
			go cancel() // before, while, or after the create is sent
			o := b.once(c)
			require.Error(b, coordtest.Err(o.Txn(ctx, add)))
			require.NoError(b, o.Close(b.Context()))
		}
		time.Sleep(time.Second)
		require.Zero(b, b.children("/once"))
	})
}

func TestATransactionWhoseSessionEndsBeforeTheReplyIsUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		f := b.strike(zkembed.LoseReply(), 1)
		id := c.SessionID()
		go func() {
			<-f.Struck()
			require.NoError(b, b.Server.ExpireSession(id))
		}()
		_, err := o.Txn(b.Context(), add)
		require.ErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, err, coord.ErrSessionExpired)
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)))
		require.Equal(b, 2, b.children("/count"))
	})
}

func TestATransactionThatWasNeverSentIsNotUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		o := b.once(c)
		b.Server.Stop()
		defer b.Server.Resume()
		synctest.Wait()
		_, err := o.Txn(b.Within(time.Second), add)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, coordtest.Err(c.ExactlyOnce("relative")), coord.ErrInvalid)
		require.ErrorIs(b, coordtest.Err(o.Txn(b.Context())), coord.ErrInvalid)
	})
}
