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
	t     testing.TB
	drain time.Duration // that a function takes

	mu    sync.Mutex
	owner map[string]string
	token map[string]int64
	freed map[string]time.Time // since when a key has had no owner
	gap   time.Duration        // the longest that a key had none
	moves int
}

func newBoard(t testing.TB) *board {
	return &board{t: t, owner: map[string]string{}, token: map[string]int64{}, freed: map[string]time.Time{}}
}

// work is the function of a member.
func (d *board) work(id string) shards.Func {
	return func(ctx context.Context, key string, h coord.Held) error {
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

func (d *board) begin(id, key string, h coord.Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner[key] != "" {
		d.t.Errorf("%s is owned by %s and %s", key, d.owner[key], id)
	}
	if h.Token() <= d.token[key] {
		d.t.Errorf("%s: token %d follows %d", key, h.Token(), d.token[key])
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

// forgetTokens is for a server that has lost its data: tokens go back.
func (d *board) forgetTokens() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.token)
}

// member is a member that runs.
type member struct {
	*shards.Shards
	client *coord.Client
	stop   context.CancelFunc
	ended  <-chan error
}

// bubble is a test in virtual time, and what members of the shards /shards do
// there.
type bubble struct {
	coordtest.Bubble
	*board
}

func inBubble(t *testing.T, f func(b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b, newBoard(b)}) }, opts...)
}

// start starts a member with a client of its own.
func (b bubble) start(id string, opts ...shards.Option) *member {
	b.Helper()
	return b.with(b.Open(), id, opts...)
}

func (b bubble) with(c *coord.Client, id string, opts ...shards.Option) *member {
	b.Helper()
	return b.run(c, b.work(id), append([]shards.Option{shards.ID(id)}, opts...)...)
}

// run starts a member with this function.
func (b bubble) run(c *coord.Client, f shards.Func, opts ...shards.Option) *member {
	b.Helper()
	return run(b, b.shards(c, opts...), c, f)
}

// run starts a member. One that has not ended by then ends with the test.
func run(t testing.TB, s *shards.Shards, c *coord.Client, f shards.Func) *member {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, f)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		if err, unheard := <-ended; unheard {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
	return &member{s, c, stop, ended}
}

func (b bubble) shards(c *coord.Client, opts ...shards.Option) *shards.Shards {
	b.Helper()
	s, err := shards.New(c, "/shards", opts...)
	require.NoError(b, err)
	return s
}

// alone starts the first member, which has n keys, and waits until it owns
// them.
func (b bubble) alone(n int, opts ...shards.Option) *member {
	b.Helper()
	one := b.start("one", append(opts, keys(n))...)
	b.settled(n, 1)
	return one
}

// owner is who has a key, by shards or a router.
func (b bubble) owner(of interface {
	Owner(ctx context.Context, key string) (shards.Owner, error)
}, key string,
) shards.Owner {
	b.Helper()
	o, err := of.Owner(b.Context(), key)
	require.NoError(b, err)
	return o
}

// plans is the plan there is, and the one that would follow.
func (b bubble) plans(s *shards.Shards, without ...string) (now, next *shards.Plan) {
	b.Helper()
	now, next, err := s.Plan(b.Context(), without...)
	require.NoError(b, err)
	return now, next
}

// several starts n members.
func (b bubble) several(n int, opts ...shards.Option) (all []*member) {
	b.Helper()
	for i := range n {
		all = append(all, b.start(fmt.Sprint("m", i), opts...))
	}
	return all
}

// pair starts two members, which share n keys, and waits until they do.
func (b bubble) pair(n int) (one, two *member) {
	b.Helper()
	one, two = b.start("one", keys(n)), b.start("two", keys(n))
	b.settled(n, 2)
	return one, two
}

// leaves has a member leave, which ends Run.
func (m *member) leaves(b bubble) {
	b.Helper()
	require.NoError(b, m.Leave(b.Context()))
	require.NoError(b, <-m.ended)
}

// fails returns why a member has ended by itself.
func (m *member) fails(b bubble) error {
	b.Helper()
	select {
	case err := <-m.ended:
		return err
	case <-time.After(3 * coordtest.T):
		b.Fatal("the member goes on")
		return nil
	}
}

// telling is a member whose events are kept.
type telling struct {
	*member
	events chan shards.Event
}

// startTelling is start for a member whose events matter.
func (b bubble) startTelling(id string, opts ...shards.Option) telling {
	b.Helper()
	return b.runTelling(b.work(id), append([]shards.Option{shards.ID(id)}, opts...)...)
}

