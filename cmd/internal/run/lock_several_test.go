//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// several is the command line of a lock at several paths.
func several(w *zktest.World, names, script string, options ...string) []string {
	args := append([]string{"lock"}, options...)
	for _, name := range strings.Fields(names) {
		args = append(args, w.Path(name))
	}
	return append(args, "--", "sh", "-c", script)
}

func TestACommandThatRunsUnderSeveralLocksIsToldOfEachInTheOrderGiven(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		script := `echo $COORD_PATH_1 $COORD_NODE_1 $COORD_TOKEN_1; echo $COORD_PATH_2 $COORD_NODE_2 $COORD_TOKEN_2; ` +
			`echo $COORD_HELD; echo "none: $COORD_PATH$COORD_NODE$COORD_TOKEN"; cat; exit 3`
		p := cmdtest.On(t, w, append([]string{"--json"}, several(w, "z a", script)...)...)
		var nodes []string
		var tokens []int64
		for _, name := range []string{"z", "a"} {
			var at, node string
			var token int64
			_, err := fmt.Sscan(p.Line(), &at, &node, &token)
			require.NoError(t, err)
			require.Equal(t, w.Path(name), at)
			require.Equal(t, at, path.Dir(node))
			nodes, tokens = append(nodes, node), append(tokens, token)
			require.Equal(t, term.ExitBusy, cmdtest.On(t, w, "lock", "--try", at, "--", "true").Exit(), "it is held")
		}
		require.Greater(t, tokens[0], tokens[1], "a was acquired before z")
		require.Equal(t, path.Base(nodes[0])+" "+path.Base(nodes[1]), p.Line())
		require.Equal(t, "none: ", p.Line(), "of several, no single one is told")
		p.LetGo(3)
		story := cmdtest.Parse[struct {
			Paths, Nodes []string
			Tokens       []int64
			Status       int
			Lost         bool
			Held, Waited float64
		}](t, p.Stderr.String())
		require.Equal(t, []string{w.Path("z"), w.Path("a")}, story.Paths)
		require.Equal(t, nodes, story.Nodes)
		require.Equal(t, tokens, story.Tokens)
		require.Equal(t, 3, story.Status)
		require.Positive(t, story.Held)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("z"), 0)
	})
}

func TestACommandUnderOneLockKnowsNothingOfTheSeveralAroundIt(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("l"), []string{"lock PATH/a PATH/b", "lock PATH/c"}, "sh", "-c", `env | grep -c ^COORD_; echo $COORD_HELD | wc -w`)...)
	require.Equal(t, "5\n3", p.Gives(0), "path, node, token, since when, and what is held: three nodes")
}

func TestSeveralLocksInAnyOrderDoNotWaitForEachOther(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		var all []*cmdtest.Process
		inside := filepath.Join(t.TempDir(), "inside") // is there while a command runs
		for range 3 {
			for _, names := range []string{"a b c", "c b a", "b c a"} {
				all = append(all, cmdtest.On(t, w, several(w, names, "mkdir "+inside+" && rmdir "+inside+" && echo done")...))
			}
		}
		for _, p := range all {
			require.Equal(t, "done", p.Gives(0))
		}
	})
}

func TestSeveralLocksAreTakenAllOrNone(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("b"), cmdtest.UntilEOF)...)
	holder.Number()
	for option, status := range map[string]int{"--try": term.ExitBusy, "--timeout=": term.ExitTimeout} {
		cmdtest.AwaitOutcome(t, option == "--timeout=", func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, append([]string{"--json"}, several(w, "c b a", "echo never", option+timeout)...)...)
		}, func(p *cmdtest.Process) bool {
			require.Empty(t, p.Gives(status))
			object := cmdtest.Told(t, p.Stderr.String())[0]
			require.EqualValues(t, status, object["status"])
			require.Equal(t, []any{w.Path("c"), w.Path("b"), w.Path("a")}, object["paths"])
			if object["at"] != nil { // unless that could not be learned at once
				require.Equal(t, w.Path("b"), object["at"])
			}
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("b"), 1)
			return strings.Contains(object["error"].(string), w.Path("b")) // it says which one is held
		})
	}
	waiter := cmdtest.On(t, w, several(w, "b a", "echo never", "--verbose")...)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return strings.Contains(waiter.Stderr.String(), w.Path("b")+` is held by "sh `)
	}, "it tells which of the locks it waits for")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("b"), 2)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 1)
	waiter.EndsBy(syscall.SIGTERM, 128+15)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("b"), 1)
	holder.LetGo(5)
}

func TestSeveralLocksRefuseWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	for says, args := range map[string]string{
		"/a is there twice":              "lock /a /b /a -- true",
		`path "/b/"`:                     "lock /a /b/ -- true",
		"root":                           "lock /a / -- true",
		"--slots is for one path":        "lock --slots 2 /a /b -- true",
		"/b is neither beside the other": "lock /a --try /b -- true",
		"no command to run":              "lock /a /bin/true",
	} {
		cmdtest.Start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...).Ends(term.ExitUsage, says)
	}
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("l"), []string{"lock PATH/b", "lock PATH/a PATH/b"}, "echo", "ran")...)
	p.Ends(term.ExitOwnFault, "this process runs under "+w.Path("l/b")+" already")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l/a"), 0)
}

