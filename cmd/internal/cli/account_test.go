//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

func TestEveryVerbTellsInJSONThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	addr := cmdtest.SilentServer(t)
	for _, verb := range []string{
		"ls /l", "graph /l", "exporter /l", "ui /l", "inspect /l", "top /l", "revoke /l", "break --yes /l",
		"queue put /l x", "queue take /l", "queue peek /l", "queue len /l", "queue receive /l -- true",
		"elect --who /l", "elect --observe /l", "elect /l -- true", "lock /l -- true", "lock --slots 2 /l -- true",
		"barrier set /l", "barrier remove /l", "barrier wait /l", "doublebarrier -n 2 /l -- true",
		"demo stock", "demo batch", "demo election", "demo queue",
	} {
		p := cmdtest.Start(t, append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)...)
		require.Equal(t, term.ExitUnavailable, p.Exit(), verb)
		object := cmdtest.TheObject(t, p, verb)
		require.EqualValues(t, term.ExitUnavailable, object["status"], verb)
		require.Contains(t, object["error"], "no session", verb)
		if name, isDemo := strings.CutPrefix(verb, "demo "); isDemo {
			require.Equal(t, name, object["demo"])
			require.Equal(t, false, object["ok"], verb)
			continue
		}
		if strings.HasPrefix(verb, "exporter ") { // which has several
			require.NotContains(t, object, "path")
			continue
		}
		require.Equal(t, "/l", object["path"], verb)
	}
}

func TestACommandLineThatIsWrongIsToldInJSONToo(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{
		"lokc /l", "inspect", "inspect l", "queue put --priority x /q y", "lock --slots 0 /l -- true", "demo stock --kill -1",
		"server --addr nowhere",
	} {
		p := cmdtest.Start(t, append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb)...)...)
		require.Equal(t, term.ExitUsage, p.Exit(), verb)
		object := cmdtest.TheObject(t, p, verb)
		require.EqualValues(t, term.ExitUsage, object["status"], verb)
		require.NotEmpty(t, object["error"], verb)
	}
	p := cmdtest.Start(t, "--json", "--zk", "127.0.0.1:1", "exporter", "--listen", "nowhere", "/a", "/b")
	require.NotZero(t, p.Exit())
	require.NotContains(t, cmdtest.TheObject(t, p, "exporter"), "path", "there are two")
	require.False(t, asksForJSON(strings.Fields("lock /l -- tool --json")), "that is the command's")
}

func TestWhatFailsHalfWayIsToldInOneObject(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Start(t, append(cmdtest.Target(w), "--json", "queue", "put", w.Path("q"), "one", "two", strings.Repeat("x", 100))...)
	require.Zero(t, p.Exit())
	cmdtest.Private(t, w, "someone", "secret")
	p = cmdtest.Start(t, append(cmdtest.Target(w), "--json", "queue", "put", w.Path("private/q"), "one")...)
	require.Equal(t, term.ExitFailed, p.Exit())
	object := cmdtest.TheObject(t, p, "queue put")
	require.EqualValues(t, 0, object["put"])
	require.EqualValues(t, term.ExitFailed, object["status"])
	require.Contains(t, object["error"], "not permitted")

	taken := cmdtest.Start(t, "--json", "server", "--addr", strings.Split(w.ConnectString(), "/")[0])
	require.Equal(t, term.ExitFailed, taken.Exit())
	object = cmdtest.TheObject(t, taken, "server")
	require.Contains(t, object["error"], "--addr")
}

func TestTheObjectOfAnElectionThatFailsLeavesTheOutputToTheCommand(t *testing.T) {
	t.Parallel()
	addr := cmdtest.SilentServer(t)
	for verb, ofCommand := range map[string]bool{
		"elect -c true /e": true, "elect -vc true /e": true, "elect -vctrue /e": true, "elect --command true /e": true,
		"elect /e true": true, "elect /e -- true": true, "elect -- /e true": true,
		"elect --who /e": false, "elect --observe -- /e": false,
		// These cannot be right.
		"elect -vc true --timeout x /e": true, "elect -vc true e": true, "elect --who --again /e": false,
		"elect --who -v /e": false, "elect --connect-timeout 0 --who /e": false,
	} {
		p := cmdtest.Start(t, append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)...)
		require.Contains(t, []int{term.ExitUnavailable, term.ExitUsage}, p.Exit(), verb)
		place := ""
		if ofCommand {
			place = " -- "
		}
		require.EqualValues(t, p.Exit(), cmdtest.TheObject(t, p, place)["status"], verb)
	}
}

func TestTheServerServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
		address := server.Line()
		require.Equal(t, 3, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "sh", "-c", "exit 3").Exit())
		server.Signal(s)
		require.Empty(t, server.Gives(0))
	}
}

func TestTheServerTellsItsAddressInJSON(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "--json", "server", "--addr", "127.0.0.1:0")
	address := cmdtest.Parse[map[string]string](t, server.Line())["connect"]
	require.Equal(t, 0, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "true").Exit())
	server.EndsBy(syscall.SIGINT, 0)
}

func TestTheServersTickBoundsItsSessions(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
	// 20 ticks at most, so that two seconds do not fit into a third of it.
	cmdtest.Start(t, "--zk", server.Line(), "--session-timeout", "1h", "lock", "--kill-after", "2s", "/l", "--", "true").Ends(term.ExitUsage, "2s", "does not fit")
	server.EndsBy(syscall.SIGINT, 0)
}

func TestAServerThatCannotListenSaysWhy(t *testing.T) {
	t.Parallel()
	taken := cmdtest.SilentServer(t)
	cmdtest.Start(t, "server", "--addr", taken).Ends(term.ExitFailed, taken)
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "server", "--tick", "0").Exit())
}
