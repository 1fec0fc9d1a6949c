//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAsManyHoldASlotAsThereAre(t *testing.T) {
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				slots := func(script string, more ...string) *process {
					options := append([]string{"--dialect", dialect, "--slots", "2"}, more...)
					return on(t, w, sh(w.Path("l"), script, options...)...)
				}
				one := slots(untilEOF)
				one.line()
				two := slots(untilEOF, "--try")
				two.line()
				require.Equal(t, exitBusy, slots("echo never", "--try").exit())
				three := slots("echo three")
				require.Equal(t, exitTimeout, slots("echo never", "--timeout", "2").exit())
				require.False(t, ended(three))
				require.NoError(t, two.in.Close()) // the later one leaves first
				require.Equal(t, 5, two.exit())
				require.Equal(t, "three", three.line())
				require.Equal(t, 0, three.exit())
				require.NoError(t, one.in.Close())
				require.Equal(t, 5, one.exit())
			})
		})
	}
}

func TestTheNumberOfSlotsIsAgreedUpon(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0", "--slots", "2")...).exit())
		p := on(t, w, sh(w.Path("l"), "echo never", "--slots", "3")...)
		require.Equal(t, exitOwnFault, p.exit())
		require.Contains(t, p.stderr.String(), "has 2 slots; say --slots 2, or --slots 3 --resize")
		require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0", "--slots", "3", "--resize")...).exit())
		require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0", "--slots", "3", "--try")...).exit())
	})
}

func TestAWaiterWithTheOldNumberOfSlotsFailsAndAHolderGoesOn(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := on(t, w, sh(w.Path("l"), untilEOF, "--slots", "1")...)
	holder.line()
	waiter := on(t, w, sh(w.Path("l"), "echo never", "--slots", "1")...)
	zktest.Eventually(t, soon, func() bool {
		return len(parse[report](t, on(t, w, "--json", "inspect", w.Path("l")).line()).Contenders) == 3 // the holder, the slot that is waited for, the queue for it
	}, "the other waits")
	require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0", "--slots", "2", "--resize")...).exit())
	require.Equal(t, exitOwnFault, waiter.exit())
	require.Empty(t, waiter.output())
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
}

func TestOneSlotHasATokenAndTwoHaveNone(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("one"), `echo ${COORD_TOKEN-none}`, "--slots", "1")...)
	require.Positive(t, p.number())
	p = on(t, w, sh(w.Path("two"), `echo ${COORD_TOKEN-none}`, "--slots", "2")...)
	require.Equal(t, "none", p.line())
}

func TestAPathIsUsedEitherWithSlotsOrWithout(t *testing.T) {
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path := w.Path("l")
				for _, kinds := range [][2][]string{
					{{}, {"--slots", "2"}}, {{"--shared"}, {"--slots", "2"}}, {{"--slots", "2"}, {}}, {{"--slots", "2"}, {"--shared"}},
				} {
					first := on(t, w, sh(path, untilEOF, append(kinds[0], "--dialect", dialect)...)...)
					first.line()
					for _, way := range [][]string{{}, {"--try"}} {
						p := on(t, w, sh(path, "echo never", append(append(kinds[1], way...), "--dialect", dialect)...)...)
						require.Equal(t, exitOwnFault, p.exit(), "%v after %v", kinds[1], kinds[0])
						require.Contains(t, p.stderr.String(), "a path is used either with --slots or without")
					}
					require.NoError(t, first.in.Close())
					require.Equal(t, 5, first.exit())
				}
			})
		})
	}
}

func TestSlotsOfOneDialectAreShownInTheOtherAndRefusedThere(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for dialect, other := range map[string]string{"kazoo": "curator", "curator": "kazoo"} {
		path := w.Path(dialect)
		holder := on(t, w, append([]string{"--dialect", dialect}, sh(path, untilEOF, "--slots", "2")...)...)
		holder.line()
		refused := on(t, w, append([]string{"--dialect", other}, sh(path, "echo never", "--slots", "2")...)...)
		require.Equal(t, exitOwnFault, refused.exit())
		require.Contains(t, refused.stderr.String(), "in one dialect")
		require.Empty(t, refused.output())
		r := parse[report](t, on(t, w, "--json", "--dialect", other, "inspect", path).line())
		require.Equal(t, slotsKind, r.Kind)
		require.Equal(t, dialect, r.Dialect)
		require.Len(t, r.holders(), 1)
		require.Contains(t, r.holders()[0].Owner, strconv.Itoa(holder.pid()))
		require.NoError(t, holder.in.Close())
		require.Equal(t, 5, holder.exit())
	}
}

func TestSlotsThatCannotBe(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, options := range [][]string{{"--slots", "-1"}, {"--slots", "x"}, {"--resize"}, {"--slots", "2", "--shared"}} {
		require.Equal(t, exitUsage, on(t, w, sh(w.Path("l"), "echo never", options...)...).exit(), "%v", options)
	}
}

// A lock below a lock is not a slot of it.
func TestLocksMayHaveLocksBelowThem(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	inner := on(t, w, sh(w.Path("l/leases"), untilEOF)...)
	inner.line()
	require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0")...).exit())
	require.NoError(t, inner.in.Close())
	require.Equal(t, 5, inner.exit())
}

func TestInspectShowsWhoHasASlotAndWhoWaitsForOne(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	first := on(t, w, sh(w.Path("l"), untilEOF, "--slots", "1")...)
	first.line()
	second := on(t, w, sh(w.Path("l"), untilEOF, "--slots", "1")...)
	var r report
	zktest.Eventually(t, soon, func() bool {
		r = parse[report](t, on(t, w, "inspect", w.Path("l"), "--json").output())
		return len(r.Contenders) == 3
	}, "the second does not queue")
	require.Equal(t, "semaphore", r.Kind)
	require.True(t, r.Contenders[0].Holds)
	require.False(t, r.Contenders[1].Holds)
	require.NoError(t, first.in.Close())
	second.line()
	require.NoError(t, second.in.Close())
	require.Equal(t, 5, second.exit())
}

func TestSlotsAreShownAndAskedFor(t *testing.T) {
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path := w.Path("l")
				one := on(t, w, sh(path, busy, "--slots", "2", "--dialect", dialect)...)
				two := on(t, w, sh(path, busy, "--slots", "2", "--dialect", dialect)...)
				one.line()
				two.line()
				three := on(t, w, sh(path, untilEOF, "--slots", "2", "--dialect", dialect)...)
				var shown report
				zktest.Eventually(t, soon, func() bool {
					shown = parse[report](t, on(t, w, "--json", "inspect", path, "--dialect", dialect).line())
					return len(shown.Contenders) == 4
				}, "two slots, one that is waited for, and who waits")
				require.Equal(t, "semaphore", shown.Kind)
				require.Equal(t, dialect, shown.Dialect)
				require.Len(t, shown.holders(), 2)
				require.Equal(t, 0, on(t, w, "revoke", "--node", shown.holders()[0].Node, "--wait", path, "--dialect", dialect).exit())
				three.line()
				require.NoError(t, three.in.Close())
				require.Equal(t, 5, three.exit())
				require.Equal(t, 0, on(t, w, "break", "--yes", path, "--dialect", dialect).exit())
				codes := []int{one.exit(), two.exit()}
				require.ElementsMatch(t, []int{143, exitLost}, codes)
			})
		})
	}
}
