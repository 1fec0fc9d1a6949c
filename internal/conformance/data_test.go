package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipetest"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// is fails unless a call returns this.
func is[V comparable](want V) func(got V, err error) error {
	return func(got V, err error) error {
		if err == nil && got != want {
			return fmt.Errorf("it is %v, and not %v", got, want)
		}
		return err
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func barriers(t *testing.T) {
	var as row[*barrier.Barrier, struct{}]
	type o = *object[*barrier.Barrier, struct{}]
	type c = recipetest.Call[o]
	set, open := as.does((*barrier.Barrier).Set), as.does((*barrier.Barrier).Open)
	closed := func(want bool) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return is(want)(o.it.Closed(ctx)) }
	}
	as.run(
		t, barrier.New, func(context.Context, o) error { return coord.ErrInvalid },
		c{Name: "Set", Op: "set", Do: set, Ready: both(set, open), Done: closed(true), Requests: 1, RoundTrips: 1},
		c{Name: "Open", Op: "open", Do: open, Ready: set, Done: closed(false), Requests: 1, RoundTrips: 1},
		c{
			Name: "Wait", Op: "wait", Do: as.does((*barrier.Barrier).Wait), Block: set, Unblock: open, Requests: 2,
			RoundTrips: 2,
		},
		c{
			Name: "Closed", Op: "look at", Do: as.does(only((*barrier.Barrier).Closed)), Ready: set, Requests: 1, RoundTrips: 1,
		},
		c{
			Name:  "SetBy",
			Do:    as.does(func(b *barrier.Barrier, ctx context.Context) error { _, _, err := b.SetBy(ctx); return err }),
			Ready: set, Requests: 1, RoundTrips: 1,
		},
	)
}

func doubleBarriers(t *testing.T) {
	var as row[*doublebarrier.Barrier, *doublebarrier.Member]
	type o = *object[*doublebarrier.Barrier, *doublebarrier.Member]
	type c = recipetest.Call[o]
	of := func(n int) func(*coord.Client, string) (*doublebarrier.Barrier, error) {
		return func(c *coord.Client, path string) (*doublebarrier.Barrier, error) {
			return doublebarrier.New(c, path, n)
		}
	}
	refused := func(ctx context.Context, o o) error {
		return invalid(o.it.Do(ctx, nil), coordtest.Err(doublebarrier.New(o.c, o.path, 0)),
			coordtest.Err(doublebarrier.New(o.c, o.path, 1, nil)))
	}
	enter, leave := as.keeps((*doublebarrier.Barrier).Enter), as.ends((*doublebarrier.Member).Leave)
	again := both(enter, leave)
	gather := as.ends(func(m *doublebarrier.Member, ctx context.Context) error {
		return coordtest.Err(m.Gather(ctx, []byte("x")))
	})
	inside := func(context.Context, *doublebarrier.Member) error { return nil }
	as.run(
		t, of(1), refused,
		c{Name: "Enter", Requests: 5, RoundTrips: 4, Op: "enter", Do: enter, Ready: again},
		c{
			Name: "EnterWith", Requests: 7, RoundTrips: 6, Op: "enter",
			Do: as.keeps(func(b *doublebarrier.Barrier, ctx context.Context) (*doublebarrier.Member, error) {
				return b.EnterWith(ctx, []byte("x"))
			}), Ready: again,
		},
		c{Name: "Leave", Requests: 4, RoundTrips: 4, Do: leave, Ready: both(again, enter), Ends: true, Holds: true},
		c{Name: "Gather", Requests: 5, RoundTrips: 5, Do: gather, Ready: both(again, enter), Ends: true, Holds: true},
		c{
			Name: "Abandon", Requests: 1, RoundTrips: 1,
			Do:    as.ends(func(m *doublebarrier.Member, ctx context.Context) error { return m.GiveUp(ctx, nil) }),
			Ready: both(again, enter), Ends: true, Holds: true,
		},
		c{
			Name: "Do", Requests: 9, RoundTrips: 8, Holds: true,
			Do: as.does(func(b *doublebarrier.Barrier, ctx context.Context) error { return b.Do(ctx, inside) }), Ready: again,
		},
		c{
			Name: "Status", Requests: 2, RoundTrips: 2, Op: "status", Do: as.does(only((*doublebarrier.Barrier).Status)),
			Ready: again,
		},
		c{
			Name: "Absent", Requests: 1, RoundTrips: 1, Op: "status", Do: as.does(only((*doublebarrier.Barrier).Absent)),
			Ready: again,
		},
		c{
			Name: "Remove", Done: as.gone, Requests: 5, RoundTrips: 5, Op: "remove",
			Do: as.does((*doublebarrier.Barrier).Remove), Ready: again,
		},
	)
	as.run(t, of(2), refused, c{Name: "Enter of two", Do: enter, Waits: true, Unblock: enter})
}

