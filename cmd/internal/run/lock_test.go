//go:build linux || darwin || freebsd || openbsd

package run

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestLockExitsWithTheStatusOfItsCommand(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for script, want := range map[string]int{
			"exit 0": 0, "exit 7": 7, "exit 76": 76, "kill -TERM $$": 143, "kill -KILL $$": 137,
		} {
			require.Equal(t, want, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script)...).Exit(), script)
		}
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestAVerbExitsAsAShellDoesWhenTheCommandCannotBeRun(t *testing.T) {
	w := cmdtest.World(t)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{
		"/no/such/file": 127, "no-such-command": 127, plain: 126, os.TempDir(): 126,
	} {
		cmdtest.On(t, w, "lock", w.Path("l"), "--", command).Ends(want, command)
		cmdtest.On(t, w, "doublebarrier", "-n", "1", w.Path("b"), "--", command).Ends(want, command)
	}
	exists, _, err := w.Admin().Exists(w.Path("l"))
	require.NoError(t, err)
	require.False(t, exists, "it has stood in the line")
}

func TestLockPassesInputOutputAndArgumentsThrough(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "lock", w.Path("l"), "--", "sh", "-c", `cat; echo "$0 $1 $2" >&2`, "--json", "-x", "two words")
	_, err := io.WriteString(p.In, "from standard input\n")
	require.NoError(t, err)
	p.LetGo(0)
	require.Equal(t, "from standard input", p.Output())
	require.Equal(t, "--json -x two words\n", p.Stderr.String())
}