func (b bubble) runTelling(f shards.Func, opts ...shards.Option) telling {
	b.Helper()
	events := make(chan shards.Event, 10_000)
	return telling{b.run(b.Open(), f, append(opts, shards.OnEvent(func(e shards.Event) { events <- e }))...), events}
}

// next is what the member tells next.
func (m telling) next(b bubble) shards.Event {
	b.Helper()
	select {
	case e := <-m.events:
		return e
	case <-time.After(3 * coordtest.T):
		b.Fatal("the member tells nothing")
		return shards.Event{}
	}
}

// finish ends a member at once.
func (m *member) finish(b bubble) {
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

// shared reports whether the members have an even share of n keys.
func (d *board) shared(n, members int) bool {
	by, all := d.loads()
	for _, has := range by {
		if has < n/members || has > (n+members-1)/members {
			return false
		}
	}
	return len(by) == members && all == n
}

// settled waits until the members have an even share of n keys.
func (b bubble) settled(n, members int) {
	b.Helper()
	begun := time.Now()
	for synctest.Wait(); !b.shared(n, members); synctest.Wait() {
		by, all := b.loads()
		require.Less(b, time.Since(begun), 3*coordtest.T, "%d of %d keys: %v", all, n, by)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestKeysMoveOneByOneAsMembersComeAndGo(t *testing.T) {
	inBubble(t, func(b bubble) {
		var all []*member
		for i := range 4 {
			all = append(all, b.start(fmt.Sprint("m", i), keys(30)))
			b.settled(30, i+1)
			require.LessOrEqual(b, b.moves, 30/(i+1)+1)
			b.forget()
		}
		all[2].leaves(b)
		b.settled(30, 3)
		require.LessOrEqual(b, b.moves, 30/3+1)
		for _, i := range []int{0, 1, 3} {
			all[i].finish(b)
		}
		_, left := b.loads()
		require.Zero(b, left)
	})
}

// A key has no owner for two round trips beyond its drain, when a member comes
// and when one leaves.
func TestAPlannedMoveTakesTwoRoundTrips(t *testing.T) {
	inBubble(t, func(b bubble) {
		const way = 40 * time.Millisecond // a round trip
		b.drain = time.Second
		one := b.alone(8)
		slow := b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		b.Server.Inject(zkembed.Match{}, zkembed.DelayEvents(way/2))
		b.start("two", keys(8))
		b.settled(8, 2)
		require.Equal(b, 4, b.moves)
		require.LessOrEqual(b, b.gap, 2*way)
		b.forget()
		one.leaves(b)
		b.settled(8, 1)
		require.Equal(b, 4, b.moves)
		require.LessOrEqual(b, b.gap, 2*way)
		b.Logf("without an owner for %v of a round trip of %v", b.gap, way)
		slow.Remove()
	})
}

func TestAfterACrashAllKeysAreOwnedSoon(t *testing.T) {
	for crashes, name := range []string{"the planner", "another", "all but one"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				all := b.several(4, keys(40))
				b.settled(40, 4)
				dead := [][]int{{0}, {2}, {0, 1, 2}}[crashes]
				ids := []int64{}
				for _, i := range dead {
					ids = append(ids, all[i].client.Info().SessionID)
				}
				cut := b.Server.Partition(zkembed.Cut{Sessions: ids})
				begun := time.Now()
				b.settled(40, 4-len(dead))
				require.LessOrEqual(b, time.Since(begun), coordtest.T+2*time.Second)
				cut.Heal()
				b.settled(40, 4)
			}, zkembed.WithTick(500*time.Millisecond))
		})
	}
}

// Every member is restarted, one after the other, as a deployment does.
func TestNoKeyIsWithoutAnOwnerForLongInARollingRestart(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n, way = 5, 10 * time.Millisecond
		b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		all := b.several(n, keys(50), shards.MovesAtATime(4))
		b.settled(50, n)
		b.forget()
		for i, m := range all {
			m.leaves(b)
			b.Close(m.client)
			b.start(fmt.Sprint("m", i), keys(50), shards.MovesAtATime(4))
			b.settled(50, n)
		}
		require.GreaterOrEqual(b, b.moves, 2*50)
		require.LessOrEqual(b, b.gap, 2*way)
	})
}

