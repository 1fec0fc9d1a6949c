package look

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		p.Contender = Contender{
			Node: "/" + name, Session: tie.session, Age: &zero, Holds: !p.waits, Under: strings.Fields(tie.under),
		}
		for _, other := range tie.wants {
			p.Others = append(p.Others, slices.Index(names, other))
		}
		all = append(all, p)
	}
	relate(all)
	return all
}

func TestANameThatSeveralNodesHaveIsTheOneOfTheSessionOrToken(t *testing.T) {
	t.Parallel()
	hold := func(path, session string, token int64) party {
		return party{
			Path: path, Contender: Contender{Node: path + "/n_0000000000", Session: session, Token: token, Holds: true},
		}
	}
	waits := func(session, under string) party {
		return party{
			Path: "/c", waits: true, Contender: Contender{Node: "/c/n_" + session, Session: session, Under: []string{under}},
		}
	}
	all := []party{
		hold("/a", "1", 7), hold("/b", "2", 8),
		waits("1", "n_0000000000"), waits("2", "n_0000000000"), waits("3", "n_0000000000"), waits("4", "n_0000000000@7"),
	}
	relate(all)
	require.Equal(t, []int{2, 5}, all[0].Within)
	require.Equal(t, []int{3}, all[1].Within)
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
			"a3": {
				session: "3", under: "b1", wants: []string{"a1", "a2"}, anyOf: true,
			}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
		}, 0, 0},
		"a semaphore whose slots all wait": {tied{
			"a1": {session: "1"}, "a2": {session: "9"}, "b1": {session: "2"},
			"a3": {session: "3", under: "b1", wants: []string{"a1", "a2"}, anyOf: true},
			"b2": {session: "4", under: "a1", wants: []string{"b1"}}, "b3": {session: "4", under: "a2", wants: []string{"b2"}},
		}, 1, 1},
		"a writer behind two readers of which one is stuck": {tied{
			"a1": {session: "1"}, "a2": {session: "9"}, "b1": {session: "2"},
			"a3": {
				session: "3", under: "b1", wants: []string{"a1", "a2"},
			}, "b2": {session: "4", under: "a1", wants: []string{"b1"}},
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
