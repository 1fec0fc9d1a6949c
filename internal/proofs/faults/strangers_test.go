package faults

import (
	"context"
	"maps"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// stranger has a contender of an unknown recipe join the line in a directory,
// and returns its node and what has it leave.
func (s scene) stranger(dir, begins string) (node string, leave func()) {
	s.Helper()
	c := s.client()
	require.NoError(s, c.EnsureDir(s.Context(), dir))
	admin := s.admin()
	node, err := admin.Create(dir+"/"+begins, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(s, err)
	return node, func() { require.NoError(s, admin.Delete(node, -1)) }
}

func TestF64AContenderOfAnUnknownRecipeAndALockExcludeEachOtherAsFarAsTheLockCan(t *testing.T) {
	each(t, func(s scene) {
		for _, begins := range coordtest.UnknownRecipes {
			node, leave := s.stranger(s.dir(), begins)
			c := s.client()
			err := coordtest.Err(s.mutex(c).Acquire(s.Context()))
			require.ErrorIs(s, err, coord.ErrForeign)
			require.ErrorContains(s, err, path.Base(node))
			require.ErrorIs(s, coordtest.Err(s.mutex(c).TryAcquire(s.Context())), coord.ErrForeign)
			s.awaitNodes(1)
			leave()
			s.release(s.acquire(c))
		}
	})
}

func TestF64AContenderOfAnUnknownRecipeAndALockExcludeEachOtherOnceItIsDescribed(t *testing.T) {
	shapes := maps.Clone(coordtest.Described)
	shapes["x-0100b9c3a1e40001-"] = coord.Description{Prefix: "x-{session:hex}-"}.Dialect()
	each(t, func(s scene) {
		c, other := s.client(), s.client()
		for begins, dialect := range shapes {
			_, leave := s.stranger(s.dir(), begins)
			require.ErrorIs(s, coordtest.Err(s.mutex(c).TryAcquire(s.Context())), coord.ErrForeign)
			m, beside := must(lock.New(c, s.dir(), lock.Dialect(dialect))), must(lock.New(other, s.dir(), lock.Dialect(dialect)))
			require.ErrorIs(s, coordtest.Err(m.TryAcquire(s.Context())), coord.ErrBusy, begins)
			waiting := coordtest.Begin(s.Context(), m.Acquire)
			s.awaitNodes(2)
			_, leaveToo := s.stranger(s.dir(), begins)
			require.Empty(s, waiting, begins)
			leave()
			h := coordtest.Had(s, waiting)
			require.ErrorIs(s, coordtest.Err(beside.TryAcquire(s.Context())), coord.ErrBusy, begins)
			s.release(h)
			require.ErrorIs(s, coordtest.Err(beside.TryAcquire(s.Context())), coord.ErrBusy, begins)
			leaveToo()
			s.release(must(beside.TryAcquire(s.Context())))
		}
	})
}

func TestF94AContenderThatComesWhileAHoldLastsIsReported(t *testing.T) {
	each(t, func(s scene) {
		reported := make(chan string, 100)
		c := s.client(coord.WithObserver(func(e event.Event) {
			if e.Kind == event.Foreign {
				reported <- e.Path
			}
		}))
		h := s.acquire(c)
		for _, begins := range append([]string{"0123456789abcdef0123456789abcdef__lock__"}, coordtest.UnknownRecipes...) {
			node, leave := s.stranger(s.dir(), begins)
			require.Equal(s, node, zktest.Receive(s, patience, reported, "the contender is reported"))
			require.NoError(s, h.Err())
			leave()
		}
		s.release(h)
		require.Empty(s, reported)
	})
}

// What each recipe does about a contender of an unknown recipe in a directory
// of its own.
func TestF64EachRecipeMeetsAContenderOfAnUnknownRecipe(t *testing.T) {
	type meeting struct {
		where string                                                      // below the recipe's path
		want  error                                                       // nil: it is ignored
		meet  func(ctx context.Context, c *coord.Client, at string) error // is called twice
	}
	for name, m := range map[string]meeting{
		"lock": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(lock.New(c, at)).Acquire)
		}},
		"local queue": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(lock.New(c, at, lock.LocalQueue(10, time.Hour))).Acquire)
		}},
		"several locks": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			all := must(lock.NewMulti(must(lock.New(c, at)), must(lock.New(c, at+"-other"))))
			g, err := all.Acquire(ctx)
			if err == nil {
				err = g.Release(ctx)
			}
			return err
		}},
		"reader": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(rwlock.New(c, at)).ReadSide().Acquire)
		}},
		"writer": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(rwlock.New(c, at)).WriteSide().Acquire)
		}},
		"election": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			term, err := must(election.New(c, at)).Campaign(ctx, nil)
			if err == nil {
				err = term.Resign(ctx)
			}
			return err
		}},
		"once": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			o := must(once.New(c, path.Dir(path.Dir(path.Dir(at)))))
			_, err := o.Do(ctx, "job", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
			return err
		}},
		"semaphore, its line": {"/locks", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(semaphore.New(c, at, 1)).Acquire)
		}},
		"semaphore, its leases": {"/leases", coord.ErrBusy, func(ctx context.Context, c *coord.Client, at string) error {
			return release(ctx, c, must(semaphore.New(c, at, 1)).TryAcquire)
		}},
		"slots, their line": {"/line", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			slot, err := must(slots.New(c, at, 1)).Acquire(ctx)
			if err == nil {
				err = slot.Release(ctx)
			}
			return err
		}},
		"shards, their members": {"/members", nil, shareKey},
		"double barrier": {"", coord.ErrForeign, func(ctx context.Context, c *coord.Client, at string) error {
			m, err := must(doublebarrier.New(c, at, 1)).Enter(ctx)
			if err == nil {
				err = m.Leave(ctx)
			}
			return err
		}},
		"queue, its items": {"/entries", nil, passItem},
		"queue, its line":  {"/waiting", nil, passItem},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				c, at := s.client(), s.w.Path("recipe")
				if name == "once" {
					at = must(must(once.New(c, at)).Line("job")).Dir
				}
				_, leave := s.stranger(at+m.where, "n_")
				within := coordtest.Within(s, patience)
				require.ErrorIs(s, m.meet(within, c, at), m.want)
				leave()
				require.NoError(s, m.meet(within, c, at))
				require.NoError(s, c.Close(s.Context())) // with its watches on records
			})
		})
	}
}

