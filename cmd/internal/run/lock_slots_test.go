//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAsManyHoldASlotAsThereAre(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				slots := func(script string, more ...string) *cmdtest.Process {
					options := append([]string{"--dialect", dialect, "--slots", "2"}, more...)
					return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script, options...)...)
				}
				one := slots(cmdtest.UntilEOF)
				one.Line()
				two := slots(cmdtest.UntilEOF, "--try")
				two.Line()
				require.Equal(t, term.ExitBusy, slots("echo never", "--try").Exit())
				three := slots("echo three")
				cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
					return slots("echo never", "--timeout", timeout)
				})
				require.False(t, ended(three))
				require.NoError(t, two.In.Close()) // the later one leaves first
				require.Equal(t, 5, two.Exit())
				require.Equal(t, "three", three.Line())
				require.Equal(t, 0, three.Exit())
				one.LetGo(5)
			})
		})
	}
}

func TestTheNumberOfSlotsIsAgreedUpon(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "2")...).Exit())
		cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--slots", "3")...).Ends(term.ExitOwnFault, "has 2 slots; say --slots 2, or --slots 3 --resize")
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--resize")...).Exit())
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--try")...).Exit())
	})
}

func TestAWaiterWithTheOldNumberOfSlotsFailsAndAHolderGoesOn(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "1")...).Begun()
	waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--slots", "1")...)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return len(cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line()).Contenders) == 3 // the holder, the slot that is waited for, the queue for it
	}, "the other waits")
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "2", "--resize")...).Exit())
	require.Empty(t, waiter.Gives(term.ExitOwnFault))
	holder.LetGo(5)
}

func TestOneSlotHasATokenAndTwoHaveNone(t *testing.T) {
	w := cmdtest.World(t)
	require.Positive(t, cmdtest.On(t, w, cmdtest.Sh(w.Path("one"), `echo ${COORD_TOKEN-none}`, "--slots", "1")...).Number())
	require.Equal(t, "none", cmdtest.On(t, w, cmdtest.Sh(w.Path("two"), `echo ${COORD_TOKEN-none}`, "--slots", "2")...).Line())
}

func TestAPathIsUsedEitherWithSlotsOrWithout(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path := w.Path("l")
				for _, kinds := range [][2][]string{
					{{}, {"--slots", "2"}}, {{"--shared"}, {"--slots", "2"}}, {{"--slots", "2"}, {}}, {{"--slots", "2"}, {"--shared"}},
				} {
					first := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.UntilEOF, append(kinds[0], "--dialect", dialect)...)...).Begun()
					for _, way := range [][]string{{}, {"--try"}} {
						p := cmdtest.On(t, w, cmdtest.Sh(path, "echo never", append(append(kinds[1], way...), "--dialect", dialect)...)...)
						p.Ends(term.ExitOwnFault, "a path is used either with --slots or without")
					}
					first.LetGo(5)
				}
			})
		})
	}
}

func TestSlotsOfOneDialectAreShownInTheOtherAndRefusedThere(t *testing.T) {
	w := cmdtest.World(t)
	for dialect, other := range map[string]string{"kazoo": "curator", "curator": "kazoo"} {
		path := w.Path(dialect)
		holder := cmdtest.On(t, w, append([]string{"--dialect", dialect}, cmdtest.Sh(path, cmdtest.UntilEOF, "--slots", "2")...)...).Begun()
		refused := cmdtest.On(t, w, append([]string{"--dialect", other}, cmdtest.Sh(path, "echo never", "--slots", "2")...)...)
		refused.Ends(term.ExitOwnFault, "in one dialect")
		require.Empty(t, refused.Output())
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "--dialect", other, "inspect", path).Line())
		require.Equal(t, look.SlotsKind, r.Kind)
		require.Equal(t, dialect, r.Dialect)
		require.Len(t, r.Holders(), 1)
		require.Contains(t, r.Holders()[0].Owner, strconv.Itoa(holder.Pid()))
		holder.LetGo(5)
	}
}

func TestSlotsThatCannotBe(t *testing.T) {
	w := cmdtest.World(t)
	for _, options := range [][]string{{"--slots", "-1"}, {"--slots", "x"}, {"--resize"}, {"--slots", "2", "--shared"}} {
		require.Equal(t, term.ExitUsage, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", options...)...).Exit(), "%v", options)
	}
}

// A lock below a lock is not a slot of it.
func TestLocksMayHaveLocksBelowThem(t *testing.T) {
	w := cmdtest.World(t)
	inner := cmdtest.On(t, w, cmdtest.Sh(w.Path("l/leases"), cmdtest.UntilEOF)...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).Exit())
	inner.LetGo(5)
}