func TestLockTellsTheCommandWhatItHolds(t *testing.T) {
	w := cmdtest.World(t)
	token := int64(0)
	for range 2 {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_PATH; echo $COORD_NODE; echo $COORD_TOKEN; cat`)...)
		require.Equal(t, w.Path("l"), p.Line())
		node := p.Line()
		_, stat, err := w.Admin().Exists(node)
		require.NoError(t, err)
		got, err := strconv.ParseInt(p.Line(), 10, 64)
		require.NoError(t, err)
		require.Equal(t, stat.Czxid, got)
		require.Greater(t, got, token, "a later holder's token is higher")
		token = got
		p.LetGo(0)
	}
}

// What the options mean is the library's promise.
func TestTheOptionsOfALockArrive(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for held, options := range map[string][][]string{
			"":          {{}, {"--shared"}},
			"--shared":  {{}},
			"--slots=1": {{"--slots=1"}},
			"--slots=2": nil,
		} {
			lock := func(script string, options ...string) *cmdtest.Process {
				return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"+held), script, options...)...)
			}
			same := strings.Fields(held)
			first := lock(cmdtest.UntilEOF, same...).Begun()
			if held == "--shared" || held == "--slots=2" {
				lock(cmdtest.UntilEOF, append(same, "--try")...).Begun().LetGo(5)
			}
			for _, other := range options {
				require.Empty(t, lock("echo never", append(other, "--try")...).Gives(term.ExitBusy))
				waited := cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
					return lock("echo never", append(other, "--timeout", timeout)...)
				})
				require.Empty(t, waited.Output())
			}
			first.LetGo(5)
		}
	})
}

func TestTheServersMayBeNamedByTheEnvironment(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), "lock", w.Path("l"), "--", "sh", "-c", "exit 3")
	cmd.Env = []string{"ZK_SERVERS=" + w.ConnectString()}
	require.Equal(t, 3, cmdtest.StartAs(t, cmd).Exit())
}

func TestWithoutAServerLockEndsWithinASecondOfItsTimeOut(t *testing.T) {
	t.Parallel()
	const patience = 500 * time.Millisecond
	for name, address := range map[string]string{"refused": cmdtest.ClosedPort(t), "silent": cmdtest.SilentServer(t)} {
		for _, option := range []string{"--timeout", "--connect-timeout"} {
			for _, try := range []bool{false, true} {
				args := []string{"--zk", address, "lock", option, patience.String(), "/l", "--", "echo", "never"}
				if try {
					args = append(args[:3:3], append([]string{"--try"}, args[3:]...)...)
				}
				cmdtest.InTime(t, patience+time.Second, func() time.Duration {
					begin := time.Now()
					p := cmdtest.Start(t, args...)
					require.Equal(t, term.ExitUnavailable, p.Exit(), "%s: %q", name, args)
					took := time.Since(begin)
					require.GreaterOrEqual(t, took, patience, name)
					require.Empty(t, p.Output())
					require.Contains(t, p.Stderr.String(), address)
					return took
				})
			}
		}
	}
}

func TestWhenTheServersHangAWaitingLockEndsWithinASecondOfItsTimeOut(t *testing.T) {
	cmdtest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		const patience = 4 * time.Second
		cmdtest.InTime(t, patience+time.Second, func() time.Duration {
			holder := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
			waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--timeout", patience.String())...).
				InLine(w, w.Path("l"), 2)
			joined := time.Now() // the timeout runs by then
			w.Freeze()
			require.Equal(t, term.ExitTimeout, waiter.Exit())
			took := time.Since(joined)
			require.Empty(t, waiter.Output())
			require.Equal(t, term.ExitLost, holder.Exit())
			w.Thaw()
			return took
		})
	})
}

func TestOneLineHasOneDialect(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"),
		map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000000": "a Python program"})
	p := cmdtest.On(t, w, "lock", w.Path("l"), "--", "echo", "never")
	p.Ends(term.ExitOwnFault, "dialect")
	require.Empty(t, p.Output())
	require.Equal(t, term.ExitBusy,
		cmdtest.On(t, w, "--dialect", "kazoo", "lock", "--try", w.Path("l"), "--", "echo", "never").Exit())
}

// inEachDialect runs a test with a function that starts a lock with two slots.
func inEachDialect(t *testing.T, test func(t *testing.T, w *zktest.World, dialect string, slots starter)) {
	t.Helper()
	t.Parallel()
	for _, dialect := range []string{"curator", "kazoo"} {
		t.Run(dialect, func(t *testing.T) {
			w := cmdtest.World(t)
			test(t, w, dialect, func(script string, options ...string) *cmdtest.Process {
				options = append([]string{"--dialect", dialect, "--slots", "2"}, options...)
				return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script, options...)...)
			})
		})
	}
}

type starter func(script string, options ...string) *cmdtest.Process

func TestTheNumberOfSlotsIsAgreedUpon(t *testing.T) {
	w := cmdtest.World(t)
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "2")...).Exit())
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--slots", "3")...).
		Ends(term.ExitOwnFault, "has 2 slots; say --slots 2, or --slots 3 --resize")
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--resize")...).Exit())
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--slots", "3", "--try")...).Exit())
}

func TestOneSlotHasATokenAndTwoHaveNone(t *testing.T) {
	w := cmdtest.World(t)
	require.Positive(t,
		cmdtest.On(t, w, cmdtest.Sh(w.Path("one"), `echo ${COORD_TOKEN-none}`, "--slots", "1")...).Number())
	require.Equal(t, "none",
		cmdtest.On(t, w, cmdtest.Sh(w.Path("two"), `echo ${COORD_TOKEN-none}`, "--slots", "2")...).Line())
}

func TestAPathIsUsedEitherWithSlotsOrWithout(t *testing.T) {
	inEachDialect(t, func(t *testing.T, w *zktest.World, dialect string, slots starter) {
		for _, kind := range [][]string{{}, {"--shared"}} {
			other := func(script string, options ...string) *cmdtest.Process {
				options = append(append([]string{"--dialect", dialect}, kind...), options...)
				return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script, options...)...)
			}
			for _, start := range [][2]starter{{slots, other}, {other, slots}} {
				first := start[0](cmdtest.UntilEOF).Begun()
				for _, way := range [][]string{{}, {"--try"}} {
					start[1]("echo never", way...).Ends(term.ExitOwnFault, "a path is used either with --slots or without")
				}
				first.LetGo(5)
			}
		}
	})
}

func TestSlotsOfOneDialectAreShownInTheOtherAndRefusedThere(t *testing.T) {
	w := cmdtest.World(t)
	for dialect, other := range map[string]string{"kazoo": "curator", "curator": "kazoo"} {
		path := w.Path(dialect)
		holder := cmdtest.On(t, w,
			append([]string{"--dialect", dialect}, cmdtest.Sh(path, cmdtest.UntilEOF, "--slots", "2")...)...).Begun()
		refused := cmdtest.On(t, w,
			append([]string{"--dialect", other}, cmdtest.Sh(path, "echo never", "--slots", "2")...)...)
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

// A lock below a lock is not a slot of it.
func TestLocksMayHaveLocksBelowThem(t *testing.T) {
	w := cmdtest.World(t)
	inner := cmdtest.On(t, w, cmdtest.Sh(w.Path("l/leases"), cmdtest.UntilEOF)...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).Exit())
	inner.LetGo(5)
}

func TestSlotsAreShownAndAskedFor(t *testing.T) {
	inEachDialect(t, func(t *testing.T, w *zktest.World, dialect string, slots starter) {
		path := w.Path("l")
		one, two := slots(cmdtest.Busy).Begun(), slots(cmdtest.Busy).Begun()
		three := slots(cmdtest.UntilEOF)
		var shown look.Report
		zktest.Eventually(t, cmdtest.Soon, func() bool {
			shown = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", path, "--dialect", dialect).Line())
			return len(shown.Contenders) == 4
		}, "two slots, one that is waited for, and who waits")
		require.Equal(t, "semaphore", shown.Kind)
		require.Equal(t, dialect, shown.Dialect)
		require.Equal(t, shown.Contenders[:2], shown.Holders())
		require.Equal(t, 0,
			cmdtest.On(t, w, "revoke", "--node", shown.Holders()[0].Node, "--wait", path, "--dialect", dialect).Exit())
		three.Begun()
		three.LetGo(5)
		require.Equal(t, 0, cmdtest.On(t, w, "break", "--yes", path, "--dialect", dialect).Exit())
		require.ElementsMatch(t, []int{143, term.ExitLost}, []int{one.Exit(), two.Exit()})
	})
}

func TestASharedLockHasNoToken(t *testing.T) {
	w := cmdtest.World(t)
	inner := cmdtest.Sh(w.Path("shared"), `echo $COORD_PATH; echo ${COORD_TOKEN-none}`, "--shared")
	script := `echo ${COORD_TOKEN-none}; exec "$0" "$@"`
	outer := append(append([]string{"lock", w.Path("plain"), "--", "sh", "-c", script}, cmdtest.Coorddemo(t)),
		append(cmdtest.Target(w), inner...)...)
	p := cmdtest.On(t, w, outer...)
	require.NotEqual(t, "none", p.Line())
	require.Equal(t, w.Path("shared"), p.Line())
	require.Equal(t, "none", p.Line(), "neither one of its own nor that of the lock outside")
	require.Equal(t, 0, p.Exit())

	p = cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), "exit 3", "--shared")...)...)
	require.Equal(t, 3, p.Exit())
	summary := cmdtest.Parse[map[string]any](t, p.Stderr.String())
	require.NotContains(t, summary, "token")
	require.Contains(t, summary["node"], "__READ__")
}

func TestSharedHoldersAreShownAndAskedTogether(t *testing.T) {
	w := cmdtest.World(t)
	one := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...).Begun()
	two := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...).Begun()
	plain := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).InLine(w, w.Path("l"), 3)
	shown := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
	require.Equal(t, "rwlock", shown.Kind)
	require.Len(t, shown.Holders(), 2)
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait").Exit())
	require.Equal(t, 143, one.Exit())
	require.Equal(t, 143, two.Exit())
	require.Equal(t, 0, plain.Exit())
}

func TestACommandThatHoldsForTooLongIsEnded(t *testing.T) {
	w := cmdtest.World(t)
	for _, kind := range []string{"--on-revoke=term", "--on-revoke=ignore", "--shared", "--slots=2"} {
		held := cmdtest.On(t, w, cmdtest.Sh(w.Path(strings.Trim(kind, "-")), cmdtest.Busy, "--max-hold", "2s", kind)...)
		cmd := held.Number()
		held.Ends(143, "for 2s")
		cmdtest.RequireGone(t, cmd)
	}
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--max-hold", "1h")...).Ends(0)
}

// TestF74ACommandThatHangsAfterASignalIsEnded: it ignores the signal that it is
// passed, and would hold for ever.
func TestF74ACommandThatHangsAfterASignalIsEnded(t *testing.T) {
	w := cmdtest.World(t)
	for verb, args := range map[string][]string{
		"lock": nil, "elect": nil, "once": {"key"}, "slot": {"1"},
	} {
		line := append([]string{verb, "--stop-grace", "300ms", w.Path(verb)}, args...)
		held := cmdtest.On(t, w, append(line, "--", "sh", "-c", "trap '' TERM; "+cmdtest.Busy)...)
		cmd := held.Number()
		held.Signal(syscall.SIGTERM)
		require.Positive(t, held.Exit())
		cmdtest.RequireGone(t, cmd)
	}
}

func TestAfterAnUncleanEndACommandWaitsForTheDelay(t *testing.T) {
	w := cmdtest.World(t)
	for range 2 {
		cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 3", "--delay", "1h", "--try")...).Ends(3)
	}
	held := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--delay", "1h")...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, "break", "--yes", w.Path("l")).Exit())
	held.Ends(term.ExitLost)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--delay", "1h", "--try")...).Ends(term.ExitBusy, "did not release")
	begun := time.Now()
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--delay", "100ms")...).Ends(0)
	require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
	cmdtest.On(t, w, "doctor", w.Path("l")).Ends(0)
}

func TestAWaitInVainNamesTheHolderOnce(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 9", "--timeout", "0.5")...)
	p.Ends(term.ExitTimeout, "held by")
	require.Equal(t, 1, strings.Count(p.Stderr.String(), "held by"), p.Stderr.String())
	holder.LetGo(5)
}
