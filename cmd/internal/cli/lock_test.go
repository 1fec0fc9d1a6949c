//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Scripts that stand in for commands.
const (
	// busy prints its process id and works on, and ends by TERM.
	busy = `echo $$; while :; do sleep 0.02; done`
	// stubborn ignores TERM.
	stubborn = `trap '' TERM; echo $$; while :; do sleep 0.02; done`
	// untilEOF ends with status 5 at the end of its input.
	untilEOF = `echo $$; cat >/dev/null; exit 5`
)

func sh(path, script string, options ...string) []string {
	return append(append([]string{"lock"}, options...), path, "--", "sh", "-c", script)
}

func TestLockExitsWithTheStatusOfItsCommand(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 76": 76, "kill -TERM $$": 143, "kill -KILL $$": 137} {
			require.Equal(t, want, on(t, w, sh(w.Path("l"), script)...).exit(), script)
		}
		awaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestLockExitsAsAShellDoesWhenTheCommandCannotBeRun(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"/no/such/file": 127, "no-such-command": 127, plain: 126, os.TempDir(): 126} {
		p := on(t, w, "lock", w.Path("l"), "--", command)
		require.Equal(t, want, p.exit(), command)
		require.Contains(t, p.stderr.String(), command)
	}
	exists, _, err := w.Admin().Exists(w.Path("l"))
	require.NoError(t, err)
	require.False(t, exists, "it has stood in the line")
}

func TestLockPassesInputOutputAndArgumentsThrough(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "lock", w.Path("l"), "--", "sh", "-c", `cat; echo "$0 $1 $2" >&2`, "--json", "-x", "two words")
	_, err := io.WriteString(p.in, "from standard input\n")
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.Equal(t, "from standard input", p.output())
	require.Equal(t, "--json -x two words\n", p.stderr.String())
}

func TestLockTellsTheCommandWhatItHolds(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	token := int64(0)
	for range 2 {
		p := on(t, w, sh(w.Path("l"), `echo $COORD_PATH; echo $COORD_NODE; echo $COORD_TOKEN; cat`)...)
		require.Equal(t, w.Path("l"), p.line())
		node := p.line()
		_, stat, err := w.Admin().Exists(node)
		require.NoError(t, err)
		got, err := strconv.ParseInt(p.line(), 10, 64)
		require.NoError(t, err)
		require.Equal(t, stat.Czxid, got)
		require.Greater(t, got, token, "a later holder's token is higher")
		token = got
		require.NoError(t, p.in.Close())
		require.Equal(t, 0, p.exit())
	}
}

func TestLockExcludes(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		first := on(t, w, sh(w.Path("l"), untilEOF)...)
		first.line()
		require.Equal(t, exitBusy, on(t, w, sh(w.Path("l"), "echo never", "--try")...).exit())
		waited := on(t, w, sh(w.Path("l"), "echo never", "--timeout", "0.3")...)
		require.Equal(t, exitTimeout, waited.exit())
		require.Empty(t, waited.output())
		next := on(t, w, sh(w.Path("l"), "echo next", "--timeout", "1h")...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		require.NoError(t, first.in.Close())
		require.Equal(t, 5, first.exit())
		require.Equal(t, "next", next.line())
		require.Equal(t, 0, next.exit())
		awaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestATriedLockThatIsFreeIsTaken(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, 0, on(t, w, sh(w.Path("l"), "exit 0", "--try")...).exit())
}

func TestLockRefusesWhatCannotBeRight(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"lock", "/l"}, "cmd"},
		{[]string{"lock", "/l", "--"}, "no command"},
		{[]string{"lock", "--", "relative", "true"}, "must start with /"},
		{[]string{"lock", "/", "--", "true"}, "root"},
		{[]string{"lock", "--no-such-flag", "/l", "--", "true"}, "no-such-flag"},
		{[]string{"lock", "--timeout", "0", "/l", "--", "true"}, "--timeout"},
		{[]string{"lock", "--timeout", "soon", "/l", "--", "true"}, "soon"},
		{[]string{"lock", "--kill-after=-1s", "/l", "--", "true"}, "--kill-after"},
		{[]string{"lock", "--kill-after", "1900ms", "/l", "--", "true"}, "does not fit"},
		{[]string{"lock", "--on-revoke", "maybe", "/l", "--", "true"}, "on-revoke"},
		{[]string{"lock", "--zk", "127.0.0.1:2181:2181", "/l", "--", "true"}, "2181:2181"},
		{[]string{"lock", "--session-timeout", "-1s", "/l", "--", "true"}, "session"},
		{[]string{"lock", "--connect-timeout", "0", "/l", "--", "true"}, "--connect-timeout"},
		{[]string{"no-such-verb"}, "no-such-verb"},
		{nil, "expected"},
	} {
		p := on(t, w, c.args...)
		require.Equal(t, exitUsage, p.exit(), "%q", c.args)
		require.Contains(t, p.stderr.String(), c.says, "%q", c.args)
	}
	exists, _, err := w.Admin().Exists("/l")
	require.NoError(t, err)
	require.False(t, exists, "something has been done")
	p := start(t, "lock", "/l", "--", "true")
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, p.stderr.String(), "ZK_SERVERS")
}

