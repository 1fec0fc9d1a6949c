package rwlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// behind returns the write hold of a client behind the proxy.
func (s scene) behind() *coord.Hold {
	s.Helper()
	return coordtest.Acquire(s.T, rw(s.T, coordtest.Open(s.T, s.w.ProxyConnectString()), s.path).WriteSide())
}

// exchanges strikes the transaction that downgrades.
func (s scene) exchanges(do proxy.Action) *proxy.Rule {
	s.Helper()
	return s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.path, Do: do})
}

// isReader requires that h is the hold of a reader in the given place, and that
// it is the only one in the line.
func (s scene) isReader(h *coord.Hold, place string) {
	s.Helper()
	require.NoError(s, h.Err())
	require.Zero(s, h.Token())
	line := s.line()
	require.Len(s, line, 1)
	require.Equal(s, s.path+"/"+line[0], h.Node())
	require.Contains(s, line[0], "-__READ__"+place)
	_, stat, err := s.w.Admin().Get(h.Node())
	require.NoError(s, err)
	require.Equal(s, h.Session(), stat.EphemeralOwner)
}

func TestADowngradeKeepsThePlaceAndLetsOnlyTheReadersRightBehindIn(t *testing.T) {
	each(t, func(s scene) {
		release(s.T, coordtest.Acquire(s.T, s.lock().ReadSide())) // the place is not 0 then
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		one, two := s.joins(s.lock().ReadSide()), s.joins(s.lock().ReadSide())
		late := s.joins(s.lock().WriteSide())
		last := s.joins(s.lock().ReadSide())
		before := s.line()
		r := coordtest.Call(s, h.Downgrade)
		readers := []*coord.Hold{r, coordtest.Had(s.T, one), coordtest.Had(s.T, two)}
		after := s.line()
		require.Equal(s, before[1:], after[1:])
		require.Contains(s, after[0], "-__READ__"+digits(before[0]))
		require.NotEqual(s, before[0][:len("_c_")+36], after[0][:len("_c_")+36], "a GUID of its own")
		s.watch(after, 2, 3, 4)
		waiting(s.T, late, last)
		release(s.T, readers...)
		s.inTurn(late, last)
	})
}

func TestAClaimBehindAWriterThatDowngradesWaitsForTheReader(t *testing.T) {
	each(t, func(s scene) {
		for name, side := range map[string]acquirer{"writer": s.lock().WriteSide(), "mutex": s.mutex()} {
			h := coordtest.Acquire(s.T, s.lock().WriteSide())
			next := s.joins(side)
			before := s.line()
			s.watch(before, 0, 1)
			r := coordtest.Call(s, h.Downgrade)
			after := s.line()
			require.Equal(s, before[1], after[1])
			s.watch(after, 0, 1) // 0 by itself, too, but not immediately
			waiting(s.T, next)
			require.NoError(s, r.Err(), name)
			release(s.T, r)
			release(s.T, coordtest.Had(s.T, next))
		}
	})
}

// The waiters of one client share listings. One that was made before the
// downgrade does not show the reader.
func TestManyOfOneClientBehindAWriterThatDowngradesWaitForTheReader(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s.T, s.w.ConnectString())
		l, m := rw(s.T, c, s.path), mutex(s.T, c, s.path)
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		sides := []acquirer{m, l.WriteSide(), m, l.ReadSide()}
		var waiters []<-chan grant
		for _, side := range sides {
			waiters = append(waiters, s.joins(side))
		}
		s.watch(s.line(), 0, 1, 2, 3, 4)
		r := coordtest.Call(s, h.Downgrade)
		s.watch(s.line(), 0, 1, 2, 3, 4)
		waiting(s.T, waiters...)
		require.NoError(s, r.Err())
		release(s.T, r)
		s.inTurn(waiters...)
	})
}

func TestADowngradeEndsTheOldHoldAndItsContexts(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s.T, s.w.ConnectString())
		l := rw(s.T, c, s.path)
		h := coordtest.Acquire(s.T, l.WriteSide())
		old := h.Context(coordtest.Limited(s.T))
		r, err := h.Downgrade(old) // its own context does not stop it
		require.NoError(s, err)
		require.ErrorIs(s, h.Err(), coord.ErrReleased)
		zktest.Receive(s, coordtest.Soon, h.Done(), "the old hold's end")
		zktest.Receive(s, coordtest.Soon, old.Done(), "the old context's end")
		require.ErrorIs(s, context.Cause(old), coord.ErrReleased)
		require.NoError(s, h.Release(coordtest.Limited(s.T)), "a deferred release of the old hold does no harm")
		require.ErrorIs(s, coordtest.Err(h.Downgrade(coordtest.Limited(s.T))), coord.ErrReleased)

		require.Equal(s, h.Session(), r.Session())
		carried, ok := coord.HeldIn(r.Context(coordtest.Limited(s.T)), c, s.path)
		require.True(s, ok)
		require.Same(s, r, carried)
		s.isReader(r, "0000000000")
		release(s.T, r)
		require.Empty(s, s.line())
	})
}

