//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// patiently starts a process whose session lasts long enough for a busy
// machine.
func patiently(t *testing.T, w *zktest.World, args ...string) *process {
	t.Helper()
	return lasting(t, w, 20*time.Second, args...)
}

// lasting starts a process with this session time-out.
func lasting(t *testing.T, w *zktest.World, session time.Duration, args ...string) *process {
	t.Helper()
	w.SetTimeout(session)
	return start(t, append([]string{"--zk", w.ConnectString(), "--session-timeout", session.String()}, args...)...)
}

// awaitOutcome starts a process again and again until what it came to is as it
// should be. One that got no session in its time-out gets a longer one the next
// time, as on a busy machine.
func awaitOutcome(t *testing.T, mayBeLate bool, start func(timeout string) *process, right func(p *process) bool) {
	t.Helper()
	timeout := 300 * time.Millisecond
	zktest.Eventually(t, 2*soon, func() bool {
		given := ""
		if mayBeLate {
			given = timeout.String()
		}
		p := start(given)
		if mayBeLate && p.exit() == exitUnavailable {
			timeout *= 2
			return false
		}
		return right(p)
	}, "a process comes to what it should")
}

// inVain runs a command line that comes to nothing until it can say all of
// this: on a busy machine the one look may take too long. It returns the JSON
// object.
func inVain(t *testing.T, w *zktest.World, status int, says []string, args ...string) (object map[string]any) {
	t.Helper()
	zktest.Eventually(t, soon, func() bool {
		p := patiently(t, w, append([]string{"--json"}, args...)...)
		if p.exit() == exitUnavailable { // a busy machine, and a short time-out
			return false
		}
		require.Equal(t, status, p.exit(), "%q: %s", args, p.stderr.String())
		objects := told(t, p.stderr.String())
		require.Len(t, objects, 1)
		object = objects[0]
		require.EqualValues(t, status, object["status"])
		_, message, _ := strings.Cut(p.stderr.String(), "\n")
		return !slices.ContainsFunc(says, func(text string) bool {
			return !strings.Contains(object["error"].(string), text) || !strings.Contains(message, text)
		})
	}, "%q says %q", args, says)
	return object
}

func owners(all any) (names []string) {
	for _, one := range all.([]any) {
		names = append(names, one.(map[string]any)["owner"].(string))
	}
	return names
}

func TestAWaitInVainSaysWhoHolds(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for kind, verb := range map[string]string{
			"plain": "lock", "try": "lock", "shared": "lock --shared", "slots": "lock --slots 1", "election": "elect",
			"kazoo": "--dialect kazoo lock --slots 1",
		} {
			path := w.Path(kind)
			script := func(script string) []string { return append(strings.Fields(verb), path, "--", "sh", "-c", script) }
			held := script(untilEOF)
			if kind == "shared" {
				held = sh(path, untilEOF)
			}
			holder := patiently(t, w, held...)
			holder.line()
			waiter := patiently(t, w, script("echo never")...)
			lines := map[string]string{"slots": path + "/locks", "kazoo": path + "-__lock__"}
			line, special := lines[kind]
			if special {
				awaitContenders(t, w.Admin(), line, 1)
			} else {
				awaitContenders(t, w.Admin(), path, 2)
			}
			status, way := exitTimeout, []string{"--timeout", "0.3"}
			if kind == "try" || kind == "slots" {
				status, way = exitBusy, []string{"--try"}
			}
			args := append(append(strings.Fields(verb), way...), path, "--", "true")
			object := inVain(t, w, status, []string{`held by "sh `, "; 1 other waits"}, args...)
			require.Len(t, owners(object["holders"]), 1, kind)
			require.Contains(t, owners(object["holders"])[0], "sh ", kind)
			require.EqualValues(t, 1, object["holding"], kind)
			require.EqualValues(t, 1, object["waiting"], kind)
			require.NotContains(t, object, "place", kind)
			waiter.signal(15)
			require.Equal(t, 143, waiter.exit())
			require.NoError(t, holder.in.Close())
			require.Equal(t, 5, holder.exit())
		}
	})
}

func TestARoundThatDoesNotBeginSaysHowManyCame(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		first := member(t, w, 3, "echo in; "+untilEOF)
		inBarrier(t, w, 1)
		round := func(options ...string) []string {
			return append(append([]string{"doublebarrier", "-n", "3"}, options...), w.Path("b"), "--", "true")
		}
		object := inVain(t, w, exitTimeout, []string{"not all 3 came", `2 of 3 have come, first "sh `}, round("--timeout", "0.3")...)
		require.EqualValues(t, 2, object["came"])
		require.EqualValues(t, 3, object["members"])
		require.Contains(t, owners(object["there"])[0], "sh ")
		second, third := member(t, w, 3, untilEOF), member(t, w, 3, untilEOF)
		third.line()
		object = inVain(t, w, exitBusy, []string{"--next", "round 1 is under way: 3 of its 3 members are there, first"}, round()...)
		require.EqualValues(t, 1, object["round"])
		for _, p := range []*process{first, second, third} {
			require.NoError(t, p.in.Close())
			require.Equal(t, 5, p.exit())
		}
	})
}

func TestAnItemThatDoesNotComeSaysWhatIsInTheQueueAndWithWhom(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		worker := patiently(t, w, "queue", "receive", w.Path("q"), "--", "sh", "-c", "echo has; cat >/dev/null; "+busy)
		worker.line()
		object := inVain(t, w, exitTimeout, []string{"no item", "1 item, 1 in hand, held by \"sh "},
			"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "true")
		require.EqualValues(t, 1, object["items"])
		require.EqualValues(t, 1, object["in_hand"])
		require.Len(t, object["holders"], 1)
		require.Equal(t, 0, patiently(t, w, "revoke", w.Path("q")).exit())
		worker.exit()
	})
}

