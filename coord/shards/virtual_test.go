package shards_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// board is what the functions of all members do at the moment.
type board struct {
	testing.TB
	drain time.Duration // that a function takes

	mu    sync.Mutex
	owner map[string]string
	token map[string]int64
	freed map[string]time.Time // since when a key has had no owner
	gap   time.Duration        // the longest that a key had none
	moves int
}

func newBoard(t testing.TB) *board {
	return &board{TB: t, owner: map[string]string{}, token: map[string]int64{}, freed: map[string]time.Time{}}
}

// work is the function of a member.
func (d *board) work(id string) shards.Func {
	return func(ctx context.Context, key string, h *coord.Hold) error {
		d.begin(id, key, h)
		defer d.end(key)
		select {
		case <-ctx.Done():
			return ctx.Err() // as most functions do
		case <-shards.Draining(ctx):
			select {
			case <-time.After(d.drain):
			case <-ctx.Done():
			}
		}
		return nil
	}
}

func (d *board) begin(id, key string, h *coord.Hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner[key] != "" {
		d.Errorf("%s is owned by %s and %s", key, d.owner[key], id)
	}
	if h.Token() <= d.token[key] {
		d.Errorf("%s: token %d follows %d", key, h.Token(), d.token[key])
	}
	d.owner[key], d.token[key] = id, h.Token()
	if freed, was := d.freed[key]; was {
		d.gap = max(d.gap, time.Since(freed))
		d.moves++
	}
}

func (d *board) end(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freed[key] = time.Now()
	delete(d.owner, key)
}

// loads counts the keys of each member, and of all.
func (d *board) loads() (by map[string]int, all int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	by = map[string]int{}
	for _, id := range d.owner {
		by[id]++
	}
	return by, len(d.owner)
}

// tokens returns the newest token of each key.
func (d *board) tokens() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.token)
}

func (d *board) ownerOf(key string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owner[key]
}

// forget begins to count anew.
func (d *board) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.freed)
	d.gap, d.moves = 0, 0
}

// member is a member that runs.
type member struct {
	*shards.Shards
	client *coord.Client
	stop   context.CancelFunc
	ended  <-chan error
}

// start starts a member with a client of its own.
func (d *board) start(b coordtest.Bubble, id string, opts ...shards.Option) *member {
	return d.with(b, b.Open(), id, opts...)
}

func (d *board) with(b coordtest.Bubble, c *coord.Client, id string, opts ...shards.Option) *member {
	s, err := shards.New(c, "/shards", append([]shards.Option{shards.ID(id)}, opts...)...)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	m := &member{s, c, cancel, coordtest.Go(func() error { return s.Run(ctx, d.work(id)) })}
	b.Cleanup(cancel)
	return m
}

// finish ends a member at once.
func (m *member) finish(b coordtest.Bubble) {
	b.Helper()
	m.stop()
	require.ErrorIs(b, <-m.ended, context.Canceled)
}

func keys(n int) shards.Option {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("key %04d", i)
	}
	return shards.Keys(all...)
}

// settled waits until the members have an even share of the keys.
func (d *board) settled(b coordtest.Bubble, n, members int) {
	b.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		by, all := d.loads()
		even := len(by) == members && all == n
		for _, has := range by {
			even = even && has >= n/members && has <= (n+members-1)/members
		}
		if even {
			return
		}
		require.Less(b, time.Since(begun), 3*coordtest.T, "%d of %d keys: %v", all, n, by)
	}
}

func TestKeysMoveOneByOneAsMembersComeAndGo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, all := newBoard(b), []*member{}
		for i := range 4 {
			all = append(all, d.start(b, fmt.Sprint("m", i), keys(30)))
			d.settled(b, 30, i+1)
			require.LessOrEqual(b, d.moves, 30/(i+1)+1)
			d.forget()
		}
		require.NoError(b, all[2].Leave(b.Context()))
		require.NoError(b, <-all[2].ended)
		d.settled(b, 30, 3)
		require.LessOrEqual(b, d.moves, 30/3+1)
		for _, i := range []int{0, 1, 3} {
			all[i].finish(b)
		}
		_, left := d.loads()
		require.Zero(b, left)
	})
}