func release(ctx context.Context, _ *coord.Client, acquire func(context.Context) (*coord.Hold, error)) error {
	h, err := acquire(ctx)
	if err == nil {
		err = h.Release(ctx)
	}
	return err
}

// shareKey is the member of shards that has their only key.
func shareKey(ctx context.Context, c *coord.Client, at string) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	err := must(shards.New(c, at, shards.Keys("a"))).Run(running, func(context.Context, string, coord.Held) error {
		stop()
		return nil
	})
	if running.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// passItem puts an item after a consumer has begun to wait for it.
func passItem(ctx context.Context, c *coord.Client, at string) error {
	q := must(queue.New(c, at))
	defer func() { _ = q.Close(ctx) }()
	got := coordtest.Begin(ctx, q.Receive)
	if err := q.Put(ctx, []byte("item")); err != nil {
		return err
	}
	o := <-got
	if o.Err != nil {
		return o.Err
	}
	return o.Value.Ack(ctx)
}

func TestF64NobodyLeadsBehindAContenderOfAnUnknownRecipe(t *testing.T) {
	each(t, func(s scene) {
		c, at := s.client(), s.w.Path("election")
		_, leave := s.stranger(at, "n_")
		guid := "_c_0b1f7a3c-98aa-8a53-8d0b-5f2f3d1c2e4a-latch-" // by this module, since it is of version 8
		_, withdraw := s.stranger(at, guid)
		e := must(election.New(c, at))
		require.ErrorIs(s, coordtest.Err(e.Leader(s.Context())), election.ErrNoLeader)
		leave()
		require.NoError(s, coordtest.Err(e.Leader(s.Context())))
		withdraw()
	})
}

func TestF64ALockThatLingersIsGivenUpForAContenderOfAnUnknownRecipe(t *testing.T) {
	each(t, func(s scene) {
		c := s.client()
		m := must(lock.New(c, s.dir(), lock.Linger(time.Hour)))
		h, err := m.Acquire(s.Context())
		require.NoError(s, err)
		require.NoError(s, h.Release(s.Context()))
		s.awaitNodes(1)
		_, leave := s.stranger(s.dir(), "n_")
		s.awaitNodes(1)
		require.ErrorIs(s, coordtest.Err(m.TryAcquire(s.Context())), coord.ErrForeign)
		leave()
	})
}
