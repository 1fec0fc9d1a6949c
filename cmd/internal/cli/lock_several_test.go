//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		script := `echo $COORD_PATH_1 $COORD_NODE_1 $COORD_TOKEN_1; echo $COORD_PATH_2 $COORD_NODE_2 $COORD_TOKEN_2; ` +
			`echo $COORD_HELD; echo "none: $COORD_PATH$COORD_NODE$COORD_TOKEN"; cat; exit 3`
		p := on(t, w, append([]string{"--json", "--session-timeout", "10s"}, several(w, "z a", script)...)...)
		var nodes []string
		var tokens []int64
		for _, name := range []string{"z", "a"} {
			var at, node string
			var token int64
			_, err := fmt.Sscan(p.line(), &at, &node, &token)
			require.NoError(t, err)
			require.Equal(t, w.Path(name), at)
			require.Equal(t, at, path.Dir(node))
			nodes, tokens = append(nodes, node), append(tokens, token)
			require.Equal(t, exitBusy, on(t, w, "lock", "--try", at, "--", "true").exit(), "it is held")
		}
		require.Greater(t, tokens[0], tokens[1], "a was acquired before z")
		require.Equal(t, path.Base(nodes[0])+" "+path.Base(nodes[1]), p.line())
		require.Equal(t, "none: ", p.line(), "of several, no single one is told")
		require.NoError(t, p.in.Close())
		require.Equal(t, 3, p.exit())
		story := parse[struct {
			Paths, Nodes []string
			Tokens       []int64
			Status       int
			Lost         bool
			Held, Waited float64
		}](t, p.stderr.String())
		require.Equal(t, []string{w.Path("z"), w.Path("a")}, story.Paths)
		require.Equal(t, nodes, story.Nodes)
		require.Equal(t, tokens, story.Tokens)
		require.Equal(t, 3, story.Status)
		require.Positive(t, story.Held)
		awaitContenders(t, w.Admin(), w.Path("a"), 0)
		awaitContenders(t, w.Admin(), w.Path("z"), 0)
	})
}

func TestACommandUnderOneLockKnowsNothingOfTheSeveralAroundIt(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, nested(w, w.Path("l"), []string{"lock PATH/a PATH/b", "lock PATH/c"}, "sh", "-c", `env | grep -c ^COORD_; echo $COORD_HELD | wc -w`)...)
	require.Zero(t, p.exit())
	require.Equal(t, "4\n3", p.output(), "path, node, token and what is held: three nodes")
}

func TestSeveralLocksInAnyOrderDoNotWaitForEachOther(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var all []*process
		inside := filepath.Join(t.TempDir(), "inside") // is there while a command runs
		for range 3 {
			for _, names := range []string{"a b c", "c b a", "b c a"} {
				all = append(all, patiently(t, w, several(w, names, "mkdir "+inside+" && rmdir "+inside+" && echo done")...))
			}
		}
		for _, p := range all {
			require.Zero(t, p.exit())
			require.Equal(t, "done", p.output())
		}
	})
}

func TestSeveralLocksAreTakenAllOrNone(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := patiently(t, w, sh(w.Path("b"), untilEOF)...)
	holder.number()
	for option, status := range map[string]int{"--try": exitBusy, "--timeout=": exitTimeout} {
		awaitOutcome(t, option == "--timeout=", func(timeout string) *process {
			return patiently(t, w, append([]string{"--json"}, several(w, "c b a", "echo never", option+timeout)...)...)
		}, func(p *process) bool {
			require.Equal(t, status, p.exit())
			require.Empty(t, p.output())
			object := told(t, p.stderr.String())[0]
			require.EqualValues(t, status, object["status"])
			require.Equal(t, []any{w.Path("c"), w.Path("b"), w.Path("a")}, object["paths"])
			if object["at"] != nil { // unless that could not be learned at once
				require.Equal(t, w.Path("b"), object["at"])
			}
			awaitContenders(t, w.Admin(), w.Path("a"), 0)
			awaitContenders(t, w.Admin(), w.Path("b"), 1)
			return strings.Contains(object["error"].(string), w.Path("b")) // it says which one is held
		})
	}
	waiter := patiently(t, w, several(w, "b a", "echo never", "--verbose")...)
	zktest.Eventually(t, soon, func() bool {
		return strings.Contains(waiter.stderr.String(), w.Path("b")+` is held by "sh `)
	}, "it tells which of the locks it waits for")
	awaitContenders(t, w.Admin(), w.Path("b"), 2)
	awaitContenders(t, w.Admin(), w.Path("a"), 1)
	waiter.signal(syscall.SIGTERM)
	require.Equal(t, 128+15, waiter.exit())
	awaitContenders(t, w.Admin(), w.Path("a"), 0)
	awaitContenders(t, w.Admin(), w.Path("b"), 1)
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
}

func TestSeveralLocksRefuseWhatCannotBeRight(t *testing.T) {
	for says, args := range map[string]string{
		"/a is there twice":              "lock /a /b /a -- true",
		`path "/b/"`:                     "lock /a /b/ -- true",
		"root":                           "lock /a / -- true",
		"--slots is for one path":        "lock --slots 2 /a /b -- true",
		"/b is neither beside the other": "lock /a --try /b -- true",
		"no command to run":              "lock /a /bin/true",
	} {
		p := start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, p.exit(), args)
		require.Contains(t, p.stderr.String(), says, args)
	}
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, nested(w, w.Path("l"), []string{"lock PATH/b", "lock PATH/a PATH/b"}, "echo", "ran")...)
	require.Equal(t, exitOwnFault, p.exit())
	require.Contains(t, p.stderr.String(), "this process runs under "+w.Path("l/b")+" already")
	awaitContenders(t, w.Admin(), w.Path("l/a"), 0)
}