// A key has no owner for two round trips beyond its drain, when a member comes
// and when one leaves.
func TestAPlannedMoveTakesTwoRoundTrips(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const way = 40 * time.Millisecond // a round trip
		d := newBoard(b)
		d.drain = time.Second
		one := d.start(b, "one", keys(8))
		d.settled(b, 8, 1)
		slow := b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		b.Server.Inject(zkembed.Match{}, zkembed.DelayEvents(way/2))
		two := d.start(b, "two", keys(8))
		d.settled(b, 8, 2)
		require.Equal(b, 4, d.moves)
		require.LessOrEqual(b, d.gap, 2*way)
		d.forget()
		require.NoError(b, one.Leave(b.Context()))
		d.settled(b, 8, 1)
		require.Equal(b, 4, d.moves)
		require.LessOrEqual(b, d.gap, 2*way)
		b.Logf("without an owner for %v of a round trip of %v", d.gap, way)
		slow.Remove()
		two.finish(b)
	})
}

func TestAfterACrashAllKeysAreOwnedSoon(t *testing.T) {
	for crashes, name := range []string{"the planner", "another", "all but one"} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				d, all := newBoard(b), []*member{}
				for i := range 4 {
					all = append(all, d.start(b, fmt.Sprint("m", i), keys(40)))
				}
				d.settled(b, 40, 4)
				dead := [][]int{{0}, {2}, {0, 1, 2}}[crashes]
				ids := []int64{}
				for _, i := range dead {
					ids = append(ids, all[i].client.SessionID())
				}
				cut := b.Server.Partition(zkembed.Cut{Sessions: ids})
				begun := time.Now()
				d.settled(b, 40, 4-len(dead))
				require.LessOrEqual(b, time.Since(begun), coordtest.T+2*time.Second)
				cut.Heal()
				d.settled(b, 40, 4)
				for _, m := range all {
					m.finish(b)
				}
			}, zkembed.WithTick(500*time.Millisecond))
		})
	}
}

// Every member is restarted, one after the other, as a deployment does.
func TestNoKeyIsWithoutAnOwnerForLongInARollingRestart(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const n, way = 5, 10 * time.Millisecond
		d, all := newBoard(b), []*member{}
		b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		for i := range n {
			all = append(all, d.start(b, fmt.Sprint("m", i), keys(50), shards.MovesAtATime(4)))
		}
		d.settled(b, 50, n)
		d.forget()
		for i, m := range all {
			require.NoError(b, m.Leave(b.Context()))
			require.NoError(b, <-m.ended)
			b.Close(m.client)
			all[i] = d.start(b, fmt.Sprint("m", i), keys(50), shards.MovesAtATime(4))
			d.settled(b, 50, n)
		}
		require.GreaterOrEqual(b, d.moves, 2*50)
		require.LessOrEqual(b, d.gap, 2*way)
		for _, m := range all {
			m.finish(b)
		}
	})
}

func TestAtMostSoManyKeysMoveAtATime(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		d.drain = time.Second
		one := d.start(b, "one", keys(20), shards.MovesAtATime(3))
		d.settled(b, 20, 1)
		begun := time.Now()
		two := d.start(b, "two", keys(20), shards.MovesAtATime(3))
		for moved := 0; moved < 10; time.Sleep(5 * time.Millisecond) {
			_, all := d.loads()
			require.GreaterOrEqual(b, all, 20-3)
			by, _ := d.loads()
			moved = by["two"]
		}
		require.GreaterOrEqual(b, time.Since(begun), 4*time.Second)
		one.finish(b)
		two.finish(b)
	})
}