func queues(t *testing.T) {
	var as row[*queue.Queue, *queue.Item]
	type o = *object[*queue.Queue, *queue.Item]
	type c = recipetest.Call[o]
	put := as.does(func(q *queue.Queue, ctx context.Context) error { return q.Put(ctx, []byte("x")) })
	three := as.does(func(q *queue.Queue, ctx context.Context) error {
		return q.PutBatch(ctx, [][]byte{[]byte("x"), []byte("y"), []byte("z")})
	})
	receive, ack := as.keeps((*queue.Queue).Receive), as.ends((*queue.Item).Ack)
	bury := as.ends(func(i *queue.Item, ctx context.Context) error { return i.Bury(ctx, "no") })
	again := both(put, receive, ack, put)
	length := func(n int) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return is(n)(o.it.Len(ctx)) }
	}
	// named is a call for an item, or a dead letter, by its name.
	named := func(f func(q *queue.Queue, ctx context.Context, name string) error) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return f(o.it, ctx, "entry-100-0000000001") }
	}
	letter := func(f func(q *queue.Queue, ctx context.Context, name string) error) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return f(o.it, ctx, "entry-100-0000000000") }
	}
	as.run(
		t, func(c *coord.Client, path string) (*queue.Queue, error) { return queue.New(c, path) },
		func(ctx context.Context, o o) error {
			return invalid(coordtest.Err(queue.New(o.c, o.path, nil)),
				coordtest.Err(queue.New(o.c, o.path, queue.DeadLetters(0))),
				coordtest.Err(queue.New(o.c, o.path, queue.OnEnd(nil))), o.it.Run(ctx, nil),
				o.it.Put(ctx, nil, nil), o.it.Put(ctx, nil, queue.Priority(1000)), o.it.Put(ctx, nil, queue.Priority(-1)))
		},
		c{Name: "Put", Requests: 1, RoundTrips: 1, Once: true, Op: "put", Do: put, Ready: again, Done: length(2)},
		c{Name: "PutBatch", Requests: 1, RoundTrips: 1, Once: true, Op: "put", Do: three, Ready: again, Done: length(4)},
		c{
			Name: "Receive", Requests: 3, RoundTrips: 3, Op: "receive", Do: receive, Ready: again, Unblock: put, Done: length(1),
		},
		c{
			Name: "TryReceive", Requests: 3, RoundTrips: 3, Op: "receive", Do: as.keeps((*queue.Queue).TryReceive), Ready: again,
		},
		c{
			Name: "ReceiveBatch", Requests: 6, RoundTrips: 3, Op: "receive",
			Do:    as.does(func(q *queue.Queue, ctx context.Context) error { return coordtest.Err(q.ReceiveBatch(ctx, 4)) }),
			Ready: both(again, three), Unblock: put,
		},
		c{
			Name: "Take", Requests: 3, RoundTrips: 3, Once: true, Op: "take", Do: as.does(only((*queue.Queue).Take)),
			Ready: again, Unblock: put, Done: length(0),
		},
		c{
			Name: "TryTake", Requests: 3, RoundTrips: 3, Once: true, Op: "take", Do: as.does(only((*queue.Queue).TryTake)),
			Ready: again, Done: length(0),
		},
		c{Name: "Len", Requests: 1, RoundTrips: 1, Op: "count", Do: as.does(only((*queue.Queue).Len)), Ready: again},
		c{Name: "Peek", Requests: 3, RoundTrips: 2, Op: "peek", Do: as.does(only((*queue.Queue).Peek)), Ready: again},
		c{
			Name: "Items", Requests: 2, RoundTrips: 1,
			Do: as.does(func(q *queue.Queue, ctx context.Context) error { _, _, err := q.Items(ctx); return err }), Ready: again,
		},
		c{Name: "Consumers", Requests: 1, RoundTrips: 1, Do: as.does(only((*queue.Queue).Consumers)), Ready: again},
		c{
			Name: "DeadLetters", Requests: 5, RoundTrips: 5, Op: "list the dead letters",
			Do: as.does(only((*queue.Queue).DeadLetters)), Ready: both(again, receive, bury),
		},
		c{
			Name: "Acknowledged", Requests: 1, RoundTrips: 1, Op: "list the acknowledged letters",
			Do: as.does(only((*queue.Queue).Acknowledged)), Ready: again,
		},
		c{
			Name: "Acknowledge", Requests: 8, RoundTrips: 8, Once: true, Op: "acknowledge",
			Do: letter(func(q *queue.Queue, ctx context.Context, name string) error {
				return coordtest.Err(q.Acknowledge(ctx, name))
			}), Ready: both(again, receive, bury),
		},
		c{
			Name: "Requeue", Requests: 10, RoundTrips: 9, Once: true,
			Do: letter(func(q *queue.Queue, ctx context.Context, name string) error {
				return coordtest.Err(q.Requeue(ctx, name))
			}), Ready: both(again, receive, bury),
		},
		c{
			Name: "Bury", Requests: 14, RoundTrips: 13, Once: true,
			Do:    named(func(q *queue.Queue, ctx context.Context, name string) error { return q.Bury(ctx, name, "no") }),
			Ready: again, Done: length(0),
		},
		c{
			Name: "Drop", Requests: 3, RoundTrips: 3, Once: true,
			Do: named((func(q *queue.Queue, ctx context.Context, name string) error { return q.Drop(ctx, name) })), Ready: again,
			Done: length(0),
		},
		c{
			Name: "Ack", Requests: 1, RoundTrips: 1, Once: true, Do: ack, Ready: both(again, receive), Ends: true, Holds: true,
			Done: length(0),
		},
		c{
			Name: "Nack", Requests: 2, RoundTrips: 2, Once: true,
			Do: as.ends(func(i *queue.Item, ctx context.Context) error { return i.Nack(ctx, 0) }), Ready: both(again, receive),
			Ends: true, Holds: true, Done: length(1),
		},
		c{
			Name: "Item.Bury", Requests: 13, RoundTrips: 11, Once: true, Do: bury, Ready: both(again, receive), Ends: true,
			Holds: true, Done: length(0),
		},
		c{
			Name: "Close", Requests: 1, RoundTrips: 1, Do: as.does((*queue.Queue).Close), Ready: both(again, receive),
			Ends: true, Holds: true, Done: length(1),
		},
		c{Name: "Run", Do: as.does(func(q *queue.Queue, ctx context.Context) error {
			return q.Run(ctx, func(context.Context, *queue.Item) error { return nil })
		}), Waits: true},
		c{
			Name: "Remove", Done: as.gone, Requests: 9, RoundTrips: 7, Op: "remove", Do: as.does((*queue.Queue).Remove),
			Ready: both(put, receive, ack),
		},
	)
}

