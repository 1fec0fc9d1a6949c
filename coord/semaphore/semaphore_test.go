package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/layout"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// scene is a semaphore's path on some server, in some dialect, whose layout is
// checked by TestTheNodesAreThoseOfTheDialect.
type scene struct {
	*testing.T
	w       *zktest.World
	dialect coord.Dialect
	layout.SemaphoreNodes
}

func newScene(t *testing.T, w *zktest.World, d coord.Dialect) scene {
	return scene{t, w, d, layout.SemaphoreAt(d, w.Path("semaphore"))}
}

// onEmbedded returns a scene for what does not depend on the dialect or the
// server.
func onEmbedded(t *testing.T) scene {
	t.Helper()
	return newScene(t, zktest.NewEmbedded(t), coord.Curator)
}

// each runs a test on both servers and in both dialects.
func each(t *testing.T, f func(s scene)) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(dialect), func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) { f(newScene(t, w, dialect)) })
		})
	}
}

// open returns a client of some servers that is closed with the test.
func (s scene) open(servers string, opts ...coord.Option) *coord.Client {
	s.Helper()
	return coordtest.Open(s, servers, append([]coord.Option{coord.WithDialect(s.dialect)}, opts...)...)
}

// of returns the semaphore for a client.
func (s scene) of(c *coord.Client, limit int) *semaphore.Semaphore {
	s.Helper()
	sem, err := semaphore.New(c, s.w.Path("semaphore"), limit)
	require.NoError(s, err)
	return sem
}

// client returns the semaphore for a client of its own.
func (s scene) client(limit int) *semaphore.Semaphore {
	s.Helper()
	return s.of(s.open(s.w.ConnectString()), limit)
}

// hold acquires n leases, which are free.
func (s scene) hold(sem *semaphore.Semaphore, n int) *hold.Set {
	s.Helper()
	return coordtest.Had(s, acquireN(coordtest.Limited(s), sem, n))
}

type releaser interface{ Release(context.Context) error }

func (s scene) release(holds ...releaser) {
	s.Helper()
	for _, h := range holds {
		require.NoError(s, h.Release(coordtest.Limited(s)))
	}
}

// grant is what came of an acquire in the background.
type grant = coordtest.Outcome[*hold.Set]

// acquireN acquires n leases in the background.
func acquireN(ctx context.Context, sem *semaphore.Semaphore, n int) <-chan grant {
	return coordtest.Begin(ctx, func(ctx context.Context) (*hold.Set, error) { return sem.AcquireN(ctx, n) })
}

// wait acquires n leases in the background and returns when the claim stands in
// the queue as the nth, counted from 1.
func (s scene) wait(ctx context.Context, sem *semaphore.Semaphore, n, position int) <-chan grant {
	s.Helper()
	held, _, _ := s.w.Admin().Children(s.Leases.Dir)
	granted := acquireN(ctx, sem, n)
	s.nodes(s.Queue.Dir, position)
	if position == 1 {
		s.nodes(s.Leases.Dir, len(held)+n) // those it waits for are there already
	}
	return granted
}

// nodes waits until a directory has so many children.
func (s scene) nodes(dir string, n int) {
	s.Helper()
	coordtest.AwaitChildren(s, s.w, dir, n)
}

func TestNoMoreThanTheLimitHoldAtATime(t *testing.T) {
	each(t, func(s scene) {
		const limit = 3
		var inside, most, rounds atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			sem := s.client(limit)
			for range 3 {
				wg.Go(func() {
					for range 8 {
						assert.NoError(s, sem.Do(coordtest.Limited(s), func(ctx context.Context, h *coord.Hold) error {
							now := inside.Add(1)
							for most.Load() < now && !most.CompareAndSwap(most.Load(), now) {
							}
							if now > limit {
								return fmt.Errorf("%d hold", now)
							}
							rounds.Add(1)
							defer inside.Add(-1)
							for range 5 { // takes a while
								if _, err := h.Txn(ctx); err != nil {
									return err
								}
							}
							return nil
						}))
					}
				})
			}
		}
		wg.Wait()
		require.EqualValues(s, 72, rounds.Load())
		require.Greater(s, most.Load(), int32(1), "never two at a time")
		s.nodes(s.Queue.Dir, 0)
	})
}

func TestWaitersAreServedInTheirOrder(t *testing.T) {
	each(t, func(s scene) {
		one, other := s.client(2), s.client(2)
		held := []releaser{coordtest.Acquire(s, one), coordtest.Acquire(s, other)}
		var waits []<-chan grant
		for i := range 5 {
			waits = append(waits, s.wait(s.Context(), []*semaphore.Semaphore{one, other}[i%2], 1, i+1))
		}
		for i, granted := range waits {
			s.release(held[0])
			held = append(held[1:], coordtest.Had(s, granted))
			for _, later := range waits[i+1:] {
				require.Empty(s, later, "served out of turn")
			}
		}
		s.release(held...)
	})
}