func TestAFunctionThatDoesNotDrainLosesItsKeyInTime(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		s, err := shards.New(b.Open(), "/shards", shards.DrainTimeout(5*time.Second), keys(2))
		require.NoError(b, err)
		cause := make(chan error, 1)
		ctx, cancel := context.WithCancel(b.Context())
		ended := coordtest.Go(func() error {
			return s.Run(ctx, func(ctx context.Context, key string, h *coord.Hold) error {
				d.begin("stuck", key, h)
				<-ctx.Done()
				time.Sleep(time.Second / 2)
				d.end(key)
				select {
				case cause <- context.Cause(ctx):
				default:
				}
				return errors.New("what it returns late")
			})
		})
		d.settled(b, 2, 1)
		begun := time.Now()
		other := d.start(b, "other", keys(2))
		require.ErrorIs(b, <-cause, shards.ErrDrainTimeout)
		d.settled(b, 2, 2)
		require.GreaterOrEqual(b, time.Since(begun), 5*time.Second)
		require.Less(b, time.Since(begun), 6*time.Second)
		other.finish(b)
		cancel()
		require.ErrorIs(b, <-ended, context.Canceled)
	})
}

// A member that hears nothing keeps its keys for as long as its window is open.
func TestAMemberThatIsCutOffOwnsUntilItsWindowEnds(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one, two := d.start(b, "one", keys(10)), d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		for _, m := range []*member{one, two} {
			cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{m.client.SessionID()}})
			d.forget()
			begun := time.Now()
			for time.Since(begun) < coordtest.T/4 {
				by, all := d.loads()
				require.Equal(b, 10, all, by)
				time.Sleep(time.Second)
			}
			d.settled(b, 10, 1)
			require.Less(b, coordtest.T/3, time.Since(begun))
			cut.Heal()
			d.settled(b, 10, 2)
		}
		one.finish(b)
		two.finish(b)
	})
}

// The planner is cut off, and ends, while its plan is on the way, or when it
// has been written and the answer is lost.
func TestAPlannerThatDiesWhileItWrites(t *testing.T) {
	for name, fault := range map[string]zkembed.Action{"before": zkembed.Drop(), "after": zkembed.LoseReply()} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				d := newBoard(b)
				one := d.start(b, "one", keys(12))
				d.settled(b, 12, 1)
				two := d.start(b, "two", keys(12))
				d.settled(b, 12, 2)
				id := one.client.SessionID()
				writing := b.Server.Inject(zkembed.Match{Session: id, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/shards/plan", Times: 1}, fault)
				three := d.start(b, "three", keys(12))
				<-writing.Struck()
				begun := time.Now()
				dead := b.Server.Partition(zkembed.Cut{Sessions: []int64{id}})
				one.stop()
				d.settled(b, 12, 2)
				require.LessOrEqual(b, time.Since(begun), coordtest.T+2*coordtest.Tick+2*time.Second)
				dead.Heal()
				<-one.ended
				two.finish(b)
				three.finish(b)
			})
		})
	}
}

func TestMembersWithAnotherListAreToldSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		require.ErrorIs(b, <-d.start(b, "none").ended, shards.ErrKeys, "there is no list yet")
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		two := d.start(b, "two")
		d.settled(b, 10, 2)
		wrong := <-d.start(b, "wrong", keys(11)).ended
		require.ErrorIs(b, wrong, shards.ErrKeys)
		require.ErrorContains(b, wrong, `only here: 1, such as "key 0010"`)
		require.ErrorIs(b, <-d.start(b, "wrong", shards.Ranges(10)).ended, shards.ErrKeys)
		before, _ := d.loads()
		require.Equal(b, map[string]int{"one": 5, "two": 5}, before)
		// While the list changes, keys in both stay.
		d.forget()
		require.NoError(b, two.SetKeys(b.Context(), "key 0003", "key 0007", "new"))
		for all := 0; all != 3; _, all = d.loads() {
			time.Sleep(time.Second)
		}
		require.Zero(b, d.moves)
		require.ErrorIs(b, <-d.start(b, "former", keys(10)).ended, shards.ErrKeys)
		one.finish(b)
		two.finish(b)
		// Nobody follows the former list.
		three := d.start(b, "three", keys(10))
		four := d.start(b, "four", keys(10))
		d.settled(b, 10, 2)
		three.finish(b)
		four.finish(b)
	})
}

