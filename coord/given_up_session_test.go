package coord_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that comes back gives every session its whole time again.
func TestASessionThatWasGivenUpIsClosedWhereTheServersStillHaveIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		b.Server.Stop()
		time.Sleep(2 * T)
		require.True(t, ended(h))
		resumed := time.Now()
		b.Server.Resume()
		next := b.acquire(c)
		t.Log(time.Since(resumed))
		require.NotEqual(t, h.Session(), next.Session())
		require.Less(t, time.Since(resumed), T/4, "the former node is not waited for")
		require.NoError(t, next.Release(b.Context()))
	})
}