func TestADowngradeThatCannotBeIsRefusedAndChangesNothing(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s.T, s.w.ConnectString())
		reader := coordtest.Acquire(s.T, rw(s.T, c, s.path).ReadSide())
		_, err := reader.Downgrade(coordtest.Limited(s.T))
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "not a writer's")
		release(s.T, reader)

		m := coordtest.Acquire(s.T, mutex(s.T, c, s.path))
		require.ErrorIs(s, coordtest.Err(m.Downgrade(coordtest.Limited(s.T))), coord.ErrInvalid)
		release(s.T, m)

		side := rw(s.T, c, s.path, rwlock.Reentrant()).WriteSide()
		h := coordtest.Acquire(s.T, side)
		inner, err := side.Acquire(h.Context(coordtest.Limited(s.T)))
		require.NoError(s, err)
		_, err = h.Downgrade(coordtest.Limited(s.T))
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "1 other handles")
		require.NoError(s, h.Err(), "nothing has happened to the hold")
		release(s.T, inner)
		release(s.T, coordtest.Call(s, h.Downgrade))
	})
}

// A reply that is lost is found by the GUID of the reader's node.
func TestADowngradeWhoseRequestOrReplyIsLostIsMadeOnce(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		each(t, func(s scene) {
			h := s.behind()
			lost := s.exchanges(action)
			r := coordtest.Call(s, h.Downgrade)
			require.Equal(s, 1, lost.Fired())
			s.isReader(r, "0000000000")
			release(s.T, r)
		})
	})
}

// downgrade runs a downgrade in the background until the proxy holds it.
func (s scene) downgrade(ctx context.Context, h *coord.Hold, arrive <-chan struct{}) <-chan grant {
	s.Helper()
	// Also the transaction that a client repeats which was quick to come back.
	held := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.path, Times: proxy.Always, Do: proxy.Hold(arrive)})
	done := coordtest.Begin(ctx, h.Downgrade)
	zktest.Receive(s, coordtest.Soon, held.First(), "the transaction is sent")
	return done
}

func TestADowngradeEndsWithItsContextAndLeavesNothing(t *testing.T) {
	each(t, func(s scene) {
		h := s.behind()
		next := s.joins(s.lock().WriteSide())
		arrive := make(chan struct{})
		ctx, cancel := context.WithCancel(coordtest.Limited(s.T))
		done := s.downgrade(ctx, h, arrive)
		cancel()
		g := zktest.Receive(s, coordtest.Soon, done, "the downgrade ends while no server answers")
		require.ErrorIs(s, g.Err, context.Canceled)
		require.Nil(s, g.Value)
		require.ErrorIs(s, h.Err(), coord.ErrReleased, "the hold may be a reader's by now")
		require.Len(s, s.line(), 2)
		close(arrive)
		release(s.T, h) // waits until nothing is left
		release(s.T, coordtest.Had(s.T, next))
		require.Empty(s, s.line())
	})
}

func TestADowngradeWithAContextThatHasEndedReleases(t *testing.T) {
	each(t, func(s scene) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		r, err := h.Downgrade(ended)
		require.ErrorIs(s, err, context.Canceled)
		require.Nil(s, r)
		release(s.T, h)
		require.Empty(s, s.line())
	})
}

func TestADowngradeOfAHoldThatIsLostMeanwhileFails(t *testing.T) {
	for cause, lose := range map[error]func(s scene, h *coord.Hold){
		coord.ErrSessionExpired: func(s scene, h *coord.Hold) { s.w.ExpireSession(h.Session()) },
		coord.ErrNodeDeleted:    func(s scene, h *coord.Hold) { require.NoError(s, s.w.Admin().Delete(h.Node(), -1)) },
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			each(t, func(s scene) {
				h := s.behind()
				arrive := make(chan struct{})
				done := s.downgrade(coordtest.Limited(s.T), h, arrive)
				lose(s, h)
				close(arrive)
				g := zktest.Receive(s, coordtest.Soon, done, "the downgrade ends")
				require.ErrorIs(s, g.Err, coord.ErrLost)
				require.ErrorIs(s, g.Err, cause)
				require.Nil(s, g.Value)
				require.Empty(s, s.line())
			})
		})
	}
}

func TestADowngradeThatTheServerRefusesReleases(t *testing.T) {
	each(t, func(s scene) {
		h := s.behind()
		const noAuth = -102
		s.exchanges(proxy.Reject(noAuth))
		r, err := h.Downgrade(coordtest.Limited(s.T))
		require.ErrorIs(s, err, coord.ErrNoAuth)
		require.Nil(s, r)
		require.Empty(s, s.line())
	})
}

func TestOfTwoDowngradesOfOneHoldOneSucceeds(t *testing.T) {
	each(t, func(s scene) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		results := make([]grant, 4)
		var both sync.WaitGroup
		for i := range results {
			both.Go(func() {
				results[i].Value, results[i].Err = h.Downgrade(coordtest.Limited(s.T))
			})
		}
		both.Wait()
		var reader *coord.Hold
		for _, g := range results {
			if g.Err == nil {
				require.Nil(s, reader, "two downgrades succeeded")
				reader = g.Value
				continue
			}
			require.ErrorIs(s, g.Err, coord.ErrReleased)
		}
		require.NotNil(s, reader)
		s.isReader(reader, "0000000000")
		release(s.T, reader)
	})
}

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
			r = coordtest.Call(s, h.Downgrade)
			require.ErrorIs(s, coordtest.Err(l.AcquireWrite(r.Context(coordtest.Limited(s.T)))), coord.ErrInvalid, "after a downgrade, too")
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
			gone := coordtest.Go(func() error { return coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)) })
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
		asked := coordtest.Go(func() error { return coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(s.T), admin, h.Node(), 0)) })
		zktest.Receive(s, coordtest.Soon, h.Revoked(), "the request")
		r := coordtest.Call(s, h.Downgrade)
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
