//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
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
		summary := cmdtest.Parse[struct {
			Paths, Nodes []string
			Tokens       []int64
			Status       int
			Held         float64
		}](t, p.Stderr.String())
		require.Equal(t, []string{w.Path("z"), w.Path("a")}, summary.Paths)
		require.Equal(t, nodes, summary.Nodes)
		require.Equal(t, tokens, summary.Tokens)
		require.Equal(t, 3, summary.Status)
		require.Positive(t, summary.Held)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("z"), 0)
	})
}

func TestACommandUnderOneLockKnowsNothingOfTheSeveralAroundIt(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w,
		cmdtest.Nested(t, w, w.Path("l"), []string{"lock PATH/a PATH/b", "lock PATH/c"}, "sh", "-c",
			`env | grep -c ^COORD_; echo $COORD_HELD | wc -w`)...)
	require.Equal(t, "5\n3", p.Gives(0), "path, node, token, since when, and what is held: three nodes")
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
			if object["at"] != nil { // unless one look did not show it in time
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
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, append([]string{"--json"}, several(w, "b a", cmdtest.Stubborn)...)...)
	pid := p.Number()
	require.Zero(t, cmdtest.On(t, w, "break", "--yes", w.Path("b")).Exit())
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.RequireGone(t, pid)
	require.Equal(t, true, cmdtest.Told(t, p.Stderr.String())[0]["lost"])
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 0)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("b"), 0)
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

// The holder of a may wait for b, and neither would ever go on.
func TestANestedLockAtSeveralPathsIsRefusedBeforeItWaitsForAny(t *testing.T) {
	w := cmdtest.World(t)
	inside := func(outer, inner string) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("l"), []string{outer, inner}, "echo", "ran")...)
	}
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l/a"), cmdtest.UntilEOF)...).Begun()
	for _, inner := range []string{"lock PATH/a PATH/b", "lock PATH/b PATH/a"} {
		p := inside("lock PATH/b", inner)
		p.Ends(term.ExitOwnFault, "this process runs under "+w.Path("l/b")+" already")
		require.Empty(t, p.Output(), inner)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l/a"), 1)
	}
	require.Equal(t, term.ExitBusy, inside("lock PATH/b", "lock --try PATH/a PATH/b").Exit(), "a try does not wait")
	require.Equal(t, term.ExitOwnFault, inside("lock PATH/b", "lock --shared PATH/a PATH/b").Exit(),
		"a shared one inside a plain one")
	holder.LetGo(5)
	require.Equal(t, "ran", inside("lock --shared PATH/b", "lock --shared PATH/a PATH/b").Gives(0))
}

func TestSeveralPathsAreToldFromTheCommandByTheSeparator(t *testing.T) {
	w := cmdtest.World(t)
	for _, args := range []string{
		"lock PATH/a -- /usr/bin/env echo ran", "lock PATH/a echo ran", "lock PATH/a PATH/b -- /usr/bin/env echo ran",
		"lock -- PATH/a PATH/b -- echo ran", "lock -- PATH/a echo ran",
	} {
		require.Equal(t, "ran",
			cmdtest.On(t, w, strings.Fields(strings.ReplaceAll(args, "PATH", w.Path("l")))...).Gives(0), args)
	}
	require.Equal(t, "ran", cmdtest.On(t, w, "lock", w.Path("a"), w.Path("b"), "-c", "echo ran").Gives(0))
}

func TestAllLocksAreAskedForAtOnceWhetherOneWasLost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), cmdtest.Soon)
	defer cancel()
	var come sync.WaitGroup
	come.Add(3)
	all := make(chan struct{})
	go func() { come.Wait(); close(all) }()
	lost := fmt.Errorf("the last: %w", coord.ErrLost)
	err := firstLoss(ctx, []int{1, 2, 3}, func(ctx context.Context, i int) error {
		come.Done()
		select {
		case <-all:
		case <-ctx.Done():
			return ctx.Err() // one was answered before the others were asked
		}
		if i == 3 {
			return lost
		}
		<-ctx.Done() // those are not answered
		return ctx.Err()
	})
	require.Equal(t, lost, err)
	require.NoError(t, ctx.Err(), "a loss is told of without the other answers")
	require.NoError(t, firstLoss(ctx, []int{1, 2}, func(context.Context, int) error { return coord.ErrUnconfirmed }))
}