func TestAtMostSoManyKeysMoveAtATime(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.drain = time.Second
		b.alone(20, shards.MovesAtATime(3))
		begun := time.Now()
		b.start("two", keys(20), shards.MovesAtATime(3))
		for moved := 0; moved < 10; time.Sleep(5 * time.Millisecond) {
			by, all := b.loads()
			require.GreaterOrEqual(b, all, 20-3)
			moved = by["two"]
		}
		require.GreaterOrEqual(b, time.Since(begun), 4*time.Second)
	})
}

func TestAFunctionThatDoesNotDrainLosesItsKeyInTime(t *testing.T) {
	inBubble(t, func(b bubble) {
		cause := make(chan error, 2)
		b.run(b.Open(), func(ctx context.Context, key string, h coord.Held) error {
			b.begin("stuck", key, h)
			<-ctx.Done()
			time.Sleep(time.Second / 2)
			b.end(key)
			cause <- context.Cause(ctx)
			return errors.New("what it returns late")
		}, shards.DrainTimeout(5*time.Second), keys(2))
		b.settled(2, 1)
		begun := time.Now()
		b.start("other", keys(2))
		require.ErrorIs(b, <-cause, shards.ErrDrainTimeout)
		b.settled(2, 2)
		require.GreaterOrEqual(b, time.Since(begun), 5*time.Second)
		require.Less(b, time.Since(begun), 6*time.Second)
	})
}

// A member that hears nothing keeps its keys for as long as its window is open.
func TestAMemberThatIsCutOffOwnsUntilItsWindowEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		one, two := b.pair(10)
		for _, m := range []*member{one, two} {
			cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{m.client.Info().SessionID}})
			b.forget()
			begun := time.Now()
			for time.Since(begun) < coordtest.T/4 {
				by, all := b.loads()
				require.Equal(b, 10, all, by)
				time.Sleep(time.Second)
			}
			b.settled(10, 1)
			require.Less(b, coordtest.T/3, time.Since(begun))
			cut.Heal()
			b.settled(10, 2)
		}
	})
}

// The planner is cut off, and ends, while its plan is on the way, or when it
// has been written and the answer is lost.
func TestAPlannerThatDiesWhileItWrites(t *testing.T) {
	for name, fault := range map[string]zkembed.Action{"before": zkembed.Drop(), "after": zkembed.LoseReply()} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				one := b.alone(12)
				b.start("two", keys(12))
				b.settled(12, 2)
				id := one.client.Info().SessionID
				writing := b.Server.Inject(zkembed.Match{
					Session: id, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/shards/plan", Times: 1,
				}, fault)
				b.start("three", keys(12))
				<-writing.Struck()
				begun := time.Now()
				dead := b.Server.Partition(zkembed.Cut{Sessions: []int64{id}})
				one.stop()
				b.settled(12, 2)
				require.LessOrEqual(b, time.Since(begun), coordtest.T+2*coordtest.Tick+2*time.Second)
				dead.Heal()
			})
		})
	}
}

func TestMembersWithAnotherListAreToldSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.alone(10)
		two := b.start("two")
		b.settled(10, 2)
		wrong := b.start("wrong", keys(11)).fails(b)
		require.ErrorIs(b, wrong, coord.ErrDisagree)
		require.ErrorContains(b, wrong, `only here: 1, such as "key 0010"`)
		require.ErrorContains(b, wrong, "make it version 1")
		require.ErrorIs(b, b.start("wrong", shards.Ranges(10)).fails(b), coord.ErrDisagree)
		before, _ := b.loads()
		require.Equal(b, map[string]int{"one": 5, "two": 5}, before)
		one.finish(b)
		two.finish(b)
		// Nobody has set the former list, and nobody follows it.
		b.start("three", keys(9))
		b.start("four", keys(9))
		b.settled(9, 2)
	})
}

func TestAMemberWithoutAListWaitsForOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		told := b.startTelling("none")
		require.Equal(b, shards.ListIsMissing, told.next(b).Kind)
		_, err := b.Open().Children(b.Context(), "/shards/plan")
		require.ErrorIs(b, err, coord.ErrNoNode, "it plans nothing")
		b.start("one", keys(10))
		b.settled(10, 2)
	})
}

func TestAListThatIsSetHasItsKeysOwnedAndLeavesTheOthers(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.pair(10)
		b.forget()
		require.NoError(b, b.shards(b.Open()).SetKeys(b.Context(), "key 0003", "key 0007", "new"))
		for all := 0; all != 3; _, all = b.loads() {
			time.Sleep(time.Second)
		}
		require.Zero(b, b.moves, "keys in both stay")
	})
}