// tells waits until the standard error has the text.
func (p *process) tells(text string) {
	p.t.Helper()
	zktest.Eventually(p.t, soon, func() bool { return strings.Contains(p.stderr.String(), text) }, "it tells %q", text)
}

func TestVerboseTellsThePlaceInTheLineAndTheHold(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var all []*process
		for i, verb := range []string{"lock", "lock -v", "lock --verbose --timeout 1h"} {
			all = append(all, patiently(t, w, append(strings.Fields(verb), w.Path("l"), "--", "sh", "-c", untilEOF)...))
			awaitContenders(t, w.Admin(), w.Path("l"), i+1)
		}
		all[0].line()
		all[1].tells("waiting for " + w.Path("l") + `, held by "sh `)
		all[1].tells("; place 2 in the line")
		all[2].tells("; place 3 in the line")
		require.NoError(t, all[0].in.Close())
		require.Equal(t, 5, all[0].exit())
		all[1].line()
		all[1].tells("holds " + w.Path("l") + " after ")
		all[2].tells("; place 2 in the line")
		for _, p := range all[1:] {
			require.NoError(t, p.in.Close())
			require.Equal(t, 5, p.exit())
		}
		require.Empty(t, all[0].stderr.String(), "without --verbose")
	})
}

func TestVerboseTellsOfARoundAndOfAQueue(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	first := member(t, w, 2, "true", "-v")
	first.tells("waiting for " + w.Path("b") + ", 1 of 2 have come")
	second := member(t, w, 2, untilEOF)
	first.tells("holds the place in round 1")
	first.tells("waiting for " + w.Path("b") + ", round 1 is under way: 2 of its 2 members are there")
	require.NoError(t, second.in.Close())
	require.Equal(t, 5, second.exit())
	require.Equal(t, exitMissing, first.exit())
	worker := patiently(t, w, "queue", "receive", "-v", w.Path("q"), "--", "cat")
	worker.tells("waiting for " + w.Path("q") + ", 0 items, 0 in hand")
	putItems(t, w, "item")
	require.Equal(t, 0, worker.exit())
	require.Contains(t, worker.stderr.String(), "holds the item after ")
}

func TestVerboseInJSONIsObjects(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := patiently(t, w, sh(w.Path("l"), untilEOF)...)
	holder.line()
	p := patiently(t, w, append([]string{"--json"}, sh(w.Path("l"), "exit 3", "-v")...)...)
	p.tells(`"event":"waiting"`)
	require.NoError(t, holder.in.Close())
	require.Equal(t, 3, p.exit())
	events := map[any]map[string]any{}
	for line := range strings.Lines(p.stderr.String()) {
		object := parse[map[string]any](t, line) // nothing else is there
		require.Equal(t, w.Path("l"), object["path"])
		events[object["event"]] = object
	}
	require.Contains(t, events["connected"], "session")
	require.EqualValues(t, 2, events["waiting"]["place"])
	require.Len(t, events["waiting"]["holders"], 1)
	require.NotEmpty(t, events["holds"]["node"])
	require.EqualValues(t, 3, events[nil]["status"], "the last one")
	require.EqualValues(t, 0, events[nil]["outages"])
}

func TestVerboseTellsOfOutages(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		p := patiently(t, w, append([]string{"--json"}, sh(w.Path("l"), untilEOF, "--verbose")...)...)
		p.line()
		w.Crash()
		p.tells(`"connection lost"`)
		w.Recover()
		p.tells(`"after":`)
		require.NoError(t, p.in.Close())
		p.exit() // it may have been lost, if the machine is busy
		objects := told(t, p.stderr.String())
		require.Positive(t, objects[len(objects)-1]["outages"])
	})
}

func TestVerboseTellsWhenTheServersDoNotConfirmAHoldAndWhenTheyDoAgain(t *testing.T) {
	var text bytes.Buffer
	n := newNarrator(&streams{err: &text}, &job{Verbose: true, Paths: nodePaths{"/l"}})
	const session, killAfter = 12 * time.Second, 2 * time.Second
	for _, left := range []time.Duration{9, 5, 3, 2, 0, -1, 4, 8} {
		n.window(left*time.Second-1, killAfter, session)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "do not confirm that /l is held: unless they do, the command is told to end in 1s")
	require.Contains(t, lines[1], "confirm again that /l is held")
}

func TestAHoldThatIsNotConfirmedIsToldOfBeforeItIsLost(t *testing.T) {
	w := zktest.NewPrivate(t, zktest.Embedded)
	zktest.Eventually(t, soon, func() bool { // a busy machine may miss the moment
		p := on(t, w, sh(w.Path("l"), busy, "-v")...)
		p.line()
		w.Freeze()
		require.Equal(t, exitLost, p.exit())
		w.Thaw()
		return strings.Contains(p.stderr.String(), "the servers do not confirm that "+w.Path("l")+" is held: unless they do")
	}, "it is told of")
}

func TestVerboseGoesWithACommand(t *testing.T) {
	for _, question := range []string{"--who", "--observe"} {
		p := start(t, "--zk", "127.0.0.1:1", "elect", question, "-v", "/e")
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), "--verbose")
	}
}
