package shards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// fleet makes members of weight 1, unless weights say otherwise.
func fleet(n int, weights ...int) []Member {
	all := make([]Member, n)
	for i := range all {
		all[i] = Member{ID: fmt.Sprintf("m%03d", i), Node: fmt.Sprint("node", i), Weight: 1}
		if i < len(weights) {
			all[i].Weight = weights[i]
		}
	}
	return all
}

func named(keys int) list {
	l, err := newRanges(keys)
	if err != nil {
		panic(err)
	}
	return l
}

// after returns the plan for the members, or p if it stays.
func (p *Plan) after(there []Member, l limits) *Plan {
	next := p.next(there, "planner", l, func(int) bool { return false }, time.Unix(1000, 0))
	if next == nil {
		return p
	}
	return next
}

func (p *Plan) loads() map[string]int {
	loads := map[string]int{}
	for _, m := range p.Members {
		loads[m.ID] = 0
	}
	for at := range p.Owners {
		if m, ok := p.Owner(at); ok {
			loads[m.ID]++
		}
	}
	return loads
}

// moves counts the keys that have another owner.
func moves(from, to *Plan) (n int) {
	for at, key := range from.Keys {
		before, _ := from.Owner(at)
		after, _ := to.Owner(to.Place(key))
		if before.ID != after.ID {
			n++
		}
	}
	return n
}

func skew(p *Plan) int {
	least, most := len(p.Keys), 0
	for _, n := range p.loads() {
		least, most = min(least, n), max(most, n)
	}
	return most - least
}

func TestFewKeysMoveWhenAMemberComesOrGoes(t *testing.T) {
	holds := func(keys uint16, n uint8, changes []bool, seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 0))
		count, all := int(keys%2000)+1, fleet(int(n%60)+1)
		p := new(Plan).relist(named(count)).after(all, limits{})
		born := len(all)
		for _, comes := range changes {
			least := len(all)
			if comes || len(all) == 1 {
				all = append(all, Member{ID: fmt.Sprintf("n%03d", born), Node: fmt.Sprint("new", born), Weight: 1})
				born++
			} else {
				i := r.IntN(len(all))
				all = slices.Delete(slices.Clone(all), i, i+1)
				least = len(all)
			}
			next := p.after(all, limits{})
			if moves(p, next) > count/least+1 || skew(next) > 1 || slices.Contains(next.Owners, Nobody) {
				t.Logf("%d keys, %d members: %d moves, skew %d", count, least, moves(p, next), skew(next))
				return false
			}
			p = next
		}
		return true
	}
	require.NoError(t, quick.Check(holds, &quick.Config{MaxCount: 25}))
}

// A member has its share by weight, rounded down or up, whatever came before.
func TestTheLoadIsBoundedByTheWeight(t *testing.T) {
	holds := func(keys uint16, before, weights []uint8) bool {
		if len(weights) == 0 {
			return true
		}
		count := int(keys % 2000)
		old := make([]int, len(before))
		for i, w := range before {
			old[i] = int(w)
		}
		p := new(Plan).relist(named(count+1)).after(fleet(len(old), old...), limits{})
		now, sum := make([]int, len(weights)), 0
		for i, w := range weights {
			now[i] = int(w)
			sum += int(w)
		}
		next := p.after(fleet(len(now), now...), limits{})
		for i, w := range now {
			load := next.loads()[fmt.Sprintf("m%03d", i)]
			if sum > 0 && (load < (count+1)*w/sum || load*sum > (count+1)*w+sum-1) || sum == 0 && load > 0 {
				t.Logf("%d keys: %d for weight %d of %d", count+1, load, w, sum)
				return false
			}
		}
		return true
	}
	require.NoError(t, quick.Check(holds, &quick.Config{MaxCount: 40}))
}

func TestAPlanForTheSameMembersStays(t *testing.T) {
	all := fleet(7, 3, 1, 4, 1, 5, 9, 2)
	p := new(Plan).relist(named(1000)).after(all, limits{})
	slices.Reverse(all)
	require.Nil(t, p.next(all, "other", limits{}, nil, time.Now()))
}

func TestSomeKeysAtATimeEndAtTheSamePlan(t *testing.T) {
	for n := 1; n < 9; n++ {
		p := new(Plan).relist(named(100)).after(fleet(n), limits{})
		want := moves(p, p.after(fleet(n+3), limits{}))
		sum := 0
		for steps := 0; ; steps++ {
			next := p.after(fleet(n+3), limits{moves: 7})
			if next == p {
				break
			}
			require.LessOrEqual(t, moves(p, next), 7)
			sum += moves(p, next)
			p = next
			require.Less(t, steps, 50)
		}
		require.Equal(t, want, sum)
		require.LessOrEqual(t, skew(p), 1)
	}
}