// With a watch on the holder that came N places before only, the release of a
// later one would wake no waiter.
func TestNoWakeUpIsLostWhenALaterHolderLeavesFirst(t *testing.T) {
	each(t, func(s scene) {
		const limit = 4
		sem := s.client(limit)
		for leaver := range limit {
			var held []*coord.Hold
			for range limit {
				held = append(held, coordtest.Acquire(s, sem))
			}
			first := s.wait(s.Context(), s.client(limit), 1, 1)
			second := s.wait(s.Context(), sem, 1, 2)
			s.release(held[leaver])
			s.release(coordtest.Had(s, first))
			s.release(coordtest.Had(s, second))
			for i, h := range held {
				if i != leaver {
					s.release(h)
				}
			}
		}
	})
}

func TestAnAcquireOfManyIsNotOvertakenByAcquiresOfFew(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(4)
		held := []*coord.Hold{coordtest.Acquire(s, sem), coordtest.Acquire(s, sem), coordtest.Acquire(s, sem)}
		many := s.wait(s.Context(), s.client(4), 3, 1)
		few := s.wait(s.Context(), sem, 1, 2)
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy,
			"a lease is free, but it is waited for")
		s.release(held[2])
		require.Empty(s, few)
		s.release(held[0])
		group := coordtest.Had(s, many)
		require.Len(s, group.Holds(), 3)
		require.Empty(s, few, "more than the limit")
		s.release(held[1])
		one := coordtest.Had(s, few)
		s.release(group, one)
		s.nodes(s.Queue.Dir, 0)
	})
}

func TestAllLeasesOfAGroupAreOneHold(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(5)
		group := s.hold(sem, 5)
		require.NoError(s, group.Err())
		ctx := group.Context(s.Context())
		lost := group.Holds()[2]
		require.NoError(s, s.w.Admin().Delete(lost.Node(), -1))
		zktest.Receive(s, coordtest.Soon, group.Done(), "the end of the group")
		require.ErrorIs(s, group.Err(), coord.ErrNodeDeleted)
		zktest.Receive(s, coordtest.Soon, ctx.Done(), "the end of the context")
		require.ErrorIs(s, context.Cause(ctx), coord.ErrLost)
		s.release(group)
		again, err := sem.AcquireN(coordtest.Limited(s), 5)
		require.NoError(s, err, "all are free again")
		s.release(again)
	})
}

func TestATryFindsItBusyWithoutAWrite(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(2)
		held, err := sem.TryAcquireN(coordtest.Limited(s), 2)
		require.NoError(s, err)
		_, before, err := s.w.Admin().Children(s.Leases.Dir)
		require.NoError(s, err)
		require.ErrorIs(s, coordtest.Err(s.client(2).TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
		_, after, err := s.w.Admin().Children(s.Leases.Dir)
		require.NoError(s, err)
		require.Equal(s, before.Cversion, after.Cversion)
		s.release(held.Holds()[0])
		one := coordtest.Call(s, sem.TryAcquire)
		require.ErrorIs(s, coordtest.Err(sem.TryAcquireN(coordtest.Limited(s), 2)), coord.ErrBusy)
		s.release(one, held)
	})
}

func TestAsManyTriesAtTheSameTimeSucceedAsThereAreLeases(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		s := newScene(t, w, coord.Curator)
		const limit, tries = 3, 8
		for range 5 {
			var results []<-chan coordtest.Outcome[*coord.Hold]
			start := make(chan struct{})
			for range tries {
				sem := s.client(limit)
				results = append(results, coordtest.Begin(coordtest.Limited(s), func(ctx context.Context) (*coord.Hold, error) {
					<-start
					return sem.TryAcquire(ctx)
				}))
			}
			close(start)
			var held []releaser
			for _, result := range results {
				if try := zktest.Receive(s, coordtest.Soon, result, "a try"); try.Err == nil {
					held = append(held, try.Value)
				} else {
					require.ErrorIs(s, try.Err, coord.ErrBusy)
				}
			}
			require.Len(s, held, limit)
			s.release(held...)
			s.nodes(s.Leases.Dir, 0)
		}
	})
}

func TestEveryChildCountsAsALease(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(2)
		h := coordtest.Acquire(s, sem)
		c := s.open(s.w.ConnectString())
		require.NoError(s, c.Create(coordtest.Limited(s), s.Leases.Dir+"/whatever this is", nil))
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
		granted, later := s.wait(s.Context(), sem, 1, 1), s.wait(s.Context(), s.client(2), 1, 2)
		require.Empty(s, granted)
		require.NoError(s, c.Delete(coordtest.Limited(s), s.Leases.Dir+"/whatever this is", -1))
		s.release(coordtest.Had(s, granted), h)
		s.release(coordtest.Had(s, later))
	})
}

