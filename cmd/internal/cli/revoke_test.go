//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestARevokedCommandEndsByTerm(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), `trap 'exit 9' TERM; `+busy)...)
		p.line()
		r := on(t, w, "revoke", w.Path("l"), "--wait")
		require.Equal(t, 0, r.exit())
		require.Contains(t, r.output(), "asked")
		require.Equal(t, 9, p.exit(), "the lock was not lost, so the command's status counts")
		awaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestARevokedCommandThatIgnoresTermIsKilled(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), stubborn, "--kill-after", "100ms")...)
	p.line()
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l")).exit())
	require.Equal(t, 137, p.exit())
}

func TestRevocationMayBeIgnoredAndForced(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), busy, "--on-revoke", "ignore")...)
	pid := p.number()
	require.Equal(t, exitTimeout, on(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "0.3").exit())
	require.True(t, alive(pid))
	shown := on(t, w, "inspect", w.Path("l"))
	require.Contains(t, shown.output(), "asked to give up")
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--force-after", "0.1").exit())
	require.Equal(t, exitLost, p.exit())
	requireGone(t, pid)
}

func TestARequestThatCameBeforeTheGrantEndsTheCommandSoon(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	first := on(t, w, sh(w.Path("l"), untilEOF)...)
	first.line()
	waiter := on(t, w, sh(w.Path("l"), busy)...)
	awaitContenders(t, w.Admin(), w.Path("l"), 2)
	p := on(t, w, "--json", "inspect", w.Path("l"))
	node := parse[report](t, p.line()).Contenders[1].Node
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--node", path.Base(node)).exit())
	require.NoError(t, first.in.Close())
	require.Equal(t, 5, first.exit(), "the holder was not asked")
	require.Equal(t, 143, waiter.exit())
}

func TestNoHolderToAskIsNoError(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "revoke", w.Path("l"), "--wait")
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.output(), "nobody holds")
	p = on(t, w, "--json", "revoke", w.Path("l"))
	require.Equal(t, 0, p.exit())
	require.JSONEq(t, `{"path":"`+w.Path("l")+`","asked":[],"gone":false}`, p.line())
	require.Equal(t, exitFailed, on(t, w, "revoke", w.Path("l"), "--node", "other").exit())
}

func TestRevokeRefusesImpossibleTimes(t *testing.T) {
	for _, option := range []string{"--force-after=0", "--timeout=-1s"} {
		require.Equal(t, exitUsage, start(t, "revoke", "/l", option).exit(), option)
	}
}

func TestACandidateThatCannotBeAskedIsAFailure(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	leader := on(t, w, "elect", w.Path("e"), "--", "sh", "-c", untilEOF)
	leader.line()
	waiter := on(t, w, "elect", w.Path("e"), "--", "true")
	awaitContenders(t, w.Admin(), w.Path("e"), 2)
	node := parse[report](t, on(t, w, "--json", "inspect", w.Path("e")).line()).Contenders[1].Node
	asked := on(t, w, "--json", "revoke", "--node", node, w.Path("e"))
	require.Equal(t, exitFailed, asked.exit())
	require.EqualValues(t, exitFailed, parse[map[string]any](t, asked.line())["status"])
	for _, verb := range [][]string{{"revoke"}, {"break", "--yes"}} {
		none := on(t, w, append(verb, "--node", "nobody", w.Path("e"))...)
		require.Equal(t, exitFailed, none.exit(), verb)
		require.Contains(t, none.stderr.String(), "there is no contender nobody", verb)
	}
	require.NoError(t, leader.in.Close())
	require.Equal(t, 5, leader.exit())
	require.Zero(t, waiter.exit())
}

// Holders are waited for at the same time, not one after the other.
func TestAllHoldersHaveTheSameTimeToGiveUp(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	const each = time.Second
	inTime(t, 3*each, func() time.Duration {
		contend(t, w, w.Path("l"), map[string]string{
			"_c_" + guid1 + "-__READ__0000000001": "x", "_c_" + guid2 + "-__READ__0000000002": "y", "_c_" + guid3 + "-__READ__0000000003": "z",
		})
		begun := time.Now()
		p := on(t, w, "revoke", w.Path("l"), "--force-after", each.String())
		require.Equal(t, 0, p.exit())
		names, _, err := w.Admin().Children(w.Path("l"))
		require.NoError(t, err)
		require.Empty(t, names)
		return time.Since(begun)
	})
}
