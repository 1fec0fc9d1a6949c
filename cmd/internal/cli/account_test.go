//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// told are the JSON objects in what a process wrote, without the messages for
// people.
func told(t *testing.T, text string) (objects []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			objects = append(objects, parse[map[string]any](t, line))
		}
	}
	return objects
}

// theObject is the only one, which is where it belongs: on standard output,
// unless a command has that.
func theObject(t *testing.T, p *process, verb string) map[string]any {
	t.Helper()
	here, there := told(t, p.output()), told(t, p.stderr.String())
	if strings.Contains(verb, " -- ") {
		here, there = there, here
	}
	require.Empty(t, there, verb)
	require.Len(t, here, 1, verb)
	return here[0]
}

func TestEveryVerbTellsInJSONThatNoServerAnswers(t *testing.T) {
	addr := silentServer(t)
	for _, verb := range []string{
		"ls /l", "graph /l", "exporter /l", "ui /l", "inspect /l", "top /l", "revoke /l", "break --yes /l",
		"queue put /l x", "queue take /l", "queue peek /l", "queue len /l", "queue receive /l -- true",
		"elect --who /l", "elect --observe /l", "elect /l -- true", "lock /l -- true", "lock --slots 2 /l -- true",
		"barrier set /l", "barrier remove /l", "barrier wait /l", "doublebarrier -n 2 /l -- true",
		"demo stock", "demo batch", "demo election", "demo queue",
	} {
		p := start(t, append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)...)
		require.Equal(t, exitUnavailable, p.exit(), verb)
		object := theObject(t, p, verb)
		require.EqualValues(t, exitUnavailable, object["status"], verb)
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
	for _, verb := range []string{
		"lokc /l", "inspect", "inspect l", "queue put --priority x /q y", "lock --slots 0 /l -- true", "demo stock --kill -1",
		"server --addr nowhere",
	} {
		p := start(t, append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb)...)...)
		require.Equal(t, exitUsage, p.exit(), verb)
		object := theObject(t, p, verb)
		require.EqualValues(t, exitUsage, object["status"], verb)
		require.NotEmpty(t, object["error"], verb)
	}
	p := start(t, "--json", "--zk", "127.0.0.1:1", "exporter", "--listen", "nowhere", "/a", "/b")
	require.NotZero(t, p.exit())
	require.NotContains(t, theObject(t, p, "exporter"), "path", "there are two")
	require.False(t, asksForJSON(strings.Fields("lock /l -- tool --json")), "that is the command's")
}

func TestWhatFailsHalfWayIsToldInOneObject(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := start(t, append(target(w), "--json", "queue", "put", w.Path("q"), "one", "two", strings.Repeat("x", 100))...)
	require.Zero(t, p.exit())
	private(t, w, "someone", "secret")
	p = start(t, append(target(w), "--json", "queue", "put", w.Path("private/q"), "one")...)
	require.Equal(t, exitFailed, p.exit())
	object := theObject(t, p, "queue put")
	require.EqualValues(t, 0, object["put"])
	require.EqualValues(t, exitFailed, object["status"])
	require.Contains(t, object["error"], "not permitted")

	taken := start(t, "--json", "server", "--addr", strings.Split(w.ConnectString(), "/")[0])
	require.Equal(t, exitFailed, taken.exit())
	object = theObject(t, taken, "server")
	require.Contains(t, object["error"], "--addr")
}