// Half of the members of a fleet start with another list, all at the same time.
func TestOfTwoListsAtOnceOneStays(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, c := newBoard(b), b.Open()
		former := d.with(b, c, "former", keys(5))
		d.settled(b, 5, 1)
		former.finish(b)
		var all []*member
		for i := range 6 {
			all = append(all, d.start(b, fmt.Sprint("m", i), keys(12+i%2)))
		}
		refused := 0
		time.Sleep(coordtest.T)
		for _, m := range all {
			select {
			case err := <-m.ended:
				require.ErrorIs(b, err, shards.ErrKeys)
				refused++
			default:
				defer m.finish(b)
			}
		}
		require.Equal(b, 3, refused)
		by, n := d.loads()
		require.Len(b, by, 3)
		require.Contains(b, []int{12, 13}, n)
	})
}

func TestAnIDThatComesAgainTakesTheKeysOver(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one, two := d.start(b, "one", keys(10)), d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		d.forget()
		again := d.start(b, "two", keys(10))
		require.ErrorIs(b, <-two.ended, shards.ErrReplaced)
		d.settled(b, 10, 2)
		require.Equal(b, 5, d.moves, "the others stay")
		one.finish(b)
		again.finish(b)
	})
}

func TestTheLastMemberLeavesAtOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		require.NoError(b, one.Leave(b.Context()))
		require.NoError(b, <-one.ended)
		require.NoError(b, one.Leave(b.Context()), "it has left")
		_, left := d.loads()
		require.Zero(b, left)
		idle := d.start(b, "idle", shards.Weight(0))
		time.Sleep(time.Second)
		_, left = d.loads()
		require.Zero(b, left, "a member of weight 0")
		two := d.start(b, "two")
		d.settled(b, 10, 1)
		two.finish(b)
		idle.finish(b)
	})
}

func TestAMemberIsAskedToLeaveByItsNode(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one, two := d.start(b, "one", keys(10)), d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		plan, _, err := one.Plan(b.Context())
		require.NoError(b, err)
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), "/shards/members/"+plan.Members[0].Node))
		require.NoError(b, <-one.ended)
		d.settled(b, 10, 1)
		two.finish(b)
	})
}

// A function that does not even heed the end of its context.
func TestAFunctionThatNeverReturnsLosesItsKey(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, release := newBoard(b), make(chan struct{})
		s, err := shards.New(b.Open(), "/shards", shards.DrainTimeout(5*time.Second), keys(2))
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		began := make(chan string, 10)
		ended := coordtest.Go(func() error {
			return s.Run(ctx, func(_ context.Context, key string, _ *coord.Hold) error {
				began <- key
				<-release
				return nil
			})
		})
		time.Sleep(time.Second)
		require.Len(b, began, 2)
		other := d.start(b, "other", keys(2))
		d.settled(b, 1, 1)
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), "/shards/members/"+member0(b, s)))
		d.settled(b, 2, 1)
		time.Sleep(coordtest.T)
		require.Len(b, began, 2, "never twice at a time for one key")
		cancel()
		close(release)
		<-ended
		other.finish(b)
	})
}

func member0(b coordtest.Bubble, s *shards.Shards) string {
	plan, _, err := s.Plan(b.Context())
	require.NoError(b, err)
	return plan.Members[slices.IndexFunc(plan.Members, func(m shards.Member) bool { return m.ID == s.ID() })].Node
}

// A member that hears of a plan late gives up what it is asked for, and does
// not take it back.
func TestAnOldPlanDoesNotTakeAKeyBack(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		planner := d.start(b, "planner", keys(10), shards.Weight(0))
		time.Sleep(time.Second)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		d.forget()
		// It reads the next plan late.
		slow := b.Server.Inject(zkembed.Match{Session: one.client.SessionID(), PathPrefix: "/shards/plan", Ops: []zkembed.Op{zkembed.OpGetData}}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		two := d.start(b, "two", keys(10))
		time.Sleep(time.Second)
		slow.Remove()
		d.settled(b, 10, 2)
		time.Sleep(5 * time.Second)
		require.Equal(b, 5, d.moves)
		one.finish(b)
		two.finish(b)
		planner.finish(b)
	})
}

