package conformance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/recipetest"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func mutex(t *testing.T) {
	var as row[*lock.Mutex, *coord.Hold]
	type c = recipetest.Call[*object[*lock.Mutex, *coord.Hold]]
	acquire, release := as.keeps((*lock.Mutex).Acquire), as.ends((*coord.Hold).Release)
	again := both(acquire, release) // the directory is there
	inLine := func(n int) func(context.Context, *object[*lock.Mutex, *coord.Hold]) error {
		return func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
			all, err := o.it.Contenders(ctx)
			return is(n)(len(all), err)
		}
	}
	as.run(
		t, func(c *coord.Client, path string) (*lock.Mutex, error) { return lock.New(c, path) },
		func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
			errs := []error{o.it.Do(ctx, nil)}
			for _, opt := range []lock.Option{
				nil, lock.Delay(0), lock.MaxHold(0, time.Second), lock.MaxHold(time.Second, -1),
				lock.LocalQueue(0, time.Second), lock.LocalQueue(1, 0), lock.Linger(0),
			} {
				errs = append(errs, coordtest.Err(lock.New(o.c, o.path, opt)))
			}
			return invalid(errs...)
		},
		c{
			Name: "Acquire", Done: inLine(1), Op: "acquire", Do: acquire, Ready: again, Block: acquire, Requests: 2,
			RoundTrips: 1,
		},
		c{
			Name: "TryAcquire", Done: inLine(1), Op: "try", Do: as.keeps((*lock.Mutex).TryAcquire), Ready: again, Requests: 3,
			RoundTrips: 2,
		},
		c{
			Name: "Do", Done: inLine(0), Op: "acquire",
			Do: as.does(func(m *lock.Mutex, ctx context.Context) error { return m.Do(ctx, nothing) }), Ready: again,
			Block: acquire, Requests: 3, RoundTrips: 2,
		},
		c{Name: "Contenders", Do: as.does(only((*lock.Mutex).Contenders)), Ready: acquire, Requests: 2, RoundTrips: 2},
		c{
			Name: "Release", Done: inLine(0), Op: "release", Do: release, Ready: acquire, Ends: true, Holds: true, Requests: 1,
			RoundTrips: 1,
		},
	)
}

// A mutex that its last holder is asked to release.
func revocable(t *testing.T) {
	var as row[*lock.Mutex, *coord.Hold]
	type c = recipetest.Call[*object[*lock.Mutex, *coord.Hold]]
	acquire := as.keeps((*lock.Mutex).Acquire)
	as.run(
		t, func(c *coord.Client, path string) (*lock.Mutex, error) { return lock.New(c, path) },
		func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
			return invalid(o.it.Do(ctx, nil))
		},
		c{
			Name: "Revoke", Ready: acquire, Requests: 3, RoundTrips: 3,
			Do: func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
				return inspect.Revoke(ctx, o.c, o.kept.Node())
			},
		},
		c{
			Name: "Revoked", Ready: acquire, Waits: true, Holds: true,
			Do: func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
				h, err := o.it.Acquire(ctx)
				if err != nil {
					return err
				}
				select {
				case <-h.Revoked():
					return h.Release(ctx)
				case <-h.Done():
					return recipe.Failure(o.c, "hold", o.path, h.Err())
				case <-ctx.Done():
					h.Abandon()
					return ctx.Err()
				}
			}, Unblock: func(ctx context.Context, o *object[*lock.Mutex, *coord.Hold]) error {
				holders, err := o.it.Contenders(ctx)
				if err != nil {
					return err
				}
				return inspect.Revoke(ctx, o.c, holders[0].Node)
			},
		},
	)
}