func jobs(t *testing.T) {
	var as row[*once.Once, *once.Run]
	type o = *object[*once.Once, *once.Run]
	type c = recipetest.Call[o]
	ran := func(context.Context, *once.Run) ([]byte, error) { return []byte("x"), nil }
	do := func(key string) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return coordtest.Err(o.it.Do(ctx, key, ran)) }
	}
	begin := func(ctx context.Context, o o) (err error) {
		o.kept, _, err = o.it.Begin(ctx, "key")
		return err
	}
	tryBegin := func(ctx context.Context, o o) (err error) {
		o.kept, _, err = o.it.TryBegin(ctx, "key")
		return err
	}
	records := func(n int) func(context.Context, o) error {
		return func(ctx context.Context, o o) error {
			got := 0
			for _, err := range o.it.List(ctx) {
				if err != nil {
					return err
				}
				got++
			}
			return is(n)(got, nil)
		}
	}
	end := as.ends(func(r *once.Run, ctx context.Context) error { return coordtest.Err(r.End(ctx, nil, nil)) })
	as.run(
		t, func(c *coord.Client, path string) (*once.Once, error) { return once.New(c, path) },
		func(ctx context.Context, o o) error {
			errs := []error{coordtest.Err(o.it.Do(ctx, "key", nil)), coordtest.Err(o.it.TryDo(ctx, "key", nil))}
			for _, key := range []string{"", long(201), strings.Repeat("/", 67)} {
				errs = append(errs, coordtest.Err(o.it.Do(ctx, key, ran)), o.it.Forget(ctx, key))
			}
			for _, opt := range []once.Option{
				nil, once.Attempts(0, 0), once.Attempts(1, -1), once.Attempts(2, 25*time.Hour), once.Keep(0), once.Keep(-1),
				once.KeepLast(0),
			} {
				errs = append(errs, coordtest.Err(once.New(o.c, o.path, opt)))
			}
			return invalid(errs...)
		},
		c{
			Name: "Do", Requests: 18, RoundTrips: 14, Once: true, Op: "do", Do: do("key"), Ready: do("another"), Block: begin,
			Done: records(2),
		},
		c{Name: "Do what is done", Requests: 1, RoundTrips: 1, Op: "do", Do: do("key"), Ready: do("key"), Done: records(1)},
		c{
			Name: "TryDo", Requests: 16, RoundTrips: 15, Once: true, Op: "try", Do: func(ctx context.Context, o o) error {
				return coordtest.Err(o.it.TryDo(ctx, "key", ran))
			}, Ready: do("another"), Done: records(2),
		},
		c{Name: "Begin", Requests: 17, RoundTrips: 13, Op: "begin", Do: begin, Ready: do("another"), Block: begin},
		c{Name: "TryBegin", Requests: 15, RoundTrips: 14, Op: "try", Do: tryBegin, Ready: do("another")},
		c{
			Name: "End", Requests: 1, RoundTrips: 1, Once: true, Do: end, Ready: both(do("another"), begin), Ends: true,
			Holds: true, Done: records(2),
		},
		c{
			Name: "Withdraw", Requests: 1, RoundTrips: 1, Once: true, Do: as.ends((*once.Run).Withdraw),
			Ready: both(do("another"), begin), Ends: true, Holds: true,
		},
		c{
			Name: "List", Requests: 33, RoundTrips: 33, Op: "list", Do: func(ctx context.Context, o o) error {
				return coordtest.Last(o.it.List(ctx))
			}, Ready: do("key"),
		},
		c{
			Name: "Forget", Requests: 8, RoundTrips: 7, Op: "forget",
			Do: as.does(func(l *once.Once, ctx context.Context) error { return l.Forget(ctx, "key") }), Ready: do("key"),
			Done: records(0),
		},
		c{
			Name: "Remove", Done: as.gone, Requests: 14, RoundTrips: 11, Op: "remove", Do: as.does((*once.Once).Remove),
			Ready: do("key"),
		},
	)
	as.run(
		t, func(c *coord.Client, path string) (*once.Once, error) { return once.New(c, path, once.KeepLast(5)) },
		func(context.Context, o) error { return coord.ErrInvalid },
		c{
			Name: "Prune", Requests: 6, RoundTrips: 2, Op: "prune", Do: as.does(only((*once.Once).Prune)), Ready: do("key"),
			Done: records(1),
		},
	)
}

