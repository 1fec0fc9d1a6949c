//go:build linux || darwin || freebsd || openbsd

package run

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

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestLockExitsWithTheStatusOfItsCommand(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 76": 76, "kill -TERM $$": 143, "kill -KILL $$": 137} {
			require.Equal(t, want, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script)...).Exit(), script)
		}
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestLockExitsAsAShellDoesWhenTheCommandCannotBeRun(t *testing.T) {
	w := cmdtest.World(t)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"/no/such/file": 127, "no-such-command": 127, plain: 126, os.TempDir(): 126} {
		cmdtest.On(t, w, "lock", w.Path("l"), "--", command).Ends(want, command)
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

func TestLockExcludes(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		first := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
		require.Equal(t, term.ExitBusy, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--try")...).Exit())
		waited := cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--timeout", timeout)...)
		})
		require.Empty(t, waited.Output())
		next := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo next", "--timeout", "1h")...).InLine(w, w.Path("l"), 2)
		first.LetGo(5)
		require.Equal(t, "next", next.Line())
		require.Equal(t, 0, next.Exit())
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestATriedLockThatIsFreeIsTaken(t *testing.T) {
	w := cmdtest.World(t)
	require.Equal(t, 0, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--try")...).Exit())
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
			waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--timeout", patience.String())...).InLine(w, w.Path("l"), 2)
			joined := time.Now() // the time-out runs by then
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
	cmdtest.Contend(t, w, w.Path("l"), map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000000": "a Python program"})
	p := cmdtest.On(t, w, "lock", w.Path("l"), "--", "echo", "never")
	p.Ends(term.ExitOwnFault, "dialect")
	require.Empty(t, p.Output())
	require.Equal(t, term.ExitBusy, cmdtest.On(t, w, "--dialect", "kazoo", "lock", "--try", w.Path("l"), "--", "echo", "never").Exit())
}

func TestLockTellsItsStoryInJSON(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), "exit 3")...)...)
	require.Empty(t, p.Gives(3), "standard output belongs to the command")
	story := cmdtest.Parse[map[string]any](t, p.Stderr.String())
	require.Equal(t, w.Path("l"), story["path"])
	require.EqualValues(t, 3, story["status"])
	require.Equal(t, false, story["lost"])
	require.Positive(t, story["token"])
}