func sharedLock(t *testing.T) {
	var as row[*rwlock.Lock, *coord.Hold]
	type c = recipetest.Call[*object[*rwlock.Lock, *coord.Hold]]
	read, write, release := as.keeps((*rwlock.Lock).AcquireRead), as.keeps((*rwlock.Lock).AcquireWrite), as.ends(
		(*coord.Hold).Release)
	again := both(read, release)
	as.run(
		t, func(c *coord.Client, path string) (*rwlock.Lock, error) { return rwlock.New(c, path) },
		func(ctx context.Context, o *object[*rwlock.Lock, *coord.Hold]) error {
			return invalid(o.it.DoRead(ctx, nil), o.it.DoWrite(ctx, nil), o.it.ReadSide().Do(ctx, nil),
				coordtest.Err(rwlock.New(o.c, o.path, nil)), coordtest.Err(rwlock.New(o.c, o.path, rwlock.MaxHold(0, 0))))
		},
		c{Name: "AcquireRead", Op: "acquire", Do: read, Ready: again, Block: write, Requests: 2, RoundTrips: 1},
		c{Name: "AcquireWrite", Op: "acquire", Do: write, Ready: again, Block: read, Requests: 2, RoundTrips: 1},
		c{
			Name: "TryAcquireRead", Op: "try", Do: as.keeps((*rwlock.Lock).TryAcquireRead), Ready: again, Requests: 3,
			RoundTrips: 2,
		},
		c{
			Name: "TryAcquireWrite", Op: "try", Do: as.keeps((*rwlock.Lock).TryAcquireWrite), Ready: again, Requests: 3,
			RoundTrips: 2,
		},
		c{
			Name: "DoRead", Op: "acquire",
			Do: as.does(func(l *rwlock.Lock, ctx context.Context) error { return l.DoRead(ctx, nothing) }), Ready: again,
			Block: write, Requests: 3, RoundTrips: 2,
		},
		c{
			Name: "DoWrite", Op: "acquire",
			Do: as.does(func(l *rwlock.Lock, ctx context.Context) error { return l.DoWrite(ctx, nothing) }), Ready: again,
			Block: write, Requests: 3, RoundTrips: 2,
		},
		c{Name: "Contenders", Do: as.does(only((*rwlock.Lock).Contenders)), Ready: read, Requests: 2, RoundTrips: 2},
		c{
			Name: "Downgrade",
			Do: as.ends(
				only(func(h *coord.Hold, ctx context.Context) (*coord.Hold, error) { return rwlock.Downgrade(ctx, h) })),
			Ready: write, Ends: true, Holds: true, Requests: 1, RoundTrips: 1,
		},
		c{Name: "Release", Op: "release", Do: release, Ready: read, Ends: true, Holds: true, Requests: 1, RoundTrips: 1},
	)
}

func multiLock(t *testing.T) {
	var as row[*lock.Multi, *hold.Set]
	type c = recipetest.Call[*object[*lock.Multi, *hold.Set]]
	acquire, release := as.keeps((*lock.Multi).Acquire), as.ends((*hold.Set).Release)
	again := both(acquire, release)
	as.run(
		t, func(c *coord.Client, path string) (*lock.Multi, error) {
			mutex, err := lock.New(c, path)
			if err != nil {
				return nil, err
			}
			shared, err := rwlock.New(c, path+"/b")
			if err != nil {
				return nil, err
			}
			return lock.NewMulti(mutex, shared.ReadSide())
		},
		func(ctx context.Context, o *object[*lock.Multi, *hold.Set]) error {
			return invalid(o.it.Do(ctx, nil), coordtest.Err(lock.NewMulti()), coordtest.Err(lock.NewMulti(nil)))
		},
		c{Name: "Acquire", Do: acquire, Ready: again, Block: acquire, Requests: 4, RoundTrips: 2},
		c{Name: "TryAcquire", Holds: true, Do: as.keeps((*lock.Multi).TryAcquire), Ready: again, Requests: 6, RoundTrips: 4},
		c{Name: "Do", Do: as.does(func(m *lock.Multi, ctx context.Context) error {
			return m.Do(ctx, func(context.Context, *hold.Set) error { return nil })
		}), Ready: again, Block: acquire, Requests: 6, RoundTrips: 3},
		c{Name: "Release", Do: release, Ready: acquire, Ends: true, Holds: true, Requests: 2, RoundTrips: 1},
	)
}