// minutely is a schedule.
type minutely struct{}

func (minutely) Next(after time.Time) time.Time {
	return after.Truncate(time.Minute).Add(time.Minute)
}

func schedules(t *testing.T) {
	var as row[*cron.Cron, *cron.Slot]
	type o = *object[*cron.Cron, *cron.Slot]
	type c = recipetest.Call[o]
	begin := as.keeps((*cron.Cron).Begin)
	end := as.ends(func(s *cron.Slot, ctx context.Context) error { return coordtest.Err(s.End(ctx, nil, nil)) })
	again := both(begin, end)
	as.run(
		t, func(c *coord.Client, path string) (*cron.Cron, error) { return cron.New(c, path, minutely{}) },
		func(ctx context.Context, o o) error {
			errs := []error{o.it.Run(ctx, nil)}
			for _, bad := range []cron.Schedule{
				nil, cron.In(nil, minutely{}), cron.WallClock(nil, minutely{}), cron.In(time.UTC, cron.WallClock(time.UTC, nil)),
			} {
				errs = append(errs, coordtest.Err(cron.New(o.c, o.path, bad)))
			}
			for _, opts := range [][]cron.Option{
				{nil},
				{cron.Attempts(0, 0)},
				{cron.Keep(0)},
				{cron.KeepLast(0)},
				{cron.CatchUp(0, 0)},
				{cron.CatchUp(1001, 0)},
				{cron.CatchUp(1, -1)},
				{cron.MaxConcurrent(0)},
				{cron.MaxConcurrent(1001)},
				{cron.Jitter(-1)},
				{cron.Clock(nil)},
				{cron.OnEnd(nil)},
				{cron.Skip(), cron.MaxConcurrent(2)},
			} {
				errs = append(errs, coordtest.Err(cron.New(o.c, o.path, minutely{}, opts...)))
			}
			return invalid(errs...)
		},
		c{Name: "Begin", Op: "begin", Do: begin, Waits: true},
		c{Name: "End", Requests: 9, RoundTrips: 9, Once: true, Do: end, Ready: begin, Ends: true, Holds: true},
		c{Name: "State", Requests: 1, RoundTrips: 1, Op: "state", Do: as.does(only((*cron.Cron).State)), Ready: again},
		c{Name: "Jobs", Requests: 1, RoundTrips: 1, Do: as.does(only((*cron.Cron).Jobs)), Ready: again},
		c{Name: "Rewind", Requests: 36, RoundTrips: 36, Op: "rewind", Do: as.does((*cron.Cron).Rewind), Ready: again},
		c{Name: "Run", Op: "begin", Do: as.does(func(s *cron.Cron, ctx context.Context) error {
			return s.Run(ctx, func(context.Context, *cron.Slot) ([]byte, error) { return nil, nil })
		}), Waits: true},
		c{Name: "Remove", Done: as.gone, Requests: 2, RoundTrips: 2, Op: "remove", Do: as.does((*cron.Cron).Remove)},
	)
}