func TestKeysThatHaveNotArrivedCountAsMoving(t *testing.T) {
	never, now := func(int) bool { return true }, time.Unix(1000, 0)
	p := new(Plan).relist(named(100)).after(fleet(2), limits{moves: 5})
	require.NotContains(t, p.Owners, Nobody, "keys that nobody has do not count")
	next := p.next(fleet(4), "", limits{moves: 5}, never, now)
	require.Equal(t, 5, moves(p, next))
	require.Nil(t, next.next(fleet(4), "", limits{moves: 5}, never, now))
	last := next.next(fleet(4), "", limits{moves: 5}, func(at int) bool { return at != last(next) }, now)
	require.Equal(t, 1, moves(next, last))
}

func last(p *Plan) (at int) {
	for moved := range p.Moved {
		at = max(at, moved)
	}
	return at
}

func TestTheKeysOfMembersThatLeaveGoFirst(t *testing.T) {
	all := fleet(3)
	p := new(Plan).relist(named(30)).after(all, limits{})
	all = append(fleet(4, 5), Member{ID: "z", Node: "z", Weight: 9})
	all[2].Leaving = true
	next := p.after(all, limits{moves: 10})
	require.Equal(t, 10, moves(p, next))
	require.Zero(t, next.loads()[all[2].ID])
}

func TestAKeyThatHasMovedCoolsDown(t *testing.T) {
	l, at := limits{cooldown: time.Minute}, time.Unix(1000, 0)
	p := new(Plan).relist(named(30)).after(fleet(2), l)
	p = p.next(fleet(3), "", l, nil, at)
	require.Len(t, p.Moved, 10)
	before := p.loads()
	cool := p.next(fleet(3, 1, 1, 0), "", l, nil, at.Add(time.Second))
	require.Zero(t, cool.loads()["m002"], "a member that is to have none")
	warm := p.next(fleet(3, 100, 100, 1), "", l, nil, at.Add(time.Second))
	require.Equal(t, before, warm.loads())
	warm = p.next(fleet(3, 100, 100, 1), "", l, nil, at.Add(time.Hour))
	require.LessOrEqual(t, warm.loads()["m002"], 1)
}

func TestAKeyPrefersItsZone(t *testing.T) {
	all := fleet(6)
	for i := range all {
		all[i].Zone = fmt.Sprint("zone", i/3)
	}
	p := new(Plan).relist(named(60)).after(all, limits{})
	next := p.after(slices.Delete(slices.Delete(slices.Clone(all), 5, 6), 2, 3), limits{})
	require.LessOrEqual(t, skew(next), 1)
	for at := range p.Owners {
		before, _ := p.Owner(at)
		after, _ := next.Owner(at)
		require.Equal(t, before.Zone, after.Zone)
	}
}

func TestOfTwoMembersWithOneIDTheLaterCounts(t *testing.T) {
	all := fleet(2)
	p := new(Plan).relist(named(10)).after(all, limits{})
	again := append(all, Member{ID: "m000", Node: "later", Weight: 1})
	next := p.after(again, limits{})
	require.Len(t, next.Members, 2)
	require.Zero(t, moves(p, next))
	require.Len(t, next.Of("later"), 5)
}

func TestAListThatChangesKeepsTheOwners(t *testing.T) {
	one, err := newList([]string{"c", "a", "b", "d"})
	require.NoError(t, err)
	two, err := newList([]string{"b", "c", "e", "/"})
	require.NoError(t, err)
	p := new(Plan).relist(one).after(fleet(2), limits{})
	next := p.relist(two)
	require.Equal(t, []string{"/", "b", "c", "e"}, next.Keys)
	require.Equal(t, []int{Nobody, p.Owners[1], p.Owners[2], Nobody}, next.Owners)
	require.Equal(t, -1, next.Place("a"))
	require.Equal(t, `of 4 keys here and 4 there, only here: 2, such as "a"; only there: 2, such as "/"`, one.differs(two))
}

