package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1_800_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func limits() Limits {
	return Limits{Keep: 2 * time.Hour, Intervals: 10_000, Points: 10_000, Apart: 10 * time.Second}
}

// held is a look, which takes no time, at a path with these holders.
func held(seconds float64, stamp string, owners ...string) Look {
	p := Path{Kind: "lock", Stamp: stamp}
	for _, owner := range owners {
		p.Holders = append(p.Holders, Holder{Node: "/l/" + owner, Token: 1, Owner: owner, Session: "session of " + owner})
	}
	return Look{Began: at(seconds), Ended: at(seconds), Paths: map[string]Path{"/l": p}}
}

func span(from, to float64) Span { return Span{at(from), at(to)} }

func TestAHoldIsKnownBetweenTheLooksThatShowedItAndNoFurther(t *testing.T) {
	h := New(limits())
	h.See(held(0, "1"))
	h.See(held(2, "1"))
	h.See(held(4, "2", "a"))
	h.See(held(6, "2", "a"))
	h.See(held(8, "3", "b"))
	all := h.Intervals()
	require.Len(t, all, 3)
	require.True(t, all[0].Nobody)
	require.False(t, all[0].AtLooks, "nothing has changed between the two looks")
	require.Equal(t, []Span{{time.Time{}, at(0)}, span(2, 4)}, []Span{all[0].Begin, all[0].End})
	require.Equal(t, "a", all[1].Owner)
	require.Equal(t, []Span{span(2, 4), span(6, 8)}, []Span{all[1].Begin, all[1].End})
	require.Equal(t, "b", all[2].Owner)
	require.Equal(t, span(6, 8), all[2].Begin)
	require.True(t, all[2].Lasts())
}

func TestAPathThatChangesWhileNobodyIsSeenMayHaveBeenHeld(t *testing.T) {
	h := New(limits())
	for i, stamp := range []string{"1", "2", "3", "3", "3", ""} {
		h.See(held(float64(i), stamp))
	}
	all := h.Intervals()
	require.Len(t, all, 3)
	require.Equal(t, []bool{true, false, true}, []bool{all[0].AtLooks, all[1].AtLooks, all[2].AtLooks})
	require.Equal(t, []Span{span(2, 2), span(4, 4)}, []Span{all[0].End, all[1].End},
		"what is known better begins with the look that showed it")
}

func TestAPathThatIsStillTheSameHasNotChangedBefore(t *testing.T) {
	h := New(limits())
	h.See(held(0, "1", "a"))
	require.True(t, h.Still("/l", "1", at(8)))
	require.False(t, h.Still("/l", "2", at(9)), "it has changed")
	require.False(t, h.Still("/m", "1", at(9)))
	h.See(held(10, "2"))
	require.Equal(t, span(8, 10), h.Intervals()[0].End)
	require.False(t, h.Still("/l", "", at(11)), "the stamp is not known")
}

func TestAPathThatWasLeftOutStaysAsItWas(t *testing.T) {
	h := New(limits())
	h.See(held(0, "1", "a"))
	h.See(Look{Began: at(2), Ended: at(2), Partial: true})
	require.True(t, h.Intervals()[0].Lasts())
	require.Equal(t, at(0), h.Seen("/l"))
	h.See(held(4, "2"))
	require.Equal(t, span(0, 4), h.Intervals()[0].End)
}

