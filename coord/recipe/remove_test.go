package recipe_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// everySecond is a schedule.
type everySecond struct{}

func (everySecond) Next(after time.Time) time.Time {
	return after.Truncate(time.Second).Add(time.Second)
}

// tenant is a recipe at a path that can be removed.
type tenant struct {
	remove func(ctx context.Context) error
	// use uses the recipe: it comes, and returns what ends that, if anybody is
	// there in between.
	use func(t testing.TB) (leave func())
	who string // is there in between
}

func released(t testing.TB, h interface{ Release(context.Context) error }) func() {
	return func() { require.NoError(t, h.Release(coordtest.Limited(t))) }
}

func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

// tenants are all recipes that leave something at a path, by client c.
func tenants(t testing.TB, c *coord.Client, at string) map[string]tenant {
	sem := must(semaphore.New(c, at, 2))
	numbers := must(slots.New(c, at, 2))
	rounds := must(doublebarrier.New(c, at, 1))
	items := must(queue.New(c, at))
	ledger := must(once.New(c, at, once.KeepLast(5)))
	schedule := must(cron.New(c, at, everySecond{}, cron.Describe("report")))
	keys := must(shards.New(c, at, shards.Keys("a", "b")))
	setting := must(value.New(c, at))
	total := must(counter.New(c, at))
	return map[string]tenant{
		"semaphore": {sem.Remove, func(t testing.TB) func() { return released(t, coordtest.Acquire(t, sem)) }, "lease"},
		"slots": {
			numbers.Remove, func(t testing.TB) func() { return released(t, coordtest.Acquire(t, numbers)) }, "holder",
		},
		"double barrier": {rounds.Remove, func(t testing.TB) func() {
			m := must(rounds.EnterWith(coordtest.Limited(t), []byte("x")))
			return func() {
				require.NoError(t, coordtest.Err(m.Gather(coordtest.Limited(t), []byte("y"))))
			}
		}, "member"},
		"queue": {items.Remove, func(t testing.TB) func() {
			require.NoError(t, items.Put(coordtest.Limited(t), []byte("x")))
			item := coordtest.Call(t, items.Receive)
			return func() { require.NoError(t, item.Ack(coordtest.Limited(t))) }
		}, "item"},
		"dead letters": {items.Remove, func(t testing.TB) func() {
			require.NoError(t, items.Put(coordtest.Limited(t), []byte("x")))
			require.NoError(t, coordtest.Call(t, items.Receive).Bury(coordtest.Limited(t), "no"))
			return func() {
				for _, letter := range coordtest.Call(t, items.DeadLetters) {
					dead := must(queue.New(c, at+"/dead"))
					require.NoError(t, dead.Drop(coordtest.Limited(t), letter.Name))
				}
			}
		}, "dead letter"},
		"once": {ledger.Remove, func(t testing.TB) func() {
			run, _, err := ledger.Begin(coordtest.Limited(t), "key")
			require.NoError(t, err)
			return func() { require.NoError(t, coordtest.Err(run.End(coordtest.Limited(t), nil, nil))) }
		}, "run"},
		"cron": {schedule.Remove, func(t testing.TB) func() {
			slot := coordtest.Call(t, schedule.Begin)
			return func() { require.NoError(t, coordtest.Err(slot.End(coordtest.Limited(t), nil, nil))) }
		}, "run"},
		"shards": {keys.Remove, func(t testing.TB) func() {
			owned := make(chan struct{}, 2)
			ran := coordtest.Go(func() error {
				return keys.Run(t.Context(), func(ctx context.Context, _ string, _ coord.Held) error {
					owned <- struct{}{}
					select {
					case <-shards.Draining(ctx):
					case <-ctx.Done():
					}
					return nil
				})
			})
			zktest.Receive(t, coordtest.Soon, owned, "a key")
			return func() {
				require.NoError(t, keys.Leave(coordtest.Limited(t)))
				require.NoError(t, zktest.Receive(t, coordtest.Soon, ran, "the end of Run"))
			}
		}, "member"},
		"value": {setting.Remove, func(t testing.TB) func() {
			require.NoError(t, setting.Set(coordtest.Limited(t), []byte("x")))
			return nil
		}, ""},
		"counter": {total.Remove, func(t testing.TB) func() {
			require.NoError(t, coordtest.Err(total.Add(coordtest.Limited(t), 1)))
			return nil
		}, ""},
	}
}

