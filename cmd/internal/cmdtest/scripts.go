//go:build linux || darwin || freebsd || openbsd

package cmdtest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/layout"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Scripts that stand in for commands.
const (
	// Busy prints its process id and works on, and ends by TERM.
	Busy = `echo $$; while :; do sleep 0.2; done`
	// Stubborn ignores TERM.
	Stubborn = `trap '' TERM; echo $$; while :; do sleep 0.2; done`
	// UntilEOF ends with status 5 at the end of its input.
	UntilEOF = `echo $$; cat >/dev/null; exit 5`
)

func Sh(path, script string, options ...string) []string {
	return append(append([]string{"lock"}, options...), path, "--", "sh", "-c", script)
}

func Elect(path, script string, options ...string) []string {
	return append(append([]string{"elect"}, options...), path, "--", "sh", "-c", script)
}

// Member starts a process that runs a script in a round of n.
func Member(t *testing.T, w *zktest.World, n int, script string, options ...string) *Process {
	t.Helper()
	return On(t, w, Round(w, n, script, options...)...)
}

func Round(w *zktest.World, n int, script string, options ...string) []string {
	args := append([]string{"doublebarrier", "-n", strconv.Itoa(n)}, options...)
	return append(args, w.Path("b"), "--", "sh", "-c", script)
}

// InBarrier waits until so many processes are there, waiting or inside.
func InBarrier(t *testing.T, w *zktest.World, n int) {
	t.Helper()
	zktest.Eventually(t, Soon, func() bool {
		names, _, err := w.Admin().Children(w.Path("b"))
		members := slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains(layout.DoubleBarrier, name) || doublebarrier.IsVector(name)
		})
		return (err == nil || n == 0) && len(members) == n
	}, "%d are at %s", n, w.Path("b"))
}

// Marked counts the members that wait for the others to finish.
func Marked(t *testing.T, w *zktest.World) (n int) {
	t.Helper()
	names, _, err := w.Admin().Children(w.Path("b"))
	require.NoError(t, err)
	for _, name := range names {
		if _, stat, err := w.Admin().Get(w.Path("b/" + name)); err == nil && stat.EphemeralOwner != 0 && stat.Version > 0 {
			n++
		}
	}
	return n
}

func PutItems(t *testing.T, w *zktest.World, items ...string) {
	t.Helper()
	require.Equal(t, 0, On(t, w, append([]string{"queue", "put", w.Path("q")}, items...)...).Exit())
}

// Receive starts a process that has the first item processed by a script.
func Receive(t *testing.T, w *zktest.World, script string, options ...string) *Process {
	t.Helper()
	return On(t, w, append(append([]string{"queue", "receive"}, options...), w.Path("q"), "--", "sh", "-c", script)...)
}

// Receiving is the command line of Receive.
func Receiving(w *zktest.World, script string) []string {
	return []string{"queue", "receive", w.Path("q"), "--", "sh", "-c", script}
}

// Short is the session timeout of a process that is to lose its session, and
// not before all is ready for that.
const Short = 4 * time.Second

// Mortal starts a process that is to lose its session.
func Mortal(t *testing.T, w *zktest.World, args ...string) *Process {
	t.Helper()
	return Start(t, append(lasting(w, Short), args...)...)
}

const (
	unavailable = 69  // is what the program exits with where no server answers
	timedOut    = 124 // where it waited in vain
)

// AwaitOutcome starts a process again and again until its outcome is as it
// should be. One that got no session in its timeout gets a longer one the next
// time, as on a busy machine.
func AwaitOutcome(t *testing.T, mayBeLate bool, start func(timeout string) *Process, right func(p *Process) bool) {
	t.Helper()
	timeout := 300 * time.Millisecond
	zktest.Eventually(t, 2*Soon, func() bool {
		given := ""
		if mayBeLate {
			given = timeout.String()
		}
		p := start(given)
		if mayBeLate && p.Exit() == unavailable {
			timeout *= 2
			return false
		}
		return right(p)
	}, "a process comes to what it should")
}

// GivesUp has a process wait in vain, with the timeout that it is given.
func GivesUp(t *testing.T, start func(timeout string) *Process) (gone *Process) {
	t.Helper()
	AwaitOutcome(t, true, start, func(p *Process) bool {
		require.Equal(t, timedOut, p.Exit())
		gone = p
		return true
	})
	return gone
}

// Tells waits until the standard error has the text.
func (p *Process) Tells(text string) {
	p.t.Helper()
	zktest.Eventually(p.t, Soon, func() bool { return strings.Contains(p.Stderr.String(), text) }, "it tells %q", text)
}

// Nested is a command line of this program that runs the next one, and so on;
// the innermost runs a command of its own.
func Nested(t *testing.T, w *zktest.World, path string, lines []string, cmd ...string) []string {
	var all []string
	for i, line := range lines {
		if i > 0 {
			all = append(append(all, "--", Coorddemo(t)), Target(w)...)
		}
		all = append(all, strings.Fields(strings.ReplaceAll(line, "PATH", path))...)
	}
	return append(append(all, "--"), cmd...)
}

// Told are the JSON objects in what a process wrote, without the messages for
// people.
func Told(t *testing.T, text string) (objects []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			objects = append(objects, Parse[map[string]any](t, line))
		}
	}
	return objects
}

// TheObject is the only one, which is where it belongs: on standard output,
// unless a command has that.
func TheObject(t *testing.T, p *Process, verb string) map[string]any {
	t.Helper()
	here, there := Told(t, p.Output()), Told(t, p.Stderr.String())
	if strings.Contains(verb, " -- ") {
		here, there = there, here
	}
	require.Empty(t, there, verb)
	require.Len(t, here, 1, verb)
	return here[0]
}
