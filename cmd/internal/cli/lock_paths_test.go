//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// insideOf is the command line of a lock at b around another command line of
// this program. Sessions are as long as those of patiently.
func insideOf(w *zktest.World, outer string, inner ...string) []string {
	args := append(strings.Fields(outer), w.Path("b"), "--", os.Args[0], "--zk", w.ConnectString(), "--session-timeout", "20s")
	return append(args, inner...)
}

// The holder of a may wait for b, and neither would ever go on.
func TestANestedLockAtSeveralPathsIsRefusedBeforeItWaitsForAny(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := patiently(t, w, sh(w.Path("a"), untilEOF)...)
	holder.number()
	for _, names := range []string{"a b", "b a"} {
		p := patiently(t, w, insideOf(w, "lock", several(w, names, "echo ran")...)...)
		require.Equal(t, exitOwnFault, p.exit(), names)
		require.Empty(t, p.output(), names)
		require.Contains(t, p.stderr.String(), "this process runs under "+w.Path("b")+" already", names)
		awaitContenders(t, w.Admin(), w.Path("a"), 1)
	}
	p := patiently(t, w, insideOf(w, "lock", several(w, "a b", "echo ran", "--try")...)...)
	require.Equal(t, exitBusy, p.exit(), "a try does not wait")
	p = patiently(t, w, insideOf(w, "lock", several(w, "a b", "echo ran", "--shared")...)...)
	require.Equal(t, exitOwnFault, p.exit(), "a shared one inside a plain one")
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
	p = patiently(t, w, insideOf(w, "lock --shared", several(w, "a b", "echo ran", "--shared")...)...)
	require.Zero(t, p.exit(), "a shared one inside itself is granted")
	require.Equal(t, "ran", p.output())
}

func TestSeveralPathsAreToldFromTheCommandByTheSeparator(t *testing.T) {
	for _, args := range []string{
		"lock /a /usr/bin/env true", "lock /a /b true", "lock /a /b true -- x", "lock --slots 2 /a /usr/bin/env true",
		"lock /a /b --try true", "lock -- /a /b true",
	} {
		p := start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, p.exit(), args)
		require.Contains(t, p.stderr.String(), "several paths: write -- before the command", args)
	}
	w := zktest.New(t, zktest.Embedded)
	for _, args := range []string{
		"lock PATH/a -- /usr/bin/env echo ran", "lock PATH/a echo ran", "lock PATH/a PATH/b -- /usr/bin/env echo ran",
		"lock -- PATH/a PATH/b -- echo ran", "lock -- PATH/a echo ran",
	} {
		p := patiently(t, w, strings.Fields(strings.ReplaceAll(args, "PATH", w.Path("l")))...)
		require.Zero(t, p.exit(), args)
		require.Equal(t, "ran", p.output(), args)
	}
	p := patiently(t, w, "lock", w.Path("a"), w.Path("b"), "-c", "echo ran")
	require.Zero(t, p.exit())
	require.Equal(t, "ran", p.output())
}

func TestAllLocksAreAskedForAtOnceWhetherOneWasLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
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