func TestOnlyASemaphoreOfOneHasAToken(t *testing.T) {
	each(t, func(s scene) {
		sem, last := s.client(1), int64(0)
		for range 3 {
			h := coordtest.Acquire(s, sem)
			require.Greater(s, h.Token(), last)
			last = h.Token()
			s.release(h)
		}
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 2))
		h := coordtest.Acquire(s, s.client(2))
		require.Zero(s, h.Token())
		s.release(h)
	})
}

func TestAnAcquireThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(3)
		held := []releaser{coordtest.Acquire(s, sem), coordtest.Acquire(s, sem)}
		ctx, cancel := context.WithCancel(s.Context())
		first := s.wait(ctx, s.client(3), 2, 1)
		second := s.wait(ctx, sem, 2, 2)
		third := s.wait(s.Context(), s.client(3), 1, 3)
		cancel()
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, first, "the end of the first").Err, context.Canceled)
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, second, "the end of the second").Err, context.Canceled)
		held = append(held, coordtest.Had(s, third))
		s.nodes(s.Queue.Dir, 0)
		s.nodes(s.Leases.Dir, 3)
		s.release(held...)
		s.nodes(s.Leases.Dir, 0)
	})
}

func TestALeaseCanBeAskedFor(t *testing.T) {
	each(t, func(s scene) {
		group := s.hold(s.of(s.open(s.w.ConnectString()), 3), 2)
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), s.open(s.w.ConnectString()), group.Holds()[1].Node()))
		zktest.Receive(s, coordtest.Soon, group.Revoked(), "the request")
		require.NoError(s, group.Err())
		s.release(group)
	})
}

func TestTheNodesAreThoseOfTheDialect(t *testing.T) {
	const guid = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	layouts := map[coord.Dialect]struct{ queue, place, leases, lease, limit, two string }{
		coord.Curator: {
			"/locks", `^_c_` + guid + `-lock-\d{10}$`, "/leases", `^_c_` + guid + `-lease-\d{10}$`, "/limit", "\x00\x00\x00\x02",
		},
		coord.Kazoo: {"-__lock__", `^[0-9a-f]{32}__lock__\d{10}$`, "", `^[0-9a-f]{32}$`, "", "2"},
	}
	each(t, func(s scene) {
		want, path := layouts[s.dialect], s.w.Path("semaphore")
		sem := s.client(2)
		held := s.hold(sem, 2)
		granted := s.wait(s.Context(), sem, 1, 1)
		for dir, shape := range map[string]string{path + want.queue: want.place, path + want.leases: want.lease} {
			names := coordtest.Children(s, s.w, dir)
			require.NotEmpty(s, names)
			for _, name := range names {
				require.Regexp(s, shape, name)
			}
		}
		limit, _, err := s.w.Admin().Get(path + want.limit)
		require.NoError(s, err)
		require.Equal(s, want.two, string(limit))
		s.release(held)
		s.release(coordtest.Had(s, granted))
	})
}

func TestContendersListsTheHoldersAndTheWaiters(t *testing.T) {
	each(t, func(s scene) {
		sem := s.of(s.open(s.w.ConnectString(), coord.WithIdentity("somebody")), 2)
		require.Empty(s, coordtest.Call(s, sem.Contenders))
		held := s.hold(sem, 2)
		granted := s.wait(s.Context(), sem, 1, 1)
		all := coordtest.Call(s, sem.Contenders)
		require.Len(s, all, 4) // two leases, one more that is waited for, and its place in the queue
		holding := 0
		for _, c := range all {
			require.Contains(s, c.Owner, "somebody ")
			if c.Holds {
				holding++
				require.Equal(s, "lease", c.Kind)
			}
		}
		require.Equal(s, 2, holding)
		require.False(s, all[2].Holds, "the youngest is the one that is waited for")
		require.Equal(s, "lock", all[3].Kind)
		s.release(held)
		s.release(coordtest.Had(s, granted))
	})
}

func TestARefusedNumberIsNamed(t *testing.T) {
	s := onEmbedded(t)
	c := s.open(s.w.ConnectString())
	for _, limit := range []int{-1, 1 << 31} {
		require.ErrorContains(s, coordtest.Err(semaphore.New(c, "/semaphore", limit)), fmt.Sprint(limit))
	}
	sem := s.of(c, 3)
	for _, n := range []int{-1, 4, 1 << 40} {
		_, err := sem.AcquireN(coordtest.Limited(s), n)
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, fmt.Sprint(n))
		require.ErrorIs(s, coordtest.Err(sem.TryAcquireN(coordtest.Limited(s), n)), coord.ErrInvalid)
	}
}