// A deployment replaces members one by one, and brings a list; then an old
// member comes back.
func TestARollingDeploymentBringsANewerList(t *testing.T) {
	inBubble(t, func(b bubble) {
		all := b.several(3, keys(10))
		b.settled(10, 3)
		for i, m := range all {
			m.leaves(b)
			all[i] = b.start(fmt.Sprint("m", i), keys(12), shards.ListVersion(1))
			b.settled(12, 3)
		}
		all[0].leaves(b)
		old := b.startTelling("m0", keys(10))
		b.settled(12, 3)
		is := old.next(b)
		require.Equal(b, shards.ListIsNewer, is.Kind)
		require.ErrorContains(b, is.Err, "version 1")
		require.ErrorIs(b, b.start("other", keys(11), shards.ListVersion(1)).fails(b), coord.ErrDisagree,
			"of the same version")
		old.leaves(b)
		b.start("m0", keys(10), shards.ListVersion(2)) // back
		b.settled(10, 3)
	})
}

// Half of the members of a fleet start with another list, all at the same time.
func TestOfTwoListsAtOnceOneStays(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(5).finish(b)
		var all []*member
		for i := range 6 {
			all = append(all, b.start(fmt.Sprint("m", i), keys(12+i%2)))
		}
		refused := 0
		time.Sleep(coordtest.T)
		for _, m := range all {
			select {
			case err := <-m.ended:
				require.ErrorIs(b, err, coord.ErrDisagree)
				refused++
			default:
			}
		}
		require.Equal(b, 3, refused)
		by, n := b.loads()
		require.Len(b, by, 3)
		require.Contains(b, []int{12, 13}, n)
	})
}

func TestAnIDThatComesAgainTakesTheKeysOver(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, two := b.pair(10)
		b.forget()
		b.start("two", keys(10))
		require.ErrorIs(b, <-two.ended, shards.ErrReplaced)
		b.settled(10, 2)
		require.Equal(b, 5, b.moves, "the others stay")
	})
}

func TestTheLastMemberLeavesAtOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.alone(10)
		one.leaves(b)
		require.NoError(b, one.Leave(b.Context()), "it has left")
		_, left := b.loads()
		require.Zero(b, left)
		b.start("idle", shards.Weight(0))
		time.Sleep(time.Second)
		_, left = b.loads()
		require.Zero(b, left, "a member of weight 0")
		b.start("two")
		b.settled(10, 1)
	})
}

func TestAMemberIsAskedToLeaveByItsNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		one, _ := b.pair(10)
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), "/shards/members/"+one.node(b)))
		require.NoError(b, <-one.ended)
		b.settled(10, 1)
	})
}

// A function that does not even heed the end of its context.
func TestAFunctionThatNeverReturnsLosesItsKey(t *testing.T) {
	inBubble(t, func(b bubble) {
		release := make(chan struct{})
		began := make(chan string, 10)
		stuck := b.run(b.Open(), func(_ context.Context, key string, _ coord.Held) error {
			began <- key
			<-release
			return nil
		}, shards.DrainTimeout(5*time.Second), keys(2))
		time.Sleep(time.Second)
		require.Len(b, began, 2)
		b.start("other", keys(2))
		b.settled(1, 1)
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), "/shards/members/"+stuck.node(b)))
		b.settled(2, 1)
		time.Sleep(coordtest.T)
		require.Len(b, began, 2, "never twice at a time for one key")
		stuck.stop()
		close(release)
		<-stuck.ended
	})
}

// node is the name of the member's node, by the plan.
func (m *member) node(b bubble) string {
	plan, _ := b.plans(m.Shards)
	return plan.Members[slices.IndexFunc(plan.Members, func(other shards.Member) bool { return other.ID == m.ID() })].Node
}

// A member that hears of a plan late gives up what it is asked for, and does
// not take it back.
func TestAnOldPlanDoesNotTakeAKeyBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.start("planner", keys(10), shards.Weight(0))
		time.Sleep(time.Second)
		one := b.alone(10)
		b.forget()
		// It reads the next plan late.
		slow := b.Server.Inject(zkembed.Match{
			Session: one.client.Info().SessionID, PathPrefix: "/shards/plan", Ops: []zkembed.Op{zkembed.OpGetData},
		}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		b.start("two", keys(10))
		time.Sleep(time.Second)
		slow.Remove()
		b.settled(10, 2)
		time.Sleep(5 * time.Second)
		require.Equal(b, 5, b.moves)
	})
}

