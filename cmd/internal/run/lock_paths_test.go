//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// insideOf is the command line of a lock at b around another command line of
// this program. Sessions are as long as those of patiently.
func insideOf(t *testing.T, w *zktest.World, outer string, inner ...string) []string {
	args := append(strings.Fields(outer), w.Path("b"), "--", cmdtest.Coorddemo(t), "--zk", w.ConnectString(), "--session-timeout", "20s")
	return append(args, inner...)
}

// The holder of a may wait for b, and neither would ever go on.
func TestANestedLockAtSeveralPathsIsRefusedBeforeItWaitsForAny(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("a"), cmdtest.UntilEOF)...)
	holder.Number()
	for _, names := range []string{"a b", "b a"} {
		p := cmdtest.On(t, w, insideOf(t, w, "lock", several(w, names, "echo ran")...)...)
		require.Empty(t, p.Gives(term.ExitOwnFault), names)
		require.Contains(t, p.Stderr.String(), "this process runs under "+w.Path("b")+" already", names)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 1)
	}
	p := cmdtest.On(t, w, insideOf(t, w, "lock", several(w, "a b", "echo ran", "--try")...)...)
	require.Equal(t, term.ExitBusy, p.Exit(), "a try does not wait")
	p = cmdtest.On(t, w, insideOf(t, w, "lock", several(w, "a b", "echo ran", "--shared")...)...)
	require.Equal(t, term.ExitOwnFault, p.Exit(), "a shared one inside a plain one")
	holder.LetGo(5)
	p = cmdtest.On(t, w, insideOf(t, w, "lock --shared", several(w, "a b", "echo ran", "--shared")...)...)
	require.Equal(t, "ran", p.Gives(0))
}

func TestSeveralPathsAreToldFromTheCommandByTheSeparator(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"lock /a /usr/bin/env true", "lock /a /b true", "lock /a /b true -- x", "lock --slots 2 /a /usr/bin/env true",
		"lock /a /b --try true", "lock -- /a /b true",
	} {
		cmdtest.Start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...).Ends(term.ExitUsage, "several paths: write -- before the command")
	}
	w := zktest.New(t, zktest.Embedded)
	for _, args := range []string{
		"lock PATH/a -- /usr/bin/env echo ran", "lock PATH/a echo ran", "lock PATH/a PATH/b -- /usr/bin/env echo ran",
		"lock -- PATH/a PATH/b -- echo ran", "lock -- PATH/a echo ran",
	} {
		require.Equal(t, "ran", cmdtest.On(t, w, strings.Fields(strings.ReplaceAll(args, "PATH", w.Path("l")))...).Gives(0), args)
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

func TestALabelIsUTF8(t *testing.T) {
	t.Parallel()
	cmdtest.Start(t, "lock", "--label", "caf\xe9", "/l", "--", "true").Ends(term.ExitUsage, "UTF-8")
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
	busy := cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("try"), []string{"lock PATH", "lock --try PATH"}, "true")...)
	require.Equal(t, term.ExitBusy, busy.Exit(), "a try does not wait")
}

func TestASharedLockInsideItselfIsRefusedWhereAPlainOneWaitsBetween(t *testing.T) {
	w := cmdtest.World(t)
	inner := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "lock", "--shared", w.Path("l"), "--", "true")...), " ")
	outer := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo $$; read line; "+inner, "--shared")...)
	outer.Number()
	plain := cmdtest.On(t, w, "lock", w.Path("l"), "--", "true")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
	_, err := outer.In.Write([]byte("go\n"))
	require.NoError(t, err)
	outer.Ends(term.ExitOwnFault, "would wait for itself for ever")
	require.Zero(t, plain.Exit())
}
