package rwlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAnUpgradeIsRefusedInsteadOfADeadlock(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s.T, s.w.ConnectString())
		for _, opts := range [][]rwlock.Option{nil, {rwlock.Reentrant()}} {
			l := rw(s.T, c, s.path, opts...)
			r := coordtest.Acquire(s.T, l.ReadSide())
			inside := r.Context(coordtest.Limited(s.T))
			_, err := l.AcquireWrite(inside)
			require.ErrorIs(s, err, coord.ErrInvalid)
			require.ErrorContains(s, err, s.path)
			require.ErrorContains(s, err, "release it first")
			require.ErrorIs(s, coordtest.Err(l.TryAcquireWrite(inside)), coord.ErrInvalid)
			require.Len(s, s.line(), 1, "no other claim has joined")
			require.NoError(s, r.Err())
			release(s.T, r)
			h := coordtest.Call(s, l.AcquireWrite)
			r = coordtest.Call(s, downgraded(h))
			require.ErrorIs(s, coordtest.Err(l.AcquireWrite(r.Context(coordtest.Limited(s.T)))), coord.ErrInvalid,
				"after a downgrade, too")
			release(s.T, r)
		}
	})
}

func TestAReentrantLockLetsItsHolderInAgain(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock(rwlock.Reentrant())
		for name, sides := range map[string][2]*rwlock.Side{
			"read in read":   {l.ReadSide(), l.ReadSide()},
			"read in write":  {l.WriteSide(), l.ReadSide()},
			"write in write": {l.WriteSide(), l.WriteSide()},
		} {
			outer := coordtest.Acquire(s.T, sides[0])
			inner, err := sides[1].Acquire(outer.Context(coordtest.Limited(s.T)))
			require.NoError(s, err, name)
			third, err := sides[1].TryAcquire(inner.Context(coordtest.Limited(s.T)))
			require.NoError(s, err, name)
			require.Equal(s, outer.Node(), third.Node(), name)
			require.Len(s, s.line(), 1, name)
			release(s.T, outer, third)
			require.Len(s, s.line(), 1, "%s: one handle is left", name)
			require.NoError(s, inner.Err())
			release(s.T, inner)
			require.Empty(s, s.line(), name)
		}
	})
}

func TestWithoutTheOptionWhatWouldWaitForItselfIsRefused(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock()
		h := coordtest.Acquire(s.T, l.WriteSide())
		inside := h.Context(coordtest.Limited(s.T))
		require.ErrorIs(s, coordtest.Err(l.TryAcquireRead(inside)), coord.ErrBusy)
		for _, side := range []*rwlock.Side{l.ReadSide(), l.WriteSide()} {
			_, err := side.Acquire(inside)
			require.ErrorIs(s, err, coord.ErrInvalid)
			require.ErrorContains(s, err, h.Node())
			require.ErrorContains(s, err, "wait for ever")
		}
		require.Len(s, s.line(), 1, "no other claim has joined")
		release(s.T, h)
	})
}

func TestAReadInsideAReadIsRefusedOnlyWhereAWriterWaitsBetween(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock()
		outer := coordtest.Acquire(s.T, l.ReadSide())
		inside := outer.Context(coordtest.Limited(s.T))
		inner, err := l.AcquireRead(inside)
		require.NoError(s, err)
		release(s.T, inner)

		writing, stop := context.WithCancel(coordtest.Limited(s.T))
		defer stop()
		wrote := coordtest.Go(func() error { return coordtest.Err(l.AcquireWrite(writing)) })
		zktest.Eventually(s, coordtest.Soon, func() bool { return len(s.line()) == 2 }, "the writer waits")
		_, err = l.AcquireRead(inside)
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "wait for ever")
		stop()
		require.ErrorIs(s, <-wrote, context.Canceled)
		release(s.T, outer)
	})
}