func semaphores(t *testing.T) {
	var as row[*semaphore.Semaphore, *hold.Set]
	type c = recipetest.Call[*object[*semaphore.Semaphore, *hold.Set]]
	two := as.keeps(func(s *semaphore.Semaphore, ctx context.Context) (*hold.Set, error) { return s.AcquireN(ctx, 2) })
	again := both(two, as.ends((*hold.Set).Release))
	as.run(
		t, func(c *coord.Client, path string) (*semaphore.Semaphore, error) { return semaphore.New(c, path, 2) },
		func(ctx context.Context, o *object[*semaphore.Semaphore, *hold.Set]) error {
			errs := []error{o.it.Do(ctx, nil)}
			for _, bad := range []int{0, -1} {
				errs = append(errs, coordtest.Err(o.it.AcquireN(ctx, bad)), coordtest.Err(o.it.TryAcquireN(ctx, bad)))
			}
			for _, bad := range []int{0, -1, 1 << 31} {
				errs = append(errs, coordtest.Err(semaphore.New(o.c, o.path, bad)), o.it.SetLimit(ctx, bad))
			}
			return invalid(errs...)
		},
		c{
			Name: "Acquire", Requests: 5, RoundTrips: 2, Op: "acquire", Do: as.does(only((*semaphore.Semaphore).Acquire)),
			Ready: again, Block: two,
		},
		c{Name: "AcquireN", Requests: 6, RoundTrips: 3, Op: "acquire", Do: two, Ready: again, Block: two},
		c{
			Name: "TryAcquire", Requests: 3, RoundTrips: 2, Op: "try", Do: as.does(only((*semaphore.Semaphore).TryAcquire)),
			Ready: again,
		},
		c{
			Name: "TryAcquireN", Requests: 4, RoundTrips: 3, Op: "try",
			Do: as.keeps(func(s *semaphore.Semaphore, ctx context.Context) (*hold.Set, error) {
				return s.TryAcquireN(ctx, 2)
			}),
			Ready: again,
		},
		c{
			Name: "Do", Requests: 6, RoundTrips: 3, Op: "acquire",
			Do: as.does(func(s *semaphore.Semaphore, ctx context.Context) error { return s.Do(ctx, nothing) }), Ready: again,
			Block: two,
		},
		c{Name: "Contenders", Requests: 3, RoundTrips: 3, Do: as.does(only((*semaphore.Semaphore).Contenders)), Ready: again},
		c{Name: "Limit", Op: "limit", Do: as.does(only((*semaphore.Semaphore).Limit)), Ready: again},
		c{
			Name: "SetLimit", Requests: 1, RoundTrips: 1, Op: "set limit",
			Do: as.does(func(s *semaphore.Semaphore, ctx context.Context) error { return s.SetLimit(ctx, 3) }), Ready: again,
			Done: func(ctx context.Context, o *object[*semaphore.Semaphore, *hold.Set]) error {
				return is(3)(o.it.Limit(ctx))
			},
		},
		c{Name: "Release", Requests: 2, RoundTrips: 1, Do: as.ends((*hold.Set).Release), Ready: two, Ends: true, Holds: true},
		c{
			Name: "Remove", Done: as.gone, Requests: 7, RoundTrips: 5, Op: "remove", Do: as.does((*semaphore.Semaphore).Remove),
			Ready: again,
		},
	)
}

