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
				require.NoError(t, one.In.Close())
				require.Equal(t, 5, one.Exit())
			})
		})
	}
}

func TestTheNumberOfSlotsIsAgreedUpon(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "2")...).Exit())
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--slots", "3")...)
		require.Equal(t, term.ExitOwnFault, p.Exit())
		require.Contains(t, p.Stderr.String(), "has 2 slots; say --slots 2, or --slots 3 --resize")
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--resize")...).Exit())
		require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--try")...).Exit())
	})
}

func TestAWaiterWithTheOldNumberOfSlotsFailsAndAHolderGoesOn(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "1")...)
	holder.Line()
	waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--slots", "1")...)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return len(cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line()).Contenders) == 3 // the holder, the slot that is waited for, the queue for it
	}, "the other waits")
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "2", "--resize")...).Exit())
	require.Equal(t, term.ExitOwnFault, waiter.Exit())
	require.Empty(t, waiter.Output())
	require.NoError(t, holder.In.Close())
	require.Equal(t, 5, holder.Exit())
}

func TestOneSlotHasATokenAndTwoHaveNone(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("one"), `echo ${COORD_TOKEN-none}`, "--slots", "1")...)
	require.Positive(t, p.Number())
	p = cmdtest.On(t, w, cmdtest.Sh(w.Path("two"), `echo ${COORD_TOKEN-none}`, "--slots", "2")...)
	require.Equal(t, "none", p.Line())
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
					first := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.UntilEOF, append(kinds[0], "--dialect", dialect)...)...)
					first.Line()
					for _, way := range [][]string{{}, {"--try"}} {
						p := cmdtest.On(t, w, cmdtest.Sh(path, "echo never", append(append(kinds[1], way...), "--dialect", dialect)...)...)
						require.Equal(t, term.ExitOwnFault, p.Exit(), "%v after %v", kinds[1], kinds[0])
						require.Contains(t, p.Stderr.String(), "a path is used either with --slots or without")
					}
					require.NoError(t, first.In.Close())
					require.Equal(t, 5, first.Exit())
				}
			})
		})
	}
}

func TestSlotsOfOneDialectAreShownInTheOtherAndRefusedThere(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for dialect, other := range map[string]string{"kazoo": "curator", "curator": "kazoo"} {
		path := w.Path(dialect)
		holder := cmdtest.On(t, w, append([]string{"--dialect", dialect}, cmdtest.Sh(path, cmdtest.UntilEOF, "--slots", "2")...)...)
		holder.Line()
		refused := cmdtest.On(t, w, append([]string{"--dialect", other}, cmdtest.Sh(path, "echo never", "--slots", "2")...)...)
		require.Equal(t, term.ExitOwnFault, refused.Exit())
		require.Contains(t, refused.Stderr.String(), "in one dialect")
		require.Empty(t, refused.Output())
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "--dialect", other, "inspect", path).Line())
		require.Equal(t, look.SlotsKind, r.Kind)
		require.Equal(t, dialect, r.Dialect)
		require.Len(t, r.Holders(), 1)
		require.Contains(t, r.Holders()[0].Owner, strconv.Itoa(holder.Pid()))
		require.NoError(t, holder.In.Close())
		require.Equal(t, 5, holder.Exit())
	}
}

func TestSlotsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for _, options := range [][]string{{"--slots", "-1"}, {"--slots", "x"}, {"--resize"}, {"--slots", "2", "--shared"}} {
		require.Equal(t, term.ExitUsage, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", options...)...).Exit(), "%v", options)
	}
}

// A lock below a lock is not a slot of it.
func TestLocksMayHaveLocksBelowThem(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	inner := cmdtest.On(t, w, cmdtest.Sh(w.Path("l/leases"), cmdtest.UntilEOF)...)
	inner.Line()
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).Exit())
	require.NoError(t, inner.In.Close())
	require.Equal(t, 5, inner.Exit())
}

func TestInspectShowsWhoHasASlotAndWhoWaitsForOne(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	first := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "1")...)
	first.Line()
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
	require.NoError(t, second.In.Close())
	require.Equal(t, 5, second.Exit())
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
				require.NoError(t, three.In.Close())
				require.Equal(t, 5, three.Exit())
				require.Equal(t, 0, cmdtest.On(t, w, "break", "--yes", path, "--dialect", dialect).Exit())
				codes := []int{one.Exit(), two.Exit()}
				require.ElementsMatch(t, []int{143, term.ExitLost}, codes)
			})
		})
	}
}
