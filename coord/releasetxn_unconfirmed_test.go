package coord_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The first attempt was carried out and its reply lost; the client is closed
// before the second.
func TestATransactionThatReleasesIsUnconfirmedIfAnAttemptWas(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		f := b.Server.Inject(zkembed.Match{PathPrefix: "/done"}, zkembed.LoseReply())
		failed := make(chan error, 1)
		go func() { failed <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
		<-f.Struck()
		time.Sleep(time.Millisecond)
		b.Server.Stop()
		time.Sleep(time.Second)
		require.Empty(b, failed)
		b.Close(c)
		err := <-failed
		require.ErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, err, coord.ErrClosed)
		b.Server.Resume()
	})
}