func keys(t *testing.T) {
	var as row[*shards.Shards, struct{}]
	type o = *object[*shards.Shards, struct{}]
	type c = recipetest.Call[o]
	run := as.does(func(s *shards.Shards, ctx context.Context) error {
		return s.Run(ctx, func(ctx context.Context, _ string, _ coord.Held) error {
			select {
			case <-shards.Draining(ctx):
			case <-ctx.Done():
			}
			return nil
		})
	})
	set := as.does(func(s *shards.Shards, ctx context.Context) error { return s.SetKeys(ctx, "a", "b") })
	as.run(
		t, func(c *coord.Client, path string) (*shards.Shards, error) { return shards.New(c, path) },
		func(ctx context.Context, o o) error {
			errs := []error{o.it.Run(ctx, nil), o.it.SetKeys(ctx), o.it.SetRanges(ctx, -1)}
			for _, opt := range []shards.Option{
				nil, shards.Keys(), shards.OnEvent(nil), shards.Weight(-1), shards.Cooldown(-1),
			} {
				errs = append(errs, coordtest.Err(shards.New(o.c, o.path, opt)))
			}
			return invalid(errs...)
		},
		c{Name: "SetKeys", Requests: 2, RoundTrips: 2, Op: "set keys", Do: set, Ready: set},
		c{
			Name: "SetRanges", Requests: 2, RoundTrips: 2,
			Do: as.does(func(s *shards.Shards, ctx context.Context) error { return s.SetRanges(ctx, 2) }), Ready: set,
		},
		c{Name: "Owner", Requests: 3, RoundTrips: 3, Do: as.does(func(s *shards.Shards, ctx context.Context) error {
			_, err := s.Owner(ctx, "a")
			if errors.Is(err, shards.ErrNoOwner) {
				return nil
			}
			return err
		})},
		c{
			Name: "Status", Requests: 6, RoundTrips: 5, Ready: set,
			Do: as.does(func(s *shards.Shards, ctx context.Context) error { _, _, err := s.Status(ctx); return err }),
		},
		c{
			Name: "Plan", Requests: 4, RoundTrips: 4, Op: "plan", Ready: set,
			Do: as.does(func(s *shards.Shards, ctx context.Context) error { _, _, err := s.Plan(ctx); return err }),
		},
		c{Name: "Run", Do: run, Waits: true},
		c{
			Name: "Remove", Done: as.gone, Requests: 5, RoundTrips: 5, Op: "remove", Do: as.does((*shards.Shards).Remove),
			Ready: set,
		},
	)
}

