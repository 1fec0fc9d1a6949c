package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
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
			h, err := l.AcquireWrite(coordtest.Limited(s.T))
			require.NoError(s, err)
			release(s.T, h)
		}
	})
}

func TestAnUpgradeAfterADowngradeIsRefusedToo(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock(rwlock.Reentrant())
		r, err := coordtest.Acquire(s.T, l.WriteSide()).Downgrade(coordtest.Limited(s.T))
		require.NoError(s, err)
		require.ErrorIs(s, coordtest.Err(l.AcquireWrite(r.Context(coordtest.Limited(s.T)))), coord.ErrInvalid)
		release(s.T, r)
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
		wrote := make(chan error, 1)
		go func() {
			_, err := l.AcquireWrite(writing)
			wrote <- err
		}()
		zktest.Eventually(s, coordtest.Soon, func() bool { return len(s.line()) == 2 }, "the writer waits")
		_, err = l.AcquireRead(inside)
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "wait for ever")
		stop()
		require.ErrorIs(s, <-wrote, context.Canceled)
		release(s.T, outer)
	})
}

func TestDoHoldsWhileTheFunctionRuns(t *testing.T) {
	each(t, func(s scene) {
		l, other := s.lock(), s.lock()
		err := l.DoWrite(coordtest.Limited(s.T), func(ctx context.Context, h *coord.Hold) error {
			require.Positive(s, h.Token())
			require.ErrorIs(s, coordtest.Err(other.TryAcquireRead(ctx)), coord.ErrBusy)
			r, err := h.Downgrade(ctx)
			require.NoError(s, err)
			require.NoError(s, other.DoRead(coordtest.Limited(s.T), func(context.Context, *coord.Hold) error { return nil }))
			return r.Release(coordtest.Limited(s.T))
		})
		require.NoError(s, err)
		require.Empty(s, s.line())

		err = l.DoRead(coordtest.Limited(s.T), func(ctx context.Context, h *coord.Hold) error {
			require.NoError(s, s.w.Admin().Delete(h.Node(), -1))
			zktest.Receive(s, coordtest.Soon, ctx.Done(), "the context ends with the hold")
			return nil
		})
		require.ErrorIs(s, err, coord.ErrLost, "what the function did may not have been protected")
	})
}

func TestBothSidesCanBeAskedToGiveUp(t *testing.T) {
	each(t, func(s scene) {
		admin := coordtest.Open(s.T, s.w.ConnectString())
		l := s.lock()
		for _, side := range []*rwlock.Side{l.ReadSide(), l.WriteSide()} {
			h := coordtest.Acquire(s.T, side)
			require.NoError(s, inspect.Revoke(coordtest.Limited(s.T), admin, h.Node()))
			zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
			require.NoError(s, h.Err(), "the holder decides")
			gone := make(chan error, 1)
			go func() {
				_, err := inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)
				gone <- err
			}()
			release(s.T, h)
			require.NoError(s, zktest.Receive(s, coordtest.Soon, gone, "the answer"))

			stubborn := coordtest.Acquire(s.T, side)
			forced, err := inspect.RevokeAndWait(coordtest.Limited(s.T), admin, stubborn.Node(), time.Millisecond)
			require.NoError(s, err)
			require.True(s, forced)
			zktest.Receive(s, coordtest.Soon, stubborn.Done(), "the loss")
			require.ErrorIs(s, stubborn.Err(), coord.ErrNodeDeleted)
			release(s.T, stubborn)
		}
	})
}

func TestARequestThatComesWhileWaitingIsKeptUntilTheTurn(t *testing.T) {
	each(t, func(s scene) {
		admin := coordtest.Open(s.T, s.w.ConnectString())
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		reader, writer := s.joins(s.lock().ReadSide()), s.joins(s.lock().WriteSide())
		line := s.line()
		for _, name := range line[1:] {
			require.NoError(s, inspect.Revoke(coordtest.Limited(s.T), admin, s.path+"/"+name))
		}
		release(s.T, h)
		for _, waiter := range []<-chan grant{reader, writer} {
			h := turn(s.T, waiter)
			zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
			release(s.T, h)
		}
	})
}

func TestADowngradeAnswersTheRequestForTheWriteHold(t *testing.T) {
	each(t, func(s scene) {
		admin, c := coordtest.Open(s.T, s.w.ConnectString()), coordtest.Open(s.T, s.w.ConnectString())
		h := coordtest.Acquire(s.T, rw(s.T, c, s.path).WriteSide())
		asked := make(chan error, 1)
		go func() {
			_, err := inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)
			asked <- err
		}()
		zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
		r, err := h.Downgrade(coordtest.Limited(s.T))
		require.NoError(s, err)
		require.NoError(s, zktest.Receive(s, coordtest.Soon, asked, "the answer"))
		select {
		case <-r.Revoked():
			s.Fatal("no request for the read hold has come")
		default:
		}
		data, _, err := s.w.Admin().Get(r.Node())
		require.NoError(s, err)
		require.Equal(s, c.Identity(), string(data), "the node names its owner")
		require.NoError(s, inspect.Revoke(coordtest.Limited(s.T), admin, r.Node()))
		zktest.Receive(s, coordtest.Soon, r.Revoked(), "the request for the read hold")
		release(s.T, r)
	})
}

func TestWhatCannotBeRightIsRefusedAtOnce(t *testing.T) {
	c := coordtest.Open(t, zktest.NewEmbedded(t).ConnectString())
	for path, message := range map[string]string{
		"": "empty", "lock": "start with /", "/": "root", "/a/": "end with /", "/a//b": "empty", "/a/../b": `".."`, "/a\x00": "does not allow",
	} {
		_, err := rwlock.New(c, path)
		require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
		require.ErrorContains(t, err, message, "%q", path)
	}
	require.ErrorIs(t, coordtest.Err(rwlock.New(nil, "/lock")), coord.ErrInvalid)
	require.ErrorIs(t, coordtest.Err(rwlock.New(c, "/lock", nil)), coord.ErrInvalid)
}
