//go:build linux || darwin || freebsd || openbsd

package see

import (
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestARevokedCommandEndsByTerm(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `trap 'exit 9' TERM; `+cmdtest.Busy)...)
		p.Line()
		r := cmdtest.On(t, w, "revoke", w.Path("l"), "--wait")
		require.Equal(t, 0, r.Exit())
		require.Contains(t, r.Output(), "asked")
		require.Equal(t, 9, p.Exit(), "the lock was not lost, so the command's status counts")
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestARevokedCommandThatIgnoresTermIsKilled(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn, "--kill-after", "100ms")...)
	p.Line()
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l")).Exit())
	require.Equal(t, 137, p.Exit())
}

func TestRevocationMayBeIgnoredAndForced(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--on-revoke", "ignore")...)
	pid := p.Number()
	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", timeout)
	})
	require.True(t, cmdtest.Alive(pid))
	shown := cmdtest.On(t, w, "inspect", w.Path("l"))
	require.Contains(t, shown.Output(), "asked to give up")
	forced := cmdtest.On(t, w, "revoke", w.Path("l"), "--force-after", "0.1")
	require.Equal(t, 0, forced.Exit())
	require.Regexp(t, "deleted by force: "+w.Path("l")+"/.*; the former holder may still act", forced.Output())
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.RequireGone(t, pid)

	p = cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--on-revoke", "ignore")...)
	p.Line()
	forced = cmdtest.On(t, w, "--json", "revoke", w.Path("l"), "--force-after", "0.1")
	require.Equal(t, true, cmdtest.Parse[map[string]any](t, forced.Line())["forced"])
	require.Equal(t, term.ExitLost, p.Exit())
}

func TestARequestThatCameBeforeTheGrantEndsTheCommandSoon(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	first := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
	first.Line()
	waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
	p := cmdtest.On(t, w, "--json", "inspect", w.Path("l"))
	node := cmdtest.Parse[look.Report](t, p.Line()).Contenders[1].Node
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--node", path.Base(node)).Exit())
	require.NoError(t, first.In.Close())
	require.Equal(t, 5, first.Exit(), "the holder was not asked")
	require.Equal(t, 143, waiter.Exit())
}

func TestNoHolderToAskIsNoError(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "revoke", w.Path("l"), "--wait")
	require.Equal(t, 0, p.Exit())
	require.Contains(t, p.Output(), "nobody holds")
	p = cmdtest.On(t, w, "--json", "revoke", w.Path("l"))
	require.Equal(t, 0, p.Exit())
	require.JSONEq(t, `{"path":"`+w.Path("l")+`","asked":[],"gone":false,"forced":false}`, p.Line())
	require.Equal(t, term.ExitFailed, cmdtest.On(t, w, "revoke", w.Path("l"), "--node", "other").Exit())
}

func TestRevokeRefusesImpossibleTimes(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"--force-after=0", "--timeout=-1s"} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, "revoke", "/l", option).Exit(), option)
	}
}

func TestACandidateThatCannotBeAskedIsAFailure(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	leader := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", cmdtest.UntilEOF)
	leader.Line()
	waiter := cmdtest.On(t, w, "elect", w.Path("e"), "--", "true")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("e"), 2)
	node := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("e")).Line()).Contenders[1].Node
	asked := cmdtest.On(t, w, "--json", "revoke", "--node", node, w.Path("e"))
	require.Equal(t, term.ExitFailed, asked.Exit())
	require.EqualValues(t, term.ExitFailed, cmdtest.Parse[map[string]any](t, asked.Line())["status"])
	for _, verb := range [][]string{{"revoke"}, {"break", "--yes"}} {
		none := cmdtest.On(t, w, append(verb, "--node", "nobody", w.Path("e"))...)
		require.Equal(t, term.ExitFailed, none.Exit(), verb)
		require.Contains(t, none.Stderr.String(), "there is no contender nobody", verb)
	}
	require.NoError(t, leader.In.Close())
	require.Equal(t, 5, leader.Exit())
	require.Zero(t, waiter.Exit())
}

// Holders are waited for at the same time, not one after the other.
func TestAllHoldersHaveTheSameTimeToGiveUp(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	const each = time.Second
	cmdtest.InTime(t, 3*each, func() time.Duration {
		cmdtest.Contend(t, w, w.Path("l"), map[string]string{
			"_c_" + cmdtest.Guid1 + "-__READ__0000000001": "x", "_c_" + cmdtest.Guid2 + "-__READ__0000000002": "y", "_c_" + cmdtest.Guid3 + "-__READ__0000000003": "z",
		})
		begun := time.Now()
		p := cmdtest.On(t, w, "revoke", w.Path("l"), "--force-after", each.String())
		require.Equal(t, 0, p.Exit())
		names, _, err := w.Admin().Children(w.Path("l"))
		require.NoError(t, err)
		require.Empty(t, names)
		return time.Since(begun)
	})
}