func TestTheServersMayBeNamedByTheEnvironment(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], "lock", w.Path("l"), "--", "sh", "-c", "exit 3")
	cmd.Env = []string{"ZK_SERVERS=" + w.ConnectString()}
	require.Equal(t, 3, startAs(t, cmd).exit())
}

func TestWithoutAServerLockEndsWithinASecondOfItsTimeOut(t *testing.T) {
	const patience = 500 * time.Millisecond
	for name, address := range map[string]string{"refused": closedPort(t), "silent": silentServer(t)} {
		for _, option := range []string{"--timeout", "--connect-timeout"} {
			for _, try := range []bool{false, true} {
				args := []string{"--zk", address, "lock", option, patience.String(), "/l", "--", "echo", "never"}
				if try {
					args = append(args[:3:3], append([]string{"--try"}, args[3:]...)...)
				}
				inTime(t, patience+time.Second, func() time.Duration {
					begin := time.Now()
					p := start(t, args...)
					require.Equal(t, exitUnavailable, p.exit(), "%s: %q", name, args)
					took := time.Since(begin)
					require.GreaterOrEqual(t, took, patience, name)
					require.Empty(t, p.output())
					require.Contains(t, p.stderr.String(), address)
					return took
				})
			}
		}
	}
}

func TestWhenTheServersHangAWaitingLockEndsWithinASecondOfItsTimeOut(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		holder := on(t, w, sh(w.Path("l"), untilEOF)...)
		holder.line()
		const patience = 4 * time.Second
		waiter := on(t, w, sh(w.Path("l"), "echo never", "--timeout", patience.String())...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		joined := time.Now() // the time-out runs by then
		w.Freeze()
		require.Equal(t, exitTimeout, waiter.exit())
		require.Less(t, time.Since(joined), patience+time.Second)
		require.Empty(t, waiter.output())
		require.Equal(t, exitLost, holder.exit())
		w.Thaw()
	})
}

func TestOneLineHasOneDialect(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	contend(t, w, w.Path("l"), map[string]string{strings.ReplaceAll(guid1, "-", "") + "__lock__0000000000": "a Python program"})
	p := on(t, w, "lock", w.Path("l"), "--", "echo", "never")
	require.Equal(t, exitOwnFault, p.exit())
	require.Contains(t, p.stderr.String(), "dialect")
	require.Empty(t, p.output())
	require.Equal(t, exitBusy, on(t, w, "--dialect", "kazoo", "lock", "--try", w.Path("l"), "--", "echo", "never").exit())
}

func TestLockTellsItsStoryInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, append([]string{"--json"}, sh(w.Path("l"), "exit 3")...)...)
	require.Equal(t, 3, p.exit())
	require.Empty(t, p.output(), "standard output belongs to the command")
	story := parse[map[string]any](t, p.stderr.String())
	require.Equal(t, w.Path("l"), story["path"])
	require.EqualValues(t, 3, story["status"])
	require.Equal(t, false, story["lost"])
	require.Positive(t, story["token"])
}
