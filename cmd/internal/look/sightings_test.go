package look

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

func TestAHolderIsDatedFromItsGrantIfThatWasSeen(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		ages := map[string]float64{}
		look := func(holds ...string) map[string]Held {
			defer seen.Look()()
			told := map[string]Held{}
			for node, age := range ages {
				told[node] = seen.See(node, 1, slices.Contains(holds, node), &age)
			}
			return told
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			for node := range ages {
				ages[node] += d.Seconds()
			}
		}
		ages["first"], ages["second"] = 3600, 3600
		told := look("first")
		require.Zero(t, told["first"], "the grant was before the first look")
		require.Zero(t, told["second"], "it waits")
		pass(2 * time.Second)
		require.Zero(t, look("first")["first"])

		delete(ages, "first")
		pass(2 * time.Second)
		require.Equal(t, "for 2s", look("second")["second"].String(), "it waited at the look before")
		pass(time.Minute)
		require.InDelta(t, 62, *look("second")["second"].HeldFor, 0)

		delete(ages, "second")
		pass(10 * time.Second)
		ages["third"], ages["old"] = 2, 3600
		told = look("third", "old")
		require.Equal(t, "for 2s", told["third"].String(), "it came after the look before")
		require.Zero(t, told["old"], "it was left out before")
	})
}

// After a pause of the looks, a holder that waited for most of its life must
// not be said to have held for all of it.
func TestAGrantThatFellIntoAPauseOfTheLooksIsDatedAtMost(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		look := func(age float64) Held {
			defer seen.Look()()
			return seen.See("/l/n", 1, true, &age)
		}
		seen.Look()() // and nobody is there
		time.Sleep(time.Minute)
		require.Equal(t, "for at most 27s", look(27).String(), "it may have waited for most of that")
		time.Sleep(2 * time.Second)
		require.Equal(t, "for at most 29s", look(29).String())
		time.Sleep(10 * time.Minute)
		require.Equal(t, "for 10m29s", look(629).String(), "what is not known is little of that")
	})
}

// The nodes of slots and of members of a group have the same name in every
// hand.
func TestAHolderIsKnownByItsNodeAndNotByTheNodesName(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		look := func(token int64, age float64) Held {
			defer seen.Look()()
			return seen.See("/ids/held/0", token, true, &age)
		}
		require.Zero(t, look(7, 3600))
		time.Sleep(2 * time.Second)
		require.Equal(t, "for 1s", look(8, 1).String(), "another holder of the same slot")
		time.Sleep(2 * time.Second)
		require.Equal(t, "for 3s", look(8, 3).String())
	})
}

// tied are contenders in the order of their lines: "a1" is the first at a.
type tied map[string]struct {
	session string
	under   string
	wants   []string
	anyOf   bool
}

func (ties tied) parties() (all []party) {
	names := slices.Sorted(maps.Keys(ties))
	for _, name := range names {
		tie := ties[name]
		zero := 0.0
		p := party{Path: name[:1], waits: len(tie.wants) > 0, anyOf: tie.anyOf}
		p.Contender = Contender{Node: "/" + name, Session: tie.session, Age: &zero, Holds: !p.waits, Under: strings.Fields(tie.under)}
		for _, other := range tie.wants {
			p.Others = append(p.Others, slices.Index(names, other))
		}
		all = append(all, p)
	}
	relate(all)
	return all
}