// A key is drained for another member when that one leaves, so that its member
// is to have it again.
func TestAKeyThatComesBackIsOwnedAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		d.drain = 10 * time.Second
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		two := d.start(b, "two", keys(10))
		time.Sleep(5 * time.Second)
		two.finish(b)
		d.settled(b, 10, 1)
		// An operator asks, and nobody else is to have the key.
		admin := b.Open()
		o, err := one.Owner(b.Context(), "key 0005")
		require.NoError(b, err)
		require.NoError(b, coordtest.Err(inspect.RevokeAndWait(b.Context(), admin, o.Node, 0)))
		d.settled(b, 10, 1)
		one.finish(b)
	})
}

// A member gives keys up by a plan that it has not read, and the next that it
// reads gives them back.
func TestAKeyThatComesBackUnseenIsAskedFor(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		planner := d.start(b, "planner", keys(10), shards.Weight(0))
		time.Sleep(time.Second)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		late := b.Server.Inject(zkembed.Match{Session: one.client.SessionID(), PathPrefix: "/shards/plan", Ops: []zkembed.Op{zkembed.OpGetData}}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		two := d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		left := coordtest.Go(func() error { return two.Leave(b.Within(time.Minute)) })
		time.Sleep(time.Second)
		late.Remove()
		require.NoError(b, <-left)
		d.settled(b, 10, 1)
		one.finish(b)
		planner.finish(b)
	})
}

// Two planners: the former one was cut off, and writes late.
func TestAPlanIsWrittenForTheOneThatWasRead(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		writing := b.Server.Inject(zkembed.Match{Session: one.client.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/shards/plan", Times: 1}, zkembed.Delay(5*time.Second))
		two, three := d.start(b, "two"), d.start(b, "three", keys(10))
		<-writing.Struck()
		require.NoError(b, two.SetKeys(b.Context(), "a", "b"))
		time.Sleep(10 * time.Second)
		d.settled(b, 2, 2)
		require.ErrorIs(b, <-three.ended, shards.ErrKeys, "its list is the former one")
		one.finish(b)
		two.finish(b)
	})
}

// A member that is about to be refused is among the members for a moment.
func TestAMemberWithAnotherListGetsNoKey(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, c := newBoard(b), b.Open()
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetData, zkembed.OpExists}}, zkembed.DelayReply(2*time.Second))
		wrong := d.with(b, c, "wrong", keys(4))
		time.Sleep(time.Second)
		plan, _, err := one.Plan(b.Context())
		require.NoError(b, err)
		require.Len(b, plan.Members, 1)
		require.ErrorIs(b, <-wrong.ended, shards.ErrKeys)
		one.finish(b)
	})
}

// Whatever happens to the plan, members keep what they own.
func TestAPlanThatIsDeletedIsMadeAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, admin := newBoard(b), b.Open()
		one, two := d.start(b, "one", keys(10)), d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		require.NoError(b, two.SetKeys(b.Context(), "a", "b", "c", "d"))
		d.settled(b, 4, 2)
		d.forget()
		require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
		time.Sleep(time.Second)
		d.settled(b, 4, 2)
		require.Zero(b, d.moves)
		one.finish(b)
		d.settled(b, 4, 1)
		require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
		time.Sleep(time.Second)
		three := d.start(b, "three")
		d.settled(b, 4, 2)
		_, err := admin.Set(b.Context(), "/shards/plan", []byte("nonsense"), -1)
		require.NoError(b, err)
		for _, m := range []*member{two, three} {
			require.ErrorContains(b, <-m.ended, `no plan: "nonsense"`)
		}
	})
}

func TestAFunctionThatReturnsEarlyKeepsItsKey(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, err := shards.New(b.Open(), "/shards", keys(2), shards.ID("brief"))
		require.NoError(b, err)
		calls := make(chan string, 10)
		ended := coordtest.Go(func() error {
			return s.Run(b.Context(), func(_ context.Context, key string, _ *coord.Hold) error {
				calls <- key
				return nil
			})
		})
		time.Sleep(coordtest.T)
		require.Len(b, calls, 2)
		o, err := s.Owner(b.Context(), "key 0001")
		require.NoError(b, err)
		require.Equal(b, "brief", o.Member.ID)
		require.ErrorIs(b, s.Run(b.Context(), nil), coord.ErrInvalid)
		require.ErrorContains(b, s.Run(b.Context(), newBoard(b).work("")), "it runs already")
		require.NoError(b, s.Leave(b.Context()))
		require.NoError(b, <-ended)
	})
}