func TestInspectShowsWhoHasASlotAndWhoWaitsForOne(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "1")...).Begun()
	second := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "1")...)
	var r look.Report
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		r = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "inspect", w.Path("l"), "--json").Output())
		return len(r.Contenders) == 3
	}, "the second does not queue")
	require.Equal(t, "semaphore", r.Kind)
	require.True(t, r.Contenders[0].Holds)
	require.False(t, r.Contenders[1].Holds)
	require.NoError(t, first.In.Close())
	second.Line()
	second.LetGo(5)
}

func TestSlotsAreShownAndAskedFor(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path := w.Path("l")
				one := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.Busy, "--slots", "2", "--dialect", dialect)...)
				two := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.Busy, "--slots", "2", "--dialect", dialect)...)
				one.Line()
				two.Line()
				three := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.UntilEOF, "--slots", "2", "--dialect", dialect)...)
				var shown look.Report
				zktest.Eventually(t, cmdtest.Soon, func() bool {
					shown = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", path, "--dialect", dialect).Line())
					return len(shown.Contenders) == 4
				}, "two slots, one that is waited for, and who waits")
				require.Equal(t, "semaphore", shown.Kind)
				require.Equal(t, dialect, shown.Dialect)
				require.Len(t, shown.Holders(), 2)
				require.Equal(t, 0, cmdtest.On(t, w, "revoke", "--node", shown.Holders()[0].Node, "--wait", path, "--dialect", dialect).Exit())
				three.Line()
				three.LetGo(5)
				require.Equal(t, 0, cmdtest.On(t, w, "break", "--yes", path, "--dialect", dialect).Exit())
				codes := []int{one.Exit(), two.Exit()}
				require.ElementsMatch(t, []int{143, term.ExitLost}, codes)
			})
		})
	}
}

func TestSharedLocksHoldTogetherAndExcludePlainOnes(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--shared")...)
		two := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--shared", "--try")...)
		one.Line()
		two.Line()
		require.Equal(t, term.ExitBusy, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--try")...).Exit())
		plain := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).InLine(w, w.Path("l"), 3)
		require.Equal(t, term.ExitBusy, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--shared", "--try")...).Exit(), "a plain one waits that came earlier")
		late := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo late", "--shared")...).InLine(w, w.Path("l"), 4)
		for _, p := range []*cmdtest.Process{one, two} {
			p.LetGo(5)
		}
		plain.Line()
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--shared", "--timeout", timeout)...)
		})
		plain.LetGo(5)
		require.Equal(t, "late", late.Line())
		require.Equal(t, 0, late.Exit())
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestASharedLockHasNoToken(t *testing.T) {
	w := cmdtest.World(t)
	inner := cmdtest.Sh(w.Path("shared"), `echo $COORD_PATH; echo ${COORD_TOKEN-none}`, "--shared")
	script := `echo ${COORD_TOKEN-none}; exec "$0" "$@"`
	outer := append(append([]string{"lock", w.Path("plain"), "--", "sh", "-c", script}, cmdtest.Coorddemo(t)), append(cmdtest.Target(w), inner...)...)
	p := cmdtest.On(t, w, outer...)
	require.NotEqual(t, "none", p.Line())
	require.Equal(t, w.Path("shared"), p.Line())
	require.Equal(t, "none", p.Line(), "neither one of its own nor that of the lock outside")
	require.Equal(t, 0, p.Exit())

	p = cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), "exit 3", "--shared")...)...)
	require.Equal(t, 3, p.Exit())
	story := cmdtest.Parse[map[string]any](t, p.Stderr.String())
	require.NotContains(t, story, "token")
	require.Contains(t, story["node"], "__READ__")
}

func TestSharedHoldersAreShownAndAskedTogether(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one, two := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...), cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...)
		one.Line()
		two.Line()
		plain := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).InLine(w, w.Path("l"), 3)
		shown := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
		require.Equal(t, "rwlock", shown.Kind)
		require.Len(t, shown.Holders(), 2)
		require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait").Exit())
		require.Equal(t, 143, one.Exit())
		require.Equal(t, 143, two.Exit())
		require.Equal(t, 0, plain.Exit())
	})
}