func groups(t *testing.T) {
	var as row[*group.Group, *group.Membership]
	type o = *object[*group.Group, *group.Membership]
	type c = recipetest.Call[o]
	join := as.keeps(func(g *group.Group, ctx context.Context) (*group.Membership, error) {
		return g.Join(ctx, "id", []byte("x"))
	})
	leave := as.ends((*group.Membership).Leave)
	set := as.ends(func(m *group.Membership, ctx context.Context) error { return m.Set(ctx, []byte("y")) })
	as.run(
		t, group.New, func(ctx context.Context, o o) error {
			return invalid(coordtest.Err(o.it.Join(ctx, "", nil)), coordtest.Err(o.it.Join(ctx, "a/b", nil)),
				o.it.Stay(ctx, "", nil))
		},
		c{Name: "Join", Requests: 1, RoundTrips: 1, Op: "join", Node: "id", Do: join, Ready: both(join, leave), Block: join},
		c{
			Name: "Stay", Op: "stay", Node: "id", Waits: true,
			Do: as.does(func(g *group.Group, ctx context.Context) error { return g.Stay(ctx, "id", nil) }),
		},
		c{
			Name: "Members", Requests: 2, RoundTrips: 2, Op: "list members", Do: as.does(only((*group.Group).Members)),
			Ready: join,
		},
		c{
			Name: "Observe", Requests: 3, RoundTrips: 3, Op: "observe", Do: as.does(first((*group.Group).Observe)), Ready: join,
		},
		c{Name: "Observe a change", Do: as.does(second((*group.Group).Observe)), Waits: true, Unblock: join},
		c{Name: "Set", Requests: 3, RoundTrips: 3, Do: set, Ready: join, Holds: true},
		c{Name: "Leave", Requests: 1, RoundTrips: 1, Do: leave, Ready: join, Ends: true, Holds: true},
	)
}