// left lists what there is at a path, at paths that begin with it, and below.
func left(t testing.TB, w *zktest.World, at string) (all []string) {
	t.Helper()
	for _, name := range coordtest.Children(t, w, path.Dir(at)) {
		if strings.HasPrefix(name, path.Base(at)) {
			all = append(all, below(t, w, path.Dir(at)+"/"+name)...)
		}
	}
	return all
}

func below(t testing.TB, w *zktest.World, at string) []string {
	t.Helper()
	all := []string{at}
	for _, name := range coordtest.Children(t, w, at) {
		all = append(all, below(t, w, at+"/"+name)...)
	}
	return all
}

var recipesThatLeave = []string{
	"semaphore", "slots", "double barrier", "queue", "dead letters", "once", "cron", "shards", "value", "counter",
}

func TestF78APathThatWasUsedOnceIsEmptyAfterRemove(t *testing.T) {
	for _, name := range recipesThatLeave {
		for _, d := range []coord.Dialect{coord.Curator, coord.Kazoo} {
			t.Run(name+" "+string(d), func(t *testing.T) {
				zktest.Each(t, func(t *testing.T, w *zktest.World) {
					at := w.Path("made/r")
					user := coordtest.Open(t, w.ConnectString(), coord.WithDialect(d))
					operator := coordtest.Open(t, w.ConnectString(), coord.WithDialect(d))
					own, others := tenants(t, user, at)[name], tenants(t, operator, at)[name]
					require.NoError(t, others.remove(coordtest.Limited(t)), "there is nothing")
					leave := own.use(t)
					if leave != nil {
						require.NotEmpty(t, left(t, w, at))
						for _, remove := range []func(context.Context) error{own.remove, others.remove} {
							err := remove(coordtest.Limited(t))
							require.ErrorIs(t, err, coord.ErrBusy)
							require.ErrorContains(t, err, "1 "+own.who)
						}
						leave()
					}
					require.NotEmpty(t, left(t, w, at), "which is why it is removed")
					if name == "cron" {
						require.ErrorContains(t, own.remove(coordtest.Limited(t)), "1 runner ("+user.Info().Identity+")")
						require.NoError(t, user.Close(context.Background()))
						own = others
					}
					require.NoError(t, own.remove(coordtest.Limited(t)))
					require.Empty(t, left(t, w, at))
					require.NoError(t, own.remove(coordtest.Limited(t)), "there is nothing any more")
					if leave = others.use(t); leave != nil {
						leave()
					}
				})
			})
		}
	}
}

func TestRemoveRefusesAnothersNodesAndSaysWhose(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		for name, its := range tenants(b, c, "/r") {
			require.NoError(b, c.Create(b.Context(), "/r/settings", nil))
			require.ErrorIs(b, its.remove(b.Context()), coord.ErrBusy, name)
			if name != "double barrier" { // which takes all below its path for members
				require.ErrorContains(b, its.remove(b.Context()), "1 node of another (settings)", name)
			}
			require.NoError(b, c.Delete(b.Context(), "/r/settings", -1))
			require.NoError(b, its.remove(b.Context()))
		}
		own := must(slots.New(c, "/r", 4, slots.Durable("host1", time.Hour)))
		require.NoError(b, coordtest.Acquire(b, own).Release(b.Context()))
		require.ErrorContains(b, own.Remove(b.Context()), "1 durable owner (0)")
		require.NoError(b, own.Forget(b.Context(), "host1"))
		require.NoError(b, own.Remove(b.Context()))

		number := must(counter.New(c, "/r"))
		require.NoError(b, must(value.New(c, "/r")).Set(b.Context(), []byte("a setting")))
		require.ErrorIs(b, number.Remove(b.Context()), counter.ErrNoNumber)
	})
}