func TestAPlanThatIsNoneIsRefused(t *testing.T) {
	p := new(Plan).relist(named(3)).after(fleet(2), limits{})
	again, err := decode(p.encode())
	require.NoError(t, err)
	require.Equal(t, p, again)
	p.Moved = map[int]int64{1: 1000, 2: 4000}
	again, err = decode(p.encode())
	require.NoError(t, err)
	require.InDelta(t, 1000, again.Moved[1], 64)
	require.InDelta(t, 4000, again.Moved[2], 64)
	require.Equal(t, again.encode(), p.encode(), "what is rounded stays")
	for _, data := range []string{
		"", "x", "{}", "{}}", "null", "[]", `{"format":1}`, `{"format":1,"keys":[],"owners":[]}`, `{"format":1,"keys":["a"]}`,
		`{"keys":["a"],"owners":[-1]}`, `{"format":-1,"keys":["a"],"owners":[-1]}`,
		`{"format":1,"keys":["b","a"],"owners":[-1,-1]}`,
		`{"format":1,"keys":["a","a"],"owners":[-1,-1]}`, `{"format":1,"keys":[""],"owners":[-1]}`,
		`{"format":1,"keys":["a"],"owners":[0]}`,
		`{"format":1,"keys":["a"],"owners":[-2]}`, `{"format":1,"ranges":2,"owners":[-1]}`,
		`{"format":1,"ranges":999999999,"owners":[-1]}`,
		`{"format":1,"keys":["a"],"owners":[-1],"moved":{"first":1,"step":1,"keys":"--"}}`,
		`{"format":1,"keys":["a"],"owners":[-1],"moved":{"first":1,"step":0,"keys":"-"}}`,
		`{"format":1,"keys":["a"],"owners":[0],"members":[{"id":"a","weight":-1}]}`,
		`{"format":1,"keys":["a"],"owners":[0],"members":[{"weight":1}]}`,
	} {
		_, err := decode([]byte(data))
		require.ErrorIs(t, err, errNoPlan, data)
	}
	_, err = decode([]byte(`{"format":2,"what":"ever"}`))
	require.ErrorIs(t, err, errNewerPlan)
}

func TestWhoKnowsAnOlderListIsAdmittedAndFollows(t *testing.T) {
	p := new(Plan).relist(list{keys: []string{"a", "b"}, version: 2})
	comes := record{Format: planFormat, Member: fleet(1)[0], List: "another", Version: 1}
	require.Len(t, p.admit([]record{comes}), 1)
	comes.Version = 2
	require.Empty(t, p.admit([]record{comes}), "of the same version")
}

// What New accepts fits to the end: all keys have moved, each at another time,
// and all members say all that they may.
func TestF84PlansOfFullSizeFitIntoTheirNode(t *testing.T) {
	const room = 1<<20 - 1 - 2048
	long := make([]string, 10_000)
	for i := range long {
		long[i] = fmt.Sprintf("%075d", i)
	}
	keys, err := newList(long)
	require.NoError(t, err)
	for name, l := range map[string]list{"10,000 keys of 75 bytes": keys, "100,000 ranges": named(maxRanges)} {
		t.Run(name, func(t *testing.T) {
			p := new(Plan).relist(l)
			p.Room = room
			there := make([]record, 100)
			for i, m := range fleet(len(there)) {
				m.Node = fmt.Sprintf("_c_01234567-89ab-cdef-0123-456789abcdef-member-%010d", i)
				m.Zone, m.Data, m.Leaving = fmt.Sprintf("zone-%020d", i), make([]byte, 100), i%2 == 0
				there[i] = record{Format: planFormat, Member: m}
			}
			members := p.admit(there)
			require.Len(t, members, len(there))
			p = p.next(members, "planner", limits{moves: 1, cooldown: 1 << 40}, func(int) bool { return true },
				time.Unix(1<<31, 0))
			p.Generation, p.Version, p.Room = 1<<62, 1<<62, room
			for at := range p.Keys {
				p.Owners[at] = 99
				p.moved(at, int64(1<<31+at*100))
			}
			size := len(p.encode())
			require.LessOrEqual(t, size, p.bound(p.Members))
			require.LessOrEqual(t, p.bound(p.Members), room)
			again, err := decode(p.encode())
			require.NoError(t, err)
			require.Equal(t, p.Owners, again.Owners)
			require.Len(t, again.Moved, len(p.Keys))
		})
	}
}

func TestItemsSpreadEvenlyOverRanges(t *testing.T) {
	const n, items = 16, 16_000
	count := map[string]int{}
	for i := range items {
		count[RangeOf(fmt.Sprint("customer ", i), n)]++
	}
	require.Len(t, count, n)
	p := new(Plan).relist(named(n))
	for key, of := range count {
		require.GreaterOrEqual(t, p.Place(key), 0, key)
		require.InDelta(t, items/n, of, items/n/5, key)
	}
	require.Equal(t, "range-07", RangeOf("customer 1", n), "as all programs compute it")
	for _, none := range []string{"range-16", "range-1", "range--1", "range-+1", "x"} {
		require.Equal(t, -1, p.Place(none), none)
	}
}

// The planner's transaction may be refused, since its window is over, before
// the contexts of its place have ended.
func TestALossThatThePlannerLearnsOfFirstEndsTheTermAndNotRun(t *testing.T) {
	m := &term{run: &run{Shards: new(Shards)}}
	m.ctx, m.end = context.WithCancel(t.Context())
	m.do(func(context.Context) error { return fmt.Errorf("the plan: %w", coord.ErrLost) })
	m.busy.Wait()
	require.NoError(t, m.err)
	require.NoError(t, m.ctx.Err(), "it ends with the hold")
}