func TestAnErrorOfAFunctionEndsRun(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		s, err := shards.New(b.Open(), "/shards")
		require.NoError(b, err)
		require.Equal(b, errNoLuck, s.Run(b.Context(), func(context.Context, string, *coord.Hold) error { return errNoLuck }))
		d.settled(b, 10, 1)
		one.finish(b)
	})
}

var errNoLuck = errors.New("no luck")

// An operator deletes the nodes of a key and of a member.
func TestWhatIsBrokenByHandIsOwnedAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, admin := newBoard(b), b.Open()
		one, two := d.start(b, "one", keys(10)), d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		o, err := one.Owner(b.Context(), "key 0000")
		require.NoError(b, err)
		require.NoError(b, admin.Delete(b.Context(), o.Node, -1))
		d.settled(b, 10, 2)
		after, err := one.Owner(b.Context(), "key 0000")
		require.NoError(b, err)
		require.Equal(b, o.Member, after.Member)
		require.Greater(b, after.Token, o.Token)
		require.NoError(b, admin.Delete(b.Context(), "/shards/members/"+o.Member.Node, -1))
		time.Sleep(time.Second)
		d.settled(b, 10, 2)
		one.finish(b)
		two.finish(b)
	})
}

func TestCallsEndWhenNoServerAnswers(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		silent := b.Server.Partition(zkembed.Cut{})
		router := one.Router()
		for name, call := range map[string]func(context.Context) error{
			"Owner":   func(ctx context.Context) error { return coordtest.Err(one.Owner(ctx, "key 0001")) },
			"Router":  func(ctx context.Context) error { return coordtest.Err(router.Owner(ctx, "key 0001")) },
			"SetKeys": func(ctx context.Context) error { return one.SetKeys(ctx, "a") },
			"Leave":   one.Leave,
			"Status": func(ctx context.Context) error {
				_, _, err := one.Status(ctx)
				return err
			},
			"Plan": func(ctx context.Context) error {
				_, _, err := one.Plan(ctx)
				return err
			},
		} {
			begun := time.Now()
			require.ErrorIs(b, call(b.Within(time.Second)), context.DeadlineExceeded, name)
			require.LessOrEqual(b, time.Since(begun), 1100*time.Millisecond, name)
		}
		silent.Heal()
		require.NoError(b, <-one.ended, "it was leaving")
	})
}

var (
	manyKeys    = flag.Int("keys", 0, "keys of the test of many members, in virtual time; it needs some minutes")
	manyMembers = flag.Int("members", 100, "members of the test of many members")
)

func TestManyKeysOverManyMembers(t *testing.T) {
	if *manyKeys == 0 {
		t.Skip("long: go test -run ManyKeysOver ./coord/shards -keys 10000")
	}
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const way = 10 * time.Millisecond
		n, d, all := *manyMembers, newBoard(b), []*member{}
		b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		begun, real := time.Now(), realTime()
		for i := range n {
			all = append(all, d.start(b, fmt.Sprintf("m%03d", i), keys(*manyKeys)))
		}
		d.settled(b, *manyKeys, n)
		b.Logf("all start: %v, %d moves, in %v", time.Since(begun), d.moves, realTime()-real)
		for _, change := range []struct {
			name string
			do   func()
			n    int
		}{
			{"one comes", func() { all = append(all, d.start(b, "new", keys(*manyKeys))) }, n + 1},
			{"one leaves", func() { require.NoError(b, all[7].Leave(b.Context())) }, n},
			{"the planner dies", func() {
				b.Server.Partition(zkembed.Cut{Sessions: []int64{all[0].client.SessionID()}})
				all[0].stop()
			}, n - 1},
		} {
			d.forget()
			begun, real = time.Now(), realTime()
			change.do()
			d.settled(b, *manyKeys, change.n)
			b.Logf("%s: %v, %d moves, without an owner for at most %v, in %v", change.name, time.Since(begun), d.moves, d.gap, realTime()-real)
			require.LessOrEqual(b, d.moves, *manyKeys/(n-1)+1)
		}
	})
}

// realTime is the processor time of the process, which a bubble does not touch.
func realTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // never fails
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