func values(t *testing.T) {
	var as row[*value.Value, value.State]
	type o = *object[*value.Value, value.State]
	type c = recipetest.Call[o]
	set := as.does(func(v *value.Value, ctx context.Context) error { return v.Set(ctx, []byte("x")) })
	change := as.does(func(v *value.Value, ctx context.Context) error {
		return v.Change(ctx, func(now value.State) ([]byte, error) { return append(now.Data, 'y'), nil })
	})
	has := func(want string) func(context.Context, o) error {
		return func(ctx context.Context, o o) error {
			now, err := o.it.Get(ctx)
			return is(want)(string(now.Data), err)
		}
	}
	as.run(
		t, value.New, func(ctx context.Context, o o) error { return invalid(o.it.Change(ctx, nil)) },
		c{Name: "Get", Requests: 1, RoundTrips: 1, Op: "get", Do: as.does(only((*value.Value).Get)), Ready: set},
		c{Name: "Set", Requests: 1, RoundTrips: 1, Once: true, Op: "set", Do: set, Ready: set, Done: has("x")},
		c{
			Name: "Change", Requests: 2, RoundTrips: 2, Once: true, Op: "change", Do: change, Ready: both(set, change),
			Done: has("xyy"),
		},
		c{
			Name: "TrySet", Requests: 2, RoundTrips: 2, Once: true, Op: "change", Do: func(ctx context.Context, o o) error {
				return o.it.TrySet(ctx, o.kept, []byte("z"))
			}, Ready: both(set, change, as.keeps((*value.Value).Get)), Done: has("z"),
		},
		c{Name: "Observe", Requests: 2, RoundTrips: 2, Op: "observe", Do: as.does(first((*value.Value).Observe)), Ready: set},
		c{Name: "Observe a change", Do: as.does(second((*value.Value).Observe)), Waits: true, Block: set, Unblock: set},
		c{
			Name: "Remove", Done: as.gone, Requests: 6, RoundTrips: 6, Op: "remove", Do: as.does((*value.Value).Remove),
			Ready: set,
		},
	)
}

func counters(t *testing.T) {
	var as row[*counter.Counter, struct{}]
	type o = *object[*counter.Counter, struct{}]
	type c = recipetest.Call[o]
	add := as.does(func(n *counter.Counter, ctx context.Context) error { return coordtest.Err(n.Add(ctx, 1)) })
	has := func(want int64) func(context.Context, o) error {
		return func(ctx context.Context, o o) error { return is(want)(o.it.Get(ctx)) }
	}
	as.run(
		t, func(c *coord.Client, path string) (*counter.Counter, error) { return counter.New(c, path) },
		func(ctx context.Context, o o) error { return invalid(coordtest.Err(counter.New(o.c, o.path, nil))) },
		c{Name: "Get", Requests: 1, RoundTrips: 1, Op: "get", Do: as.does(only((*counter.Counter).Get)), Ready: add},
		c{Name: "Add", Requests: 2, RoundTrips: 2, Once: true, Op: "add", Do: add, Ready: add, Done: has(2)},
		c{
			Name: "Set", Requests: 2, RoundTrips: 2, Once: true, Op: "set",
			Do: as.does(func(n *counter.Counter, ctx context.Context) error { return n.Set(ctx, 7) }), Ready: add, Done: has(7),
		},
		c{
			Name: "Observe", Requests: 2, RoundTrips: 2, Op: "observe", Do: as.does(first((*counter.Counter).Observe)),
			Ready: add,
		},
		c{Name: "Observe a change", Do: as.does(second((*counter.Counter).Observe)), Waits: true, Block: add, Unblock: add},
		c{
			Name: "Remove", Done: as.gone, Requests: 7, RoundTrips: 7, Op: "remove", Do: as.does((*counter.Counter).Remove),
			Ready: add,
		},
	)
}
