package rwlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestBothSidesCanBeAskedToGiveUp(t *testing.T) {
	each(t, func(s scene) {
		admin := coordtest.Open(s.T, s.w.ConnectString())
		l := s.lock()
		for _, side := range []*rwlock.Side{l.ReadSide(), l.WriteSide()} {
			h := coordtest.Acquire(s.T, side)
			require.NoError(s, inspect.Revoke(coordtest.Limited(s.T), admin, h.Node()))
			zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
			require.NoError(s, h.Err(), "the holder decides")
			gone := coordtest.Go(
				func() error { return coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)) })
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
			h := coordtest.Had(s.T, waiter)
			zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
			release(s.T, h)
		}
	})
}

func TestADowngradeAnswersTheRequestForTheWriteHold(t *testing.T) {
	each(t, func(s scene) {
		admin, c := coordtest.Open(s.T, s.w.ConnectString()), coordtest.Open(s.T, s.w.ConnectString())
		h := coordtest.Acquire(s.T, rw(s.T, c, s.path).WriteSide())
		asked := coordtest.Go(
			func() error { return coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)) })
		zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
		r := coordtest.Call(s, downgraded(h))
		require.NoError(s, zktest.Receive(s, coordtest.Soon, asked, "the answer"))
		select {
		case <-r.Revoked():
			s.Fatal("no request for the read hold has come")
		default:
		}
		data, _, err := s.w.Admin().Get(r.Node())
		require.NoError(s, err)
		require.Equal(s, c.Info().Identity, string(data), "the node names its owner")
		require.NoError(s, inspect.Revoke(coordtest.Limited(s.T), admin, r.Node()))
		zktest.Receive(s, coordtest.Soon, r.Revoked(), "the request for the read hold")
		release(s.T, r)
	})
}