func elections(t *testing.T) {
	var as row[*election.Election, *election.Term]
	type c = recipetest.Call[*object[*election.Election, *election.Term]]
	campaign := as.keeps(func(e *election.Election, ctx context.Context) (*election.Term, error) {
		return e.Campaign(ctx, []byte("x"))
	})
	resign := as.ends((*election.Term).Resign)
	proclaim := as.ends(func(term *election.Term, ctx context.Context) error { return term.Proclaim(ctx, []byte("y")) })
	again := both(campaign, resign)
	leader := func(ctx context.Context, o *object[*election.Election, *election.Term]) error {
		_, err := o.it.Leader(ctx)
		if errors.Is(err, election.ErrNoLeader) && o.kept.Err() != nil {
			return nil // the term has ended with the session
		}
		return err
	}
	lead := func(context.Context, *election.Term) error { return nil }
	as.run(
		t, func(c *coord.Client, path string) (*election.Election, error) { return election.New(c, path) },
		func(ctx context.Context, o *object[*election.Election, *election.Term]) error {
			return invalid(o.it.Run(ctx, nil, nil), coordtest.Err(o.it.Campaign(ctx, []byte("unlock"))),
				coordtest.Err(o.it.Campaign(ctx, []byte("__REVOKE__"))),
				coordtest.Err(election.New(o.c, o.path, election.Health(time.Second, 1, nil))),
				coordtest.Err(election.New(o.c, o.path, nil)))
		},
		c{Name: "Campaign", Requests: 4, RoundTrips: 3, Op: "campaign", Do: campaign, Ready: again, Block: campaign},
		c{
			Name: "TryCampaign", Requests: 5, RoundTrips: 4, Op: "try to campaign",
			Do: as.keeps(func(e *election.Election, ctx context.Context) (*election.Term, error) {
				return e.TryCampaign(ctx, nil)
			}), Ready: again,
		},
		c{
			Name: "Run", Do: as.does(func(e *election.Election, ctx context.Context) error { return e.Run(ctx, nil, lead) }),
			Waits: true,
		},
		c{Name: "Leader", Requests: 4, RoundTrips: 4, Op: "leader", Do: leader, Ready: campaign},
		c{
			Name: "Candidates", Requests: 3, RoundTrips: 3, Do: as.does(only((*election.Election).Contenders)), Ready: campaign,
		},
		c{
			Name: "Observe", Requests: 4, RoundTrips: 4, Op: "observe", Do: as.does(first((*election.Election).Observe)),
			Ready: campaign,
		},
		c{
			Name: "Observe a change", Do: as.does(second((*election.Election).Observe)), Waits: true, Block: campaign,
			Unblock: proclaim,
		},
		c{Name: "Proclaim", Requests: 2, RoundTrips: 2, Do: proclaim, Ready: campaign, Holds: true},
		c{
			Name: "Transfer", Requests: 4, RoundTrips: 4, Op: "transfer", Ready: campaign,
			Do: func(ctx context.Context, o *object[*election.Election, *election.Term]) error {
				err := o.it.Transfer(ctx, o.kept.Node())
				if errors.Is(err, election.ErrNoCandidate) && o.kept.Err() != nil {
					return nil // the term has ended with the session
				}
				return err
			},
		},
		c{Name: "Resign", Requests: 1, RoundTrips: 1, Do: resign, Ready: campaign, Ends: true, Holds: true},
	)
}

func numbers(t *testing.T) {
	var as row[*slots.Slots, *slots.Slot]
	type c = recipetest.Call[*object[*slots.Slots, *slots.Slot]]
	acquire, release := as.keeps((*slots.Slots).Acquire), as.ends((*slots.Slot).Release)
	again := both(acquire, release, acquire, release) // the directories are made, then looked at
	as.run(
		t, func(c *coord.Client, path string) (*slots.Slots, error) { return slots.New(c, path, 1) },
		func(ctx context.Context, o *object[*slots.Slots, *slots.Slot]) error {
			return invalid(o.it.Do(ctx, nil), coordtest.Err(slots.New(o.c, o.path, 0)),
				coordtest.Err(slots.New(o.c, o.path, 1, nil)),
				coordtest.Err(slots.New(o.c, o.path, 1, slots.Durable("", 0))),
				coordtest.Err(slots.New(o.c, o.path, 1, slots.Durable("a", -1))),
				coordtest.Err(slots.New(o.c, o.path, 1, slots.Durable("\xff", 0))),
				coordtest.Err(slots.New(o.c, o.path, 1, slots.Durable(long(1001), 0))))
		},
		c{Name: "Acquire", Requests: 6, RoundTrips: 4, Op: "acquire", Do: acquire, Ready: again, Block: acquire},
		c{Name: "TryAcquire", Requests: 3, RoundTrips: 3, Op: "try", Do: as.keeps((*slots.Slots).TryAcquire), Ready: again},
		c{Name: "Do", Requests: 7, RoundTrips: 5, Op: "acquire", Do: as.does(func(s *slots.Slots, ctx context.Context) error {
			return s.Do(ctx, func(context.Context, *slots.Slot) error { return nil })
		}), Ready: again, Block: acquire},
		c{Name: "List", Requests: 4, RoundTrips: 4, Op: "list", Do: as.does(only((*slots.Slots).List)), Ready: acquire},
		c{
			Name: "Forget", Requests: 4, RoundTrips: 4, Op: "forget",
			Do: as.does(func(s *slots.Slots, ctx context.Context) error { return s.Forget(ctx, "host") }), Ready: again,
		},
		c{Name: "Release", Requests: 1, RoundTrips: 1, Do: release, Ready: acquire, Ends: true, Holds: true},
		c{
			Name: "Remove", Done: as.gone, Requests: 10, RoundTrips: 8, Op: "remove", Do: as.does((*slots.Slots).Remove),
			Ready: again,
		},
	)
}