// A key is drained for another member when that one leaves, so that its member
// is to have it again.
func TestAKeyThatComesBackIsOwnedAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.drain = 10 * time.Second
		one := b.alone(10)
		two := b.start("two", keys(10))
		time.Sleep(5 * time.Second)
		two.finish(b)
		b.settled(10, 1)
		// An operator asks, and nobody else is to have the key.
		require.NoError(b, coordtest.Err(inspect.RevokeAndWait(b.Context(), b.Open(), b.owner(one, "key 0005").Node, 0)))
		b.settled(10, 1)
	})
}

// A member gives keys up by a plan that it has not read, and the next that it
// reads gives them back.
func TestAKeyThatComesBackUnseenIsAskedFor(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.start("planner", keys(10), shards.Weight(0))
		time.Sleep(time.Second)
		one := b.alone(10)
		late := b.Server.Inject(zkembed.Match{
			Session: one.client.Info().SessionID, PathPrefix: "/shards/plan", Ops: []zkembed.Op{zkembed.OpGetData},
		}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		two := b.start("two", keys(10))
		b.settled(10, 2)
		left := coordtest.Go(func() error { return two.Leave(b.Within(time.Minute)) })
		time.Sleep(time.Second)
		late.Remove()
		read := time.Now()
		require.NoError(b, <-left)
		require.Less(b, time.Since(read), coordtest.T/2, "it asks as soon as it has read the plan")
		require.NoError(b, <-two.ended)
		b.settled(10, 1)
	})
}

// A member asks late, for a key that the next plan gives back to its owner, and
// has it by the time it reads that plan.
func TestAKeyThatWasAskedForLateGoesBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.start("planner", keys(10), shards.Weight(0))
		time.Sleep(time.Second)
		b.alone(10)
		c := b.Open()
		throttled := func(under string, op zkembed.Op) *zkembed.Fault {
			return b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, PathPrefix: under, Ops: []zkembed.Op{op}},
				zkembed.ReplyError(zkembed.CodeThrottledOp))
		}
		asking := throttled("/shards/keys", zkembed.OpMulti)
		two := b.with(c, "two", keys(10))
		<-asking.Struck()
		reading := throttled("/shards/plan", zkembed.OpGetData)
		left := coordtest.Go(func() error { return two.Leave(b.Within(time.Minute)) })
		<-reading.Struck()
		time.Sleep(time.Second)
		asking.Remove()
		time.Sleep(time.Second)
		by, _ := b.loads()
		require.Equal(b, 5, by["two"])
		reading.Remove()
		require.NoError(b, <-left)
		require.NoError(b, <-two.ended)
		b.settled(10, 1)
	})
}

// The same, and the member that has it stays: nobody else makes it give the key
// up.
func TestAKeyThatWasAskedForLateGoesBackToItsOwnerThatAsks(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(10)
		c, admin := b.Open(), b.shards(b.Open())
		throttled := func(under string, op zkembed.Op) *zkembed.Fault {
			return b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, PathPrefix: under, Ops: []zkembed.Op{op}},
				zkembed.ReplyError(zkembed.CodeThrottledOp))
		}
		asking := throttled("/shards/keys", zkembed.OpMulti)
		b.with(c, "two", keys(10))
		<-asking.Struck()
		reading := throttled("/shards/plan", zkembed.OpGetData)
		plan, _, err := admin.Status(b.Context())
		require.NoError(b, err)
		var moving []string
		for at, key := range plan.Keys {
			if m, _ := plan.Owner(at); m.ID == "two" {
				moving = append(moving, key)
			}
		}
		require.Len(b, moving, 5)
		require.NoError(b, admin.SetKeys(b.Context(), moving...)) // some of which one is to keep
		<-reading.Struck()
		time.Sleep(time.Second)
		asking.Remove()
		time.Sleep(time.Second)
		by, _ := b.loads()
		require.Equal(b, 5, by["two"])
		reading.Remove()
		b.settled(5, 2)
	})
}

// Two planners: the former one was cut off, and writes late.
func TestAPlanIsWrittenForTheOneThatWasRead(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.alone(10)
		writing := b.Server.Inject(zkembed.Match{
			Session: one.client.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/shards/plan", Times: 1,
		}, zkembed.Delay(5*time.Second))
		two := b.start("two")
		<-writing.Struck()
		require.NoError(b, two.SetKeys(b.Context(), "a", "b"))
		_, was, err := two.client.Get(b.Context(), "/shards/plan")
		require.NoError(b, err)
		time.Sleep(10 * time.Second)
		b.settled(2, 2)
		_, is, err := two.client.Get(b.Context(), "/shards/plan")
		require.NoError(b, err)
		require.Equal(b, was.Version+1, is.Version, "the keys were given to the members, and nothing was mended")
	})
}

