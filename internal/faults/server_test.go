package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestF11AServerIsKilledAndBackWithinTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		s.w.SetTimeout(2 * T)
		// A JVM needs a moment to start.
		c := s.client(coord.WithSessionTimeout(2 * T))
		h := s.acquire(c)
		token := h.Token()
		s.w.Crash()
		s.w.Recover()
		zktest.Eventually(s, patience, func() bool { return c.Flush(s.Context()) == nil }, "the client does not come back")
		require.NoError(s, h.Err())
		require.Equal(s, token, h.Token())
		s.isSoleHolder(h)
		s.release(h)
	})
}

func TestF12AServerIsDownForLongerThanTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Crash()
		deadline := h.Deadline()
		err := s.lost(h, patience)
		require.ErrorIs(s, err, coord.ErrWindowOver)
		require.False(s, time.Now().Before(deadline), "lost before the window was over")
		require.Less(s, time.Since(deadline), schedulingSlack, "lost too late")
		zktest.Eventually(s, patience, func() bool { return time.Since(deadline) > T }, "time stands still")
		s.w.Recover()
		s.release(h)
		s.release(s.acquire(c))
	})
}
