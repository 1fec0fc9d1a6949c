//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
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
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("a"), cmdtest.UntilEOF)...)
	holder.Number()
	for _, names := range []string{"a b", "b a"} {
		p := cmdtest.On(t, w, insideOf(t, w, "lock", several(w, names, "echo ran")...)...)
		require.Equal(t, term.ExitOwnFault, p.Exit(), names)
		require.Empty(t, p.Output(), names)
		require.Contains(t, p.Stderr.String(), "this process runs under "+w.Path("b")+" already", names)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("a"), 1)
	}
	p := cmdtest.On(t, w, insideOf(t, w, "lock", several(w, "a b", "echo ran", "--try")...)...)
	require.Equal(t, term.ExitBusy, p.Exit(), "a try does not wait")
	p = cmdtest.On(t, w, insideOf(t, w, "lock", several(w, "a b", "echo ran", "--shared")...)...)
	require.Equal(t, term.ExitOwnFault, p.Exit(), "a shared one inside a plain one")
	require.NoError(t, holder.In.Close())
	require.Equal(t, 5, holder.Exit())
	p = cmdtest.On(t, w, insideOf(t, w, "lock --shared", several(w, "a b", "echo ran", "--shared")...)...)
	require.Zero(t, p.Exit(), "a shared one inside itself is granted")
	require.Equal(t, "ran", p.Output())
}

func TestSeveralPathsAreToldFromTheCommandByTheSeparator(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"lock /a /usr/bin/env true", "lock /a /b true", "lock /a /b true -- x", "lock --slots 2 /a /usr/bin/env true",
		"lock /a /b --try true", "lock -- /a /b true",
	} {
		p := cmdtest.Start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...)
		require.Equal(t, term.ExitUsage, p.Exit(), args)
		require.Contains(t, p.Stderr.String(), "several paths: write -- before the command", args)
	}
	w := zktest.New(t, zktest.Embedded)
	for _, args := range []string{
		"lock PATH/a -- /usr/bin/env echo ran", "lock PATH/a echo ran", "lock PATH/a PATH/b -- /usr/bin/env echo ran",
		"lock -- PATH/a PATH/b -- echo ran", "lock -- PATH/a echo ran",
	} {
		p := cmdtest.On(t, w, strings.Fields(strings.ReplaceAll(args, "PATH", w.Path("l")))...)
		require.Zero(t, p.Exit(), args)
		require.Equal(t, "ran", p.Output(), args)
	}
	p := cmdtest.On(t, w, "lock", w.Path("a"), w.Path("b"), "-c", "echo ran")
	require.Zero(t, p.Exit())
	require.Equal(t, "ran", p.Output())
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
