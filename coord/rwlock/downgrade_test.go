package rwlock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
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
		r := coordtest.Call(s, downgraded(h))
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
			r := coordtest.Call(s, downgraded(h))
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
		r := coordtest.Call(s, downgraded(h))
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
		r, err := rwlock.Downgrade(old, h) // its own context does not stop it
		require.NoError(s, err)
		require.ErrorIs(s, h.Err(), coord.ErrReleased)
		zktest.Receive(s, coordtest.Soon, h.Done(), "the old hold's end")
		zktest.Receive(s, coordtest.Soon, old.Done(), "the old context's end")
		require.ErrorIs(s, context.Cause(old), coord.ErrReleased)
		require.NoError(s, h.Release(coordtest.Limited(s.T)), "a deferred release of the old hold does no harm")
		require.ErrorIs(s, coordtest.Err(rwlock.Downgrade(coordtest.Limited(s.T), h)), coord.ErrReleased)

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
		_, err := rwlock.Downgrade(coordtest.Limited(s.T), reader)
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "not a writer's")
		release(s.T, reader)

		m := coordtest.Acquire(s.T, mutex(s.T, c, s.path))
		require.ErrorIs(s, coordtest.Err(rwlock.Downgrade(coordtest.Limited(s.T), m)), coord.ErrInvalid)
		release(s.T, m)

		side := rw(s.T, c, s.path, rwlock.Reentrant()).WriteSide()
		h := coordtest.Acquire(s.T, side)
		inner, err := side.Acquire(h.Context(coordtest.Limited(s.T)))
		require.NoError(s, err)
		_, err = rwlock.Downgrade(coordtest.Limited(s.T), h)
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "1 other handles")
		require.NoError(s, h.Err(), "nothing has happened to the hold")
		release(s.T, inner)
		release(s.T, coordtest.Call(s, downgraded(h)))
	})
}

// A reply that is lost is found by the GUID of the reader's node.
func TestADowngradeWhoseRequestOrReplyIsLostIsMadeOnce(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		each(t, func(s scene) {
			h := s.behind()
			lost := s.exchanges(action)
			r := coordtest.Call(s, downgraded(h))
			require.Equal(s, 1, lost.Fired())
			s.isReader(r, "0000000000")
			release(s.T, r)
		})
	})
}

// downgraded is [rwlock.Downgrade] of a hold.
func downgraded(h *coord.Hold) func(ctx context.Context) (*coord.Hold, error) {
	return func(ctx context.Context) (*coord.Hold, error) { return rwlock.Downgrade(ctx, h) }
}

// downgrade runs a downgrade in the background until the proxy holds it.
func (s scene) downgrade(ctx context.Context, h *coord.Hold, arrive <-chan struct{}) <-chan grant {
	s.Helper()
	// Also the transaction that a client repeats which was quick to come back.
	held := s.w.Proxy().Inject(proxy.Fault{
		On: []int32{proxy.OpMulti}, Path: s.path, Times: proxy.Always, Do: proxy.Hold(arrive),
	})
	done := coordtest.Begin(ctx, downgraded(h))
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
		r, err := rwlock.Downgrade(ended, h)
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
		r, err := rwlock.Downgrade(coordtest.Limited(s.T), h)
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
				results[i].Value, results[i].Err = rwlock.Downgrade(coordtest.Limited(s.T), h)
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