func TestWhatABookAndLaterLooksTellOfAnEnd(t *testing.T) {
	const timeout = 10 * time.Second
	heard := func(seconds float64) map[string]Heard {
		return map[string]Heard{"session of a": {at(seconds), timeout}}
	}
	for _, x := range []struct {
		what          string
		before, after Book
		end           float64
		how           How
	}{
		{
			"a client that was heard of has given it up, and closed its session",
			Book{at(1), true, heard(0.5)},
			Book{at(3), true, nil},
			2, Released,
		},
		{"its session lives on", Book{at(15), true, heard(4)}, Book{at(21), true, heard(20)}, 20, Released},
		{"it was silent until its session was over", Book{at(13), true, heard(4)}, Book{at(15), true, nil}, 15, Lost},
		{"its connection had gone before", Book{at(11), true, nil}, Book{at(15), true, nil}, 15, Crashed},
		{"a server did not answer before", Book{at(11), false, nil}, Book{at(15), true, nil}, 15, ""},
		{"a server did not answer afterwards", Book{at(11), true, nil}, Book{at(15), false, nil}, 15, ""},
		{"it was heard of, and may have been silent since", Book{at(5), true, heard(4)}, Book{at(15), true, nil}, 15, ""},
		{
			"the servers do not say when they heard of it", Book{
				at(13), true, map[string]Heard{"session of a": {}},
			}, Book{at(15), true, nil}, 15, "",
		},
	} {
		h := New(limits())
		h.See(held(0, "1", "a"))
		h.Hear(x.before)
		if x.end > 12 {
			h.See(held(12, "1", "a"))
		}
		h.See(held(x.end, "2"))
		h.Hear(x.after)
		require.Equal(t, x.how, h.Intervals()[0].How, x.what)
	}
}

func TestABookThatIsTakenWhileASessionEndsSaysNothingAboutItsConnection(t *testing.T) {
	const timeout = 10 * time.Second
	h := New(limits())
	h.See(held(0, "1", "a"))
	h.Hear(Book{at(12), true, map[string]Heard{"session of a": {at(4), timeout}}})
	h.See(held(14, "1", "a"))
	h.Hear(Book{at(14.5), true, nil}) // its session has just ended
	h.See(held(16, "2"))
	h.Hear(Book{at(15.9), true, nil})
	h.Hear(Book{at(18), true, nil})
	require.Equal(t, Lost, h.Intervals()[0].How)
}

func TestASessionThatIsMetLaterHasReleasedItsHold(t *testing.T) {
	h := New(limits())
	h.See(held(0, "1", "a"))
	next := held(2, "2", "b")
	next.Paths["/m"] = Path{Kind: "lock", Others: []string{"session of a"}}
	h.See(next)
	end := func() How { return h.ended[0].How }
	require.Empty(t, end(), "it may have been met before the end")
	next.Began, next.Ended = at(4), at(4)
	h.See(next)
	require.Equal(t, Released, end())
}

func TestABreakIsToldApart(t *testing.T) {
	h := New(limits())
	h.See(held(0, "1", "a", "b"))
	h.Breaks("/l/a", true)
	h.Breaks("/l/b", true)
	h.Breaks("/l/b", false) // it was refused
	h.See(held(2, "2"))
	how := map[string]How{}
	for _, i := range h.ended {
		how[i.Owner] = i.How
	}
	require.Equal(t, map[string]How{"a": Broken, "b": ""}, how)
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	few := Limits{Keep: 10 * time.Minute, Intervals: 100, Points: 500, Apart: 10 * time.Second}
	h := New(few)
	for i := range 1000 {
		look := held(float64(i), fmt.Sprint(i), fmt.Sprint(i))
		look.Paths["/q"] = Path{Kind: "queue", Lanes: []string{}, Queue: &Queue{Items: i}}
		look.Paths[fmt.Sprint("/p", i)] = Path{Kind: "lock", Stamp: "1"}
		if i > 800 {
			delete(look.Paths, fmt.Sprint("/p", i))
		}
		h.See(look)
		h.Hear(Book{at(float64(i)), true, nil})
		require.LessOrEqual(t, len(h.ended), 100)
		require.LessOrEqual(t, h.points, 500+2*mostPoints+len(h.paths))
	}
	require.Equal(t, 999-99, h.Dropped(), "what was dropped is said")
	require.LessOrEqual(t, len(h.sessions), 2)
	require.Len(t, h.pending, 0)
	require.Nil(t, h.paths["/p0"], "nothing was there for ten minutes")
	require.NotNil(t, h.paths["/p800"])
	for _, seconds := range []float64{20_000, 40_000} {
		h.See(Look{Began: at(seconds), Ended: at(seconds)})
	}
	require.Empty(t, h.Intervals())
	require.Empty(t, h.Chunks())
	require.Len(t, h.Runs(), 1)
}