func TestRemoveIsRefusedIfSomebodyComesBetweenItsLookAndItsDeletion(t *testing.T) {
	for name, come := range map[string]func(b coordtest.Bubble, c *coord.Client){
		"holder": func(b coordtest.Bubble, c *coord.Client) { coordtest.Acquire(b, must(slots.New(c, "/r", 2))) },
		"durable owner": func(b coordtest.Bubble, c *coord.Client) {
			s := must(slots.New(c, "/r", 2, slots.Durable("host1", time.Hour)))
			require.NoError(b, coordtest.Acquire(b, s).Release(b.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				operator, comer := b.Open(), b.Open()
				numbers := must(slots.New(operator, "/r", 2))
				require.NoError(b, coordtest.Acquire(b, numbers).Release(b.Context()))
				late := b.Server.Inject(zkembed.Match{
					Session: operator.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/r", Times: 1,
				}, zkembed.Delay(time.Second))
				removed := coordtest.Go(func() error { return numbers.Remove(b.Context()) })
				<-late.Struck()
				come(b, comer)
				require.Empty(b, removed)
				err := <-removed
				require.ErrorIs(b, err, coord.ErrBusy)
				require.ErrorContains(b, err, "1 "+name)
			})
		})
	}
}

func TestRemoveTellsOfEveryRequestThatFailed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		operator := b.Open()
		sem := must(semaphore.New(operator, "/r", 2))
		require.NoError(b, coordtest.Acquire(b, sem).Release(b.Context()))
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/r/"},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		err := sem.Remove(b.Context())
		var all *multierror.Error
		require.ErrorAs(b, err, &all)
		require.ErrorContains(b, err, "/r/leases")
		require.ErrorContains(b, err, "/r/locks")
		require.ErrorIs(b, err, coord.ErrNoAuth)
	})
}

func TestRemoveThatIsRefusedHasDeletedNothing(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		operator, comer := b.Open(), b.Open()
		sem := must(semaphore.New(operator, "/r", 2))
		require.NoError(b, coordtest.Acquire(b, sem).Release(b.Context()))
		late := b.Server.Inject(zkembed.Match{
			Session: operator.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/r", Times: 1,
		}, zkembed.Delay(time.Second))
		removed := coordtest.Go(func() error { return sem.Remove(b.Context()) })
		<-late.Struck()
		coordtest.Acquire(b, must(semaphore.New(comer, "/r", semaphore.Stored)))
		require.ErrorIs(b, <-removed, coord.ErrBusy)
		limit, err := sem.Limit(b.Context())
		require.NoError(b, err)
		require.Equal(b, 2, limit)
		_, there, err := operator.Exists(b.Context(), "/r/locks")
		require.NoError(b, err)
		require.True(b, there)
	})
}

func TestRemoveLooksAtTheLatestStateThoughItsServerLags(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		operator, user := b.Open(), b.Open()
		b.Server.AddFollower(2*time.Second, operator.Info().SessionID)
		h := coordtest.Acquire(b, must(semaphore.New(user, "/r", 2)))
		sem := must(semaphore.New(operator, "/r", semaphore.Stored))
		require.ErrorIs(b, sem.Remove(b.Context()), coord.ErrBusy)
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, sem.Remove(b.Context()))
	})
}

// A ledger of that size takes several packets.
func TestRemoveOfManyNodesDeletesThemAll(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open(coord.WithMaxPacket(20_000))
		ledger := must(once.New(c, "/r"))
		for i := range 300 {
			require.NoError(b,
				coordtest.Err(
					ledger.Do(b.Context(), strings.Repeat("k", 100)+strconv.Itoa(i),
						func(context.Context, *once.Run) ([]byte, error) { return nil, nil })))
		}
		begun, _, err := ledger.Begin(b.Context(), "one more")
		require.NoError(b, err)
		before := len(b.Server.Nodes())
		require.ErrorIs(b, ledger.Remove(b.Context()), coord.ErrBusy)
		require.Len(b, b.Server.Nodes(), before)
		require.NoError(b, coordtest.Err(begun.End(b.Context(), nil, nil)))
		require.NoError(b, ledger.Remove(b.Context()))
		for _, n := range b.Server.Nodes() {
			require.NotContains(b, n.Path, "/r")
		}
	})
}