// A member that is about to be refused is among the members for a moment.
func TestAMemberWithAnotherListGetsNoKey(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		one := b.alone(10)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData, zkembed.OpExists}},
			zkembed.DelayReply(2*time.Second))
		wrong := b.with(c, "wrong", keys(4))
		time.Sleep(time.Second)
		plan, _ := b.plans(one.Shards)
		require.Len(b, plan.Members, 1)
		require.ErrorIs(b, <-wrong.ended, coord.ErrDisagree)
	})
}

// Whatever happens to the plan, members keep what they own.
func TestAPlanThatIsDeletedIsMadeAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		admin := b.Open()
		one := b.alone(10)
		two := b.start("two", keys(10))
		b.settled(10, 2)
		b.forget()
		require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
		time.Sleep(time.Second)
		b.settled(10, 2)
		require.Zero(b, b.moves, "who has what is as it was, not as it would be anew")
		require.NoError(b, two.SetKeys(b.Context(), "a", "b", "c", "d"))
		b.settled(4, 2)
		b.forget()
		require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
		time.Sleep(time.Second)
		b.settled(4, 2)
		require.Zero(b, b.moves)
		one.finish(b)
		b.settled(4, 1)
		require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
		time.Sleep(time.Second)
		b.start("three")
		b.settled(4, 2)
	})
}

func TestAFunctionThatReturnsEarlyKeepsItsKey(t *testing.T) {
	inBubble(t, func(b bubble) {
		calls := make(chan string, 10)
		m := b.run(b.Open(), func(_ context.Context, key string, _ coord.Held) error {
			calls <- key
			return nil
		}, keys(2), shards.ID("brief"))
		time.Sleep(coordtest.T)
		require.Len(b, calls, 2)
		require.Equal(b, "brief", b.owner(m, "key 0001").Member.ID)
		require.ErrorIs(b, m.Run(b.Context(), nil), coord.ErrInvalid)
		require.ErrorContains(b, m.Run(b.Context(), b.work("")), "it runs already")
		m.leaves(b)
	})
}

func TestFailFastEndsRunWithTheFirstErrorOfAFunction(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(10)
		noLuck := errors.New("no luck")
		m := b.run(b.Open(), func(context.Context, string, coord.Held) error { return noLuck }, shards.FailFast())
		require.Equal(b, noLuck, m.fails(b))
		b.settled(10, 1)
	})
}

// An operator deletes the nodes of a key and of a member.
func TestWhatIsBrokenByHandIsOwnedAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		admin := b.Open()
		one, _ := b.pair(10)
		o := b.owner(one, "key 0000")
		require.NoError(b, admin.Delete(b.Context(), o.Node, -1))
		b.settled(10, 2)
		after := b.owner(one, "key 0000")
		require.Equal(b, o.Member, after.Member)
		require.Greater(b, after.Token, o.Token)
		require.NoError(b, admin.Delete(b.Context(), "/shards/members/"+o.Member.Node, -1))
		time.Sleep(time.Second)
		b.settled(10, 2)
	})
}

func TestCallsEndWhenNoServerAnswers(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.alone(10)
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
	inBubble(t, func(b bubble) {
		const way = 10 * time.Millisecond
		n := *manyMembers
		b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		begun, real := time.Now(), realTime()
		all := b.several(n, keys(*manyKeys))
		b.settled(*manyKeys, n)
		b.Logf("all start: %v, %d moves, in %v", time.Since(begun), b.moves, realTime()-real)
		for _, change := range []struct {
			name string
			do   func()
			n    int
		}{
			{"one comes", func() { b.start("new", keys(*manyKeys)) }, n + 1},
			{"one leaves", func() { all[7].leaves(b) }, n},
			{"the planner dies", func() {
				b.Server.Partition(zkembed.Cut{Sessions: []int64{all[0].client.Info().SessionID}})
				all[0].stop()
			}, n - 1},
		} {
			b.forget()
			begun, real = time.Now(), realTime()
			change.do()
			b.settled(*manyKeys, change.n)
			b.Logf("%s: %v, %d moves, without an owner for at most %v, in %v", change.name, time.Since(begun), b.moves, b.gap,
				realTime()-real)
			require.LessOrEqual(b, b.moves, *manyKeys/(n-1)+1)
		}
	})
}

// realTime is the processor time of the process, which a bubble does not touch.
func realTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // never fails
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
