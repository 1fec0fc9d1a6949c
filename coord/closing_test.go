package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The server reports the deletion of a watched node before it answers the
// closing that deletes it.
func TestAHoldThatEndsWithItsClientSaysSoAlsoWhenItsNodeIsWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		time.Sleep(time.Second) // until the own watch is set
		b.Close(c)
		<-h.Done()
		require.ErrorIs(t, h.Err(), coord.ErrClosed)
		require.NotErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

func TestATransactionUnderWayWhenItsClientIsClosedIsNotConfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.Create(b.Context(), "/written", nil))
		late := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}}, zkembed.DelayReply(time.Hour))
		failed := make(chan error, 1)
		go func() {
			_, err := c.Txn(b.Context(), coord.SetOp("/written", []byte("once"), -1))
			failed <- err
		}()
		<-late.Struck()
		b.Close(c)
		err := <-failed
		require.ErrorIs(t, err, coord.ErrUnconfirmed)
		require.ErrorIs(t, err, coord.ErrClosed)
		data, _, err := b.Open().Get(b.Context(), "/written")
		require.NoError(t, err)
		require.Equal(t, "once", string(data), "for it was carried out")
	})
}

func TestATransactionThatWaitsToBeSentWhenItsClientIsClosedHasLostItsHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		b.Server.Stop()
		synctest.Wait() // until the client has seen it
		failed := make(chan error, 1)
		go func() {
			_, err := h.Txn(b.Context(), coord.SetOp("/nothing", nil, -1))
			failed <- err
		}()
		synctest.Wait()
		b.Close(c)
		err := <-failed
		require.ErrorIs(t, err, coord.ErrLost)
		require.ErrorIs(t, err, coord.ErrClosed)
		require.NotErrorIs(t, err, coord.ErrUnconfirmed)
		b.Server.Resume()
	})
}