func TestWhatIsACircle(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		ties              tied
		certain, possible int
	}{
		"under each other": {tied{
			"a1": {session: "1"}, "b1": {session: "2"},
			"a2": {session: "3", under: "b1", wants: []string{"a1"}}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 1, 1},
		"by way of one that waits for its turn": {tied{
			"a1": {session: "1"}, "b1": {session: "2"}, "a2": {session: "5", wants: []string{"a1"}},
			"a3": {session: "3", under: "b1", wants: []string{"a2"}}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 1, 1},
		"one direction tells": {tied{
			"a1": {session: "1"}, "b1": {session: "2"},
			"a2": {session: "2", wants: []string{"a1"}}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 0, 1},
		"other goroutines, which tell under what they wait": {tied{
			"a1": {session: "1"}, "b1": {session: "2"}, "c1": {session: "1"}, "d1": {session: "2"},
			"a2": {session: "2", under: "d1", wants: []string{"a1"}}, "b2": {session: "1", under: "c1", wants: []string{"b1"}},
		}, 0, 0},
		"a semaphore of which another slot may come free": {tied{
			"a1": {session: "1"}, "a2": {session: "9"}, "b1": {session: "2"},
			"a3": {session: "3", under: "b1", wants: []string{"a1", "a2"}, anyOf: true}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 0, 0},
		"a semaphore whose slots all wait": {tied{
			"a1": {session: "1"}, "a2": {session: "9"}, "b1": {session: "2"},
			"a3": {session: "3", under: "b1", wants: []string{"a1", "a2"}, anyOf: true},
			"b2": {session: "4", under: "a1", wants: []string{"b1"}}, "b3": {session: "4", under: "a2", wants: []string{"b2"}},
		}, 1, 1},
		"a writer behind two readers of which one is stuck": {tied{
			"a1": {session: "1"}, "a2": {session: "9"}, "b1": {session: "2"},
			"a3": {session: "3", under: "b1", wants: []string{"a1", "a2"}}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 1, 1},
	} {
		all := c.ties.parties()
		require.Len(t, circles(all, false), c.certain, what)
		require.Len(t, circles(all, true), c.possible, what)
	}
}

func TestWhomAContenderWaitsFor(t *testing.T) {
	t.Parallel()
	r := Report{Kind: "rwlock"}
	for _, kind := range []string{"read", "read", "write", "read", "read", "lock", "lock"} {
		r.Contenders = append(r.Contenders, Contender{Kind: kind})
	}
	for i, want := range [][]int{nil, nil, {1, 0}, {2}, {2}, {4, 3}, {5}} {
		require.Equal(t, want, r.waitsFor(i), "of %d", i)
	}
}

func TestANodeThatIsGoneBeforeItIsReadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	members := LineOf([]string{
		"_c_" + cmdtest.Guid2 + "-lock-0000000002", "_c_" + cmdtest.Guid1 + "-lock-0000000001", "_c_" + cmdtest.Guid3 + "-lock-0000000003", "other",
	})
	require.Len(t, members, 3)
	line := complete("/l", members, []inspect.Contender{{Contender: members[1], Owner: "b"}, {Contender: members[2], Owner: "c"}})
	require.Len(t, line, 3)
	require.Equal(t, "/l/_c_"+cmdtest.Guid1+"-lock-0000000001", line[0].Node)
	require.Equal(t, []string{"", "b", "c"}, []string{line[0].Owner, line[1].Owner, line[2].Owner})
	require.Equal(t, []bool{true, false, false}, []bool{line[0].Holds, line[1].Holds, line[2].Holds})
}

func TestTheAgeOfAContenderThatMayNotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	r := Report{Path: "/l"}
	unread := r.contender(1, inspect.Contender{Node: "/l/x\u202ey"})
	require.Nil(t, unread.Age)
	r.Contenders = []Contender{unread, r.contender(2, inspect.Contender{Node: "/l/z", Since: time.Now()})}
	var table bytes.Buffer
	r.Table(term.Page{Writer: &table})
	require.Regexp(t, `unknown +unknown +unknown +"x\\u202ey"\n`, table.String())
	require.Regexp(t, `0s +none +z\n`, table.String())
}

func TestNamesOfItemsAreQuotedWhenThereIsSomethingUnseenInThem(t *testing.T) {
	t.Parallel()
	q := &QueueReport{Items: 1, First: []ItemReport{{Name: "entry-\u202e"}}}
	var table bytes.Buffer
	q.table(term.Page{Writer: &table})
	require.Contains(t, table.String(), `"entry-\u202e"`)
}

func TestAnItemInTheHandOfASilentConsumerSaysSo(t *testing.T) {
	r := Report{Queue: &QueueReport{First: []ItemReport{{InHand: true, Session: "0x1"}, {InHand: true, Session: "0x2"}, {}}}}
	book := AddressBook{asked: time.Now().Add(time.Hour), known: map[string]conn.Remote{
		"0x1": {Address: "a:1", Timeout: 10 * time.Second, Silent: 7 * time.Second},
		"0x2": {Address: "b:2", Timeout: 10 * time.Second, Silent: 3 * time.Second},
	}}
	book.Fill(t.Context(), &r)
	require.Equal(t, "session 0x1 at a:1, silent for 7s of 10s", r.Queue.First[0].consumer())
	require.Equal(t, "session 0x2 at b:2", r.Queue.First[1].consumer())
	require.Nil(t, r.Queue.First[2].SilentFor)
}