// Nobody who comes at the same time loses what he has, or an item that he has
// put, and no more hold than may.
func TestF78WhoeverComesWhileARecipeIsRemovedIsServed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		const rounds = 60
		client := func() *coord.Client { return coordtest.Open(t, w.ConnectString()) }
		sem := func(c *coord.Client) *semaphore.Semaphore { return must(semaphore.New(c, w.Path("s"), 2)) }
		numbers := func(c *coord.Client) *slots.Slots { return must(slots.New(c, w.Path("n"), 2)) }
		items := func(c *coord.Client) *queue.Queue { return must(queue.New(c, w.Path("q"))) }
		ctx, end := context.WithCancel(coordtest.Within(t, 3*coordtest.Soon))
		var removing, coming sync.WaitGroup
		var removed atomic.Int64
		operator := client()
		for _, remove := range []func(context.Context) error{
			sem(operator).Remove, numbers(operator).Remove, items(operator).Remove,
		} {
			removing.Go(func() {
				for ctx.Err() == nil {
					err := remove(ctx)
					if err == nil {
						removed.Add(1)
					} else if ctx.Err() == nil {
						assert.ErrorIs(t, err, coord.ErrBusy)
					}
				}
			})
		}
		var holders atomic.Int64
		var held [2]atomic.Bool
		for range 3 {
			c := client()
			coming.Go(func() {
				for range rounds {
					h, err := sem(c).Acquire(ctx)
					if !assert.NoError(t, err) {
						return
					}
					assert.LessOrEqual(t, holders.Add(1), int64(2))
					assert.NoError(t, h.Err())
					holders.Add(-1)
					assert.NoError(t, h.Release(ctx))
				}
			})
			coming.Go(func() {
				for range rounds {
					slot, err := numbers(c).Acquire(ctx)
					if !assert.NoError(t, err) {
						return
					}
					assert.True(t, held[slot.Number].CompareAndSwap(false, true), "two have number %d", slot.Number)
					assert.NoError(t, slot.Err())
					held[slot.Number].Store(false)
					assert.NoError(t, slot.Release(ctx))
				}
			})
			coming.Go(func() {
				q := items(c)
				for i := range rounds {
					if !assert.NoError(t, q.Put(ctx, []byte(strconv.Itoa(i)))) {
						return
					}
					item, err := q.Receive(ctx)
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, item.Ack(ctx))
				}
			})
		}
		coming.Wait()
		end()
		removing.Wait()
		require.Positive(t, removed.Load())
	})
}

func TestTheServersOwnNodesAreNoRecipes(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		for _, at := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config/x"} {
			require.ErrorContains(b, recipe.Check(c, at), "the servers keep nodes of their own")
			require.ErrorIs(b,
				coordtest.Err(coord.Open(b.Context(), b.Server.ConnectString()+at, coord.WithDialer(b.Server.DialContext))),
				coord.ErrInvalid)
		}
		require.NoError(b, recipe.Check(c, "/zookeepers"))
		require.NoError(b, recipe.Check(c, "/app/zookeeper"))
	})
}

func TestF78ARecipeLeavesAsManyNodesAsTheDocumentSays(t *testing.T) {
	document := string(must(os.ReadFile("../../docs/operations.md")))
	for _, name := range recipesThatLeave {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				c := b.Open()
				if leave := tenants(b, c, "/r")[name].use(b); leave != nil {
					leave()
				}
				b.Close(c)
				for range 5 {
					b.Server.Reap()
				}
				var left []string
				for _, node := range b.Server.Nodes() {
					if strings.HasPrefix(node.Path, "/r") {
						left = append(left, node.Path)
					}
				}
				assert.True(b, strings.Contains(document, fmt.Sprintf("| %s | %d | ", name, len(left))), "%s leaves %d nodes: %q",
					name, len(left), left)
			})
		})
	}
}