func TestSeveralSharedLocksAreHeldTogetherWithOthers(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.On(t, w, append([]string{"--json"}, several(w, "a b", cmdtest.UntilEOF, "--shared")...)...)
	first.Number()
	require.Zero(t, cmdtest.On(t, w, several(w, "b a", "true", "--shared", "--try")...).Exit())
	require.Equal(t, term.ExitBusy, cmdtest.On(t, w, several(w, "b", "true", "--try")...).Exit())
	first.LetGo(5)
	require.NotContains(t, cmdtest.Told(t, first.Stderr.String())[0], "tokens", "shared ones have none")
}

func TestTheLossOfOneOfSeveralLocksEndsTheCommandAndAll(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, append([]string{"--json"}, several(w, "b a", cmdtest.Stubborn)...)...)
		pid := p.Number()
		require.Zero(t, cmdtest.On(t, w, "break", "--yes", w.Path("b")).Exit())
		require.Equal(t, term.ExitLost, p.Exit())
		cmdtest.RequireGone(t, pid)
		require.Equal(t, true, cmdtest.Told(t, p.Stderr.String())[0]["lost"])
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("b"), 0)
	})
}

func TestARequestForOneOfSeveralLocksEndsTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	script := `trap 'echo tidied; exit 4' TERM; echo ready; while :; do sleep 0.2; done`
	p := cmdtest.On(t, w, several(w, "b a", script)...)
	require.Equal(t, "ready", p.Line())
	require.Zero(t, cmdtest.On(t, w, "revoke", "--wait", w.Path("b")).Exit())
	require.Equal(t, "tidied", p.Gives(4))
	ignores := cmdtest.On(t, w, several(w, "b a", cmdtest.UntilEOF, "--on-revoke=ignore")...)
	ignores.Number()
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("b")).Exit())
	ignores.LetGo(5)
}

// untilAllStand is for an owner that is to hold until all its successors stand
// in line, also on a busy machine.
var untilAllStand = []string{"--session-timeout", "6s"}

// successor looks, once it holds the lock, whether a process lives.
func successor(t *testing.T, w *zktest.World, name string, pid int) *cmdtest.Process {
	t.Helper()
	script := fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid)
	return cmdtest.On(t, w, cmdtest.Sh(w.Path(name), script)...)
}

// The commands of the next holders look whether the former one lives: one for
// each lock, for none of them may go over earlier.
func TestOfSeveralLocksNoneIsGivenToAnotherBeforeTheCommandIsDead(t *testing.T) {
	t.Parallel()
	for name, victims := range map[string]func(p *cmdtest.Process, guard int) []int{
		"owner": func(p *cmdtest.Process, _ int) []int { return []int{p.Pid()} },
		"guard": func(_ *cmdtest.Process, guard int) []int { return []int{guard} },
		"both":  func(p *cmdtest.Process, guard int) []int { return []int{p.Pid(), guard} },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				p := cmdtest.Mortal(t, w, append(untilAllStand, several(w, "c a b", "echo $PPID; "+cmdtest.Stubborn)...)...)
				guard := p.Number()
				pid := p.Number()
				var next []*cmdtest.Process
				for _, at := range []string{"a", "b", "c"} {
					next = append(next, successor(t, w, at, pid))
				}
				for _, at := range []string{"a", "b", "c"} {
					cmdtest.AwaitContenders(t, w.Admin(), w.Path(at), 2)
				}
				for _, victim := range victims(p, guard) {
					_ = syscall.Kill(victim, syscall.SIGKILL) // the second may be dead by the death of the first
				}
				cmdtest.RequireGone(t, pid)
				for _, n := range next {
					require.Empty(t, n.Gives(4), "the command lived on while another held one of its locks")
				}
			})
		})
	}
}

func TestAFrozenOwnersCommandIsDeadBeforeAnotherHoldsOneOfItsLocks(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.Mortal(t, w, append(untilAllStand, several(w, "b a", cmdtest.Stubborn)...)...)
		pid := p.Number()
		var next []*cmdtest.Process
		for _, at := range []string{"a", "b"} {
			next = append(next, successor(t, w, at, pid))
		}
		for _, at := range []string{"a", "b"} {
			cmdtest.AwaitContenders(t, w.Admin(), w.Path(at), 2)
		}
		p.Signal(syscall.SIGSTOP)
		for _, n := range next {
			require.Empty(t, n.Gives(4))
		}
		p.EndsBy(syscall.SIGCONT, term.ExitLost)
	})
}

func TestWhenTheServersGoTheCommandEndsBeforeOneOfSeveralLocksIsLost(t *testing.T) {
	cmdtest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		cmdtest.InTime(t, cmdtest.Short, func() time.Duration {
			p := cmdtest.Mortal(t, w, several(w, "b a", cmdtest.Stubborn)...)
			pid := p.Number()
			begin := time.Now()
			w.Freeze()
			cmdtest.RequireGone(t, pid)
			took := time.Since(begin)
			require.Equal(t, term.ExitLost, p.Exit())
			w.Thaw()
			return took
		})
	})
}