func TestTheNameOfACommandThatIsNotUTF8IsNotShown(t *testing.T) {
	w := cmdtest.World(t)
	name := filepath.Join(t.TempDir(), "caf\xe9")
	zktest.WriteProgram(t, name, []byte("#!/bin/sh\n"+cmdtest.UntilEOF), 0o700)
	p := cmdtest.On(t, w, "lock", w.Path("l"), "--", name).Begun()
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
	require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "coorddemo "), r.Contenders[0].Owner)
	p.LetGo(5)
}

func TestALockInsideTheSameLockIsRefusedInsteadOfADeadlock(t *testing.T) {
	w := cmdtest.World(t)
	for i, lines := range [][]string{
		{"lock PATH", "lock PATH"},
		{"lock PATH", "lock PATH/other", "lock PATH"},
		{"lock PATH", "lock --shared PATH"},
		{"lock --shared PATH", "lock PATH"},
		{"lock --slots 1 PATH", "lock --slots 1 PATH"},
		{"lock --slots 2 PATH", "lock --slots 2 PATH", "lock --slots 2 PATH"},
		{"--dialect kazoo lock --slots 1 PATH", "--dialect kazoo lock --slots 1 PATH"},
		{"lock --one-node PATH", "lock --one-node PATH"},
		{"lock --one-node PATH", "lock PATH-other", "lock --one-node PATH PATH-third"},
		{"lock --dialect prefix=n_ PATH", "elect --dialect prefix=n_ PATH"},
		{"elect PATH", "elect PATH"},
		{"doublebarrier -n 1 PATH", "doublebarrier --next -n 1 PATH"},
	} {
		path := w.Path(fmt.Sprintf("l%d", i))
		p := cmdtest.On(t, w, cmdtest.Nested(t, w, path, lines, "echo", "ran")...)
		require.NotContains(t, p.Gives(term.ExitOwnFault), "ran", lines)
		require.Contains(t, p.Stderr.String(), "this process runs under "+path+" already", lines)
		require.Contains(t, p.Stderr.String(), "would wait for itself for ever", lines)
	}
}

func TestALockInsideAnotherIsGranted(t *testing.T) {
	w := cmdtest.World(t)
	for i, lines := range [][]string{
		{"lock PATH", "lock PATH/other", "lock PATH/third"},
		{"lock --shared PATH", "lock --shared PATH"},
		{"lock --slots 2 PATH", "lock --slots 2 PATH"},
		{"lock PATH", "elect PATH/leader", "queue receive --timeout 20 PATH/queue"},
	} {
		path := w.Path(fmt.Sprintf("l%d", i))
		require.Zero(t, cmdtest.On(t, w, "queue", "put", path+"/queue", "item").Exit())
		p := cmdtest.On(t, w, cmdtest.Nested(t, w, path, lines, "sh", "-c", "echo $COORD_HELD")...)
		require.Len(t, strings.Fields(p.Gives(0)), len(lines), "%q: each has told its node", lines)
	}
	require.Equal(t, term.ExitBusy,
		cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("try"), []string{"lock PATH", "lock --try PATH"}, "true")...).Exit(),
		"a try does not wait")
}

func TestASharedLockInsideItselfIsRefusedWhereAPlainOneWaitsBetween(t *testing.T) {
	w := cmdtest.World(t)
	inner := strings.Join(
		append([]string{cmdtest.Coorddemo(t)},
			append(cmdtest.Target(w), "lock", "--shared", w.Path("l"), "--", "true")...), " ")
	outer := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo $$; read line; "+inner, "--shared")...)
	outer.Number()
	plain := cmdtest.On(t, w, "lock", w.Path("l"), "--", "true").InLine(w, w.Path("l"), 2)
	_, err := outer.In.Write([]byte("go\n"))
	require.NoError(t, err)
	outer.Ends(term.ExitOwnFault, "would wait for itself for ever")
	require.Zero(t, plain.Exit())
}

// The time before all are held does not count.
func TestSeveralLocksAreHeldForTheWholeTime(t *testing.T) {
	w := cmdtest.World(t)
	a, b := w.Path("a"), w.Path("b")
	other := cmdtest.On(t, w, cmdtest.Sh(b, cmdtest.UntilEOF)...).Begun()
	both := cmdtest.On(t, w, "lock", "--max-hold", "300ms", a, b, "--", "sh", "-c", cmdtest.Busy).InLine(w, b, 2)
	<-time.After(300 * time.Millisecond)
	cmdtest.AwaitContenders(t, w.Admin(), a, 1)
	other.LetGo(5)
	both.Ends(143, "for 300ms")
	require.NotContains(t, both.Stderr.String(), "asked")
}