func TestPointsAreWhatHasChanged(t *testing.T) {
	h := New(limits())
	for i, items := range []int{0, 0, 3, 3, 3} {
		h.See(Look{
			Began: at(float64(i)), Ended: at(float64(i)), Paths: map[string]Path{
				"/q": {Kind: "queue", Lanes: []string{}, Queue: &Queue{Items: items}},
			},
		})
	}
	require.Equal(t, []Point{{At: at(0)}, {At: at(2), Queue: Queue{Items: 3}}}, h.Chunks()[0].Points)
	require.Equal(t, []Span{span(0, 4)}, h.Runs())
	h.See(Look{
		Began: at(60), Ended: at(60), Paths: map[string]Path{
			"/q": {Kind: "queue", Lanes: []string{}, Queue: &Queue{Items: 3}},
		},
	})
	require.Equal(t, []Span{span(0, 4), span(60, 60)}, h.Runs(), "nobody looked meanwhile")
	require.Equal(t, at(60), h.Chunks()[0].Points[2].At, "it is as before, which the break does not show")
	require.Empty(t, h.Intervals(), "a queue has no holder")
}

// truth is what happened at a path, by the test's own record.
type truth struct {
	from, to float64
	owner    string // "": nobody
}

// story lets holders come and go, some for so short that no look finds them.
func story(r *rand.Rand, until float64) (all []truth) {
	for now, n := 0., 0; now < until; n++ {
		long := r.ExpFloat64() * []float64{0.3, 3, 20}[r.IntN(3)]
		owner := ""
		if r.IntN(3) > 0 {
			owner = fmt.Sprint(n)
		}
		all = append(all, truth{now, now + long, owner})
		now += long
	}
	return all
}

// seenAt is what a look finds at one moment.
func seenAt(all []truth, seconds float64) (n int, now truth) {
	for i, was := range all {
		if was.from <= seconds && seconds < was.to {
			return i, was
		}
	}
	return len(all), truth{}
}

// stampAt is the stamp at one moment.
func stampAt(all []truth, seconds float64) string {
	n, was := seenAt(all, seconds)
	if was.owner == "" && n > 0 && n < len(all) && all[n-1].owner == "" {
		n-- // nobody came and nobody went
	}
	return fmt.Sprint(n)
}

func TestNothingIsMadeUpAndWhatLooksShowedIsThere(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 40))
		all := story(r, 600)
		h := New(limits())
		shown := map[string]bool{}
		for now := 0.; now < 600; now += r.ExpFloat64() * 2 {
			takes := r.Float64() * 0.5
			read := now + r.Float64()*takes                   // the moment at which the path is read
			stamp := stampAt(all, now+r.Float64()*(read-now)) // which comes before
			_, was := seenAt(all, read)
			look := held(now, stamp)
			if was.owner != "" {
				look = held(now, stamp, was.owner)
				shown[was.owner] = true
			}
			look.Ended = at(now + takes)
			h.See(look)
			now += takes
			for range r.IntN(4) {
				now += r.ExpFloat64() / 2
				h.Still("/l", stampAt(all, now), at(now))
			}
		}
		for _, i := range h.Intervals() {
			delete(shown, i.Owner)
			check(t, seed, all, i, h.Seen("/l"))
		}
		require.Empty(t, shown, "seed %d: each hold that a look has shown", seed)
	}
}

// check compares an interval with what happened.
func check(t *testing.T, seed uint64, all []truth, i *Interval, now time.Time) {
	t.Helper()
	if i.AtLooks {
		return
	}
	end := i.End
	if i.Lasts() {
		end = Span{i.Begin.To, now}
	}
	in := func(s Span, seconds float64) bool { return !at(seconds).Before(s.From) && !at(seconds).After(s.To) }
	for _, was := range all {
		overlaps := i.Begin.To.Before(end.From) && at(was.from).Before(end.From) && at(was.to).After(i.Begin.To)
		if i.Nobody {
			require.False(t, overlaps && was.owner != "", "seed %d: %v held while nobody did %v", seed, was, *i)
			continue
		}
		require.False(t, overlaps && was.owner != i.Owner, "seed %d: %v held, too, in %v", seed, was, *i)
		if was.owner == i.Owner {
			require.True(t, in(i.Begin, was.from), "seed %d: %v begins in %v", seed, was, i.Begin)
			require.True(t, i.Lasts() || in(i.End, was.to), "seed %d: %v ends in %v", seed, was, i.End)
		}
	}
}