func TestSeveralSharedLocksAreHeldTogetherWithOthers(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	first := on(t, w, append([]string{"--json"}, several(w, "a b", untilEOF, "--shared")...)...)
	first.number()
	require.Zero(t, on(t, w, several(w, "b a", "true", "--shared", "--try")...).exit())
	require.Equal(t, exitBusy, on(t, w, several(w, "b", "true", "--try")...).exit())
	require.NoError(t, first.in.Close())
	require.Equal(t, 5, first.exit())
	require.NotContains(t, told(t, first.stderr.String())[0], "tokens", "shared ones have none")
}

func TestTheLossOfOneOfSeveralLocksEndsTheCommandAndAll(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, append([]string{"--json"}, several(w, "b a", stubborn)...)...)
		pid := p.number()
		require.Zero(t, on(t, w, "break", "--yes", w.Path("b")).exit())
		require.Equal(t, exitLost, p.exit())
		requireGone(t, pid)
		require.Equal(t, true, told(t, p.stderr.String())[0]["lost"])
		awaitContenders(t, w.Admin(), w.Path("a"), 0)
		awaitContenders(t, w.Admin(), w.Path("b"), 0)
	})
}

func TestARequestForOneOfSeveralLocksEndsTheCommand(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	script := `trap 'echo tidied; exit 4' TERM; echo ready; while :; do sleep 0.02; done`
	p := on(t, w, several(w, "b a", script)...)
	require.Equal(t, "ready", p.line())
	require.Zero(t, on(t, w, "revoke", "--wait", w.Path("b")).exit())
	require.Equal(t, 4, p.exit())
	require.Equal(t, "tidied", p.output())
	ignores := on(t, w, several(w, "b a", untilEOF, "--on-revoke=ignore")...)
	ignores.number()
	require.Zero(t, on(t, w, "revoke", w.Path("b")).exit())
	require.NoError(t, ignores.in.Close())
	require.Equal(t, 5, ignores.exit())
}

// untilAllStand is the session time-out of an owner that is to hold until all
// its successors stand in line, also on a busy machine.
const untilAllStand = 6 * time.Second

// successor looks, once it holds the lock, whether a process lives. A busy
// machine must not cost it its session.
func successor(t *testing.T, w *zktest.World, name string, pid int) *process {
	t.Helper()
	script := fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid)
	return on(t, w, append([]string{"--session-timeout", "10s"}, sh(w.Path(name), script)...)...)
}

// The commands of the next holders look whether the former one lives: one for
// each lock, for none of them may go over earlier.
func TestOfSeveralLocksNoneIsGivenToAnotherBeforeTheCommandIsDead(t *testing.T) {
	for name, victims := range map[string]func(p *process, guard int) []int{
		"owner": func(p *process, _ int) []int { return []int{p.pid()} },
		"guard": func(_ *process, guard int) []int { return []int{guard} },
		"both":  func(p *process, guard int) []int { return []int{p.pid(), guard} },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				p := lasting(t, w, untilAllStand, several(w, "c a b", "echo $PPID; "+stubborn)...)
				guard := p.number()
				pid := p.number()
				var next []*process
				for _, at := range []string{"a", "b", "c"} {
					next = append(next, successor(t, w, at, pid))
				}
				for _, at := range []string{"a", "b", "c"} {
					awaitContenders(t, w.Admin(), w.Path(at), 2)
				}
				for _, victim := range victims(p, guard) {
					_ = syscall.Kill(victim, syscall.SIGKILL) // the second may be dead by the death of the first
				}
				requireGone(t, pid)
				for _, n := range next {
					require.Equal(t, 4, n.exit())
					require.Empty(t, n.output(), "the command lived on while another held one of its locks")
				}
			})
		})
	}
}

func TestAFrozenOwnersCommandIsDeadBeforeAnotherHoldsOneOfItsLocks(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := lasting(t, w, untilAllStand, several(w, "b a", stubborn)...)
		pid := p.number()
		var next []*process
		for _, at := range []string{"a", "b"} {
			next = append(next, successor(t, w, at, pid))
		}
		for _, at := range []string{"a", "b"} {
			awaitContenders(t, w.Admin(), w.Path(at), 2)
		}
		p.signal(syscall.SIGSTOP)
		for _, n := range next {
			require.Equal(t, 4, n.exit())
			require.Empty(t, n.output())
		}
		p.signal(syscall.SIGCONT)
		require.Equal(t, exitLost, p.exit())
	})
}

func TestWhenTheServersGoTheCommandEndsBeforeOneOfSeveralLocksIsLost(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		inTime(t, zktest.SessionTimeout, func() time.Duration {
			p := on(t, w, several(w, "b a", stubborn)...)
			pid := p.number()
			begin := time.Now()
			w.Freeze()
			requireGone(t, pid)
			took := time.Since(begin)
			require.Equal(t, exitLost, p.exit())
			w.Thaw()
			return took
		})
	})
}
