//go:build linux || darwin || freebsd || openbsd

package run

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// inVain runs a failing command line until it can say all of this: on a busy
// machine the one look may take too long. It returns the JSON object.
func inVain(t *testing.T, w *zktest.World, status int, says []string, args ...string) (object map[string]any) {
	t.Helper()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		p := cmdtest.On(t, w, append([]string{"--json"}, args...)...)
		if p.Exit() == term.ExitUnavailable { // a busy machine, and a short timeout
			return false
		}
		require.Equal(t, status, p.Exit(), "%q: %s", args, p.Stderr.String())
		objects := cmdtest.Told(t, p.Stderr.String())
		require.Len(t, objects, 1)
		object = objects[0]
		require.EqualValues(t, status, object["status"])
		_, message, _ := strings.Cut(p.Stderr.String(), "\n")
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
	w := cmdtest.World(t)
	for kind, verb := range map[string]string{
		"plain": "lock", "try": "lock", "shared": "lock --shared", "slots": "lock --slots 1", "election": "elect",
		"kazoo": "--dialect kazoo lock --slots 1",
	} {
		path := w.Path(kind)
		script := func(script string) []string { return append(strings.Fields(verb), path, "--", "sh", "-c", script) }
		held := script(cmdtest.UntilEOF)
		if kind == "shared" {
			held = cmdtest.Sh(path, cmdtest.UntilEOF)
		}
		holder := cmdtest.On(t, w, held...).Begun()
		waiter := cmdtest.On(t, w, script("echo never")...)
		lines := map[string]string{"slots": path + "/locks", "kazoo": path + "-__lock__"}
		line, special := lines[kind]
		if special {
			cmdtest.AwaitContenders(t, w.Admin(), line, 1)
		} else {
			cmdtest.AwaitContenders(t, w.Admin(), path, 2)
		}
		status, way := term.ExitTimeout, []string{"--timeout", "0.3"}
		if kind == "try" || kind == "slots" {
			status, way = term.ExitBusy, []string{"--try"}
		}
		args := append(append(strings.Fields(verb), way...), path, "--", "true")
		object := inVain(t, w, status, []string{`held by "sh `, `", there for `, "; 1 other waits"}, args...)
		require.Len(t, owners(object["holders"]), 1, kind)
		require.Contains(t, owners(object["holders"])[0], "sh ", kind)
		require.Subset(t, object, map[string]any{"holding": 1.0, "waiting": 1.0}, kind)
		require.NotContains(t, object, "place", kind)
		waiter.EndsBy(15, 143)
		holder.LetGo(5)
	}
}

func TestARoundThatDoesNotBeginSaysHowManyCame(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.Member(t, w, 3, "echo in; "+cmdtest.UntilEOF)
	cmdtest.InBarrier(t, w, 1)
	round := func(options ...string) []string {
		return append(append([]string{"doublebarrier", "-n", "3"}, options...), w.Path("b"), "--", "true")
	}
	object := inVain(t, w, term.ExitTimeout, []string{"not all 3 came", `2 of 3 have come, first "sh `},
		round("--timeout", "0.3")...)
	require.Subset(t, object, map[string]any{"came": 2.0, "members": 3.0})
	require.Contains(t, owners(object["there"])[0], "sh ")
	second, third := cmdtest.Member(t, w, 3, cmdtest.UntilEOF), cmdtest.Member(t, w, 3, cmdtest.UntilEOF)
	third.Line()
	object = inVain(t, w, term.ExitBusy,
		[]string{"--next", "round 1 is under way: 3 of its 3 members are there, first"}, round()...)
	require.EqualValues(t, 1, object["round"])
	for _, p := range []*cmdtest.Process{first, second, third} {
		p.LetGo(5)
	}
}

func TestAnItemThatDoesNotComeSaysWhatIsInTheQueueAndWithWhom(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	worker := cmdtest.On(t, w, "queue", "receive", w.Path("q"), "--", "sh", "-c",
		"echo has; cat >/dev/null; "+cmdtest.Busy).Begun()
	object := inVain(t, w, term.ExitTimeout, []string{"no item", "1 item, 1 in hand, held by \"sh "},
		"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "true")
	require.Subset(t, object, map[string]any{"items": 1.0, "in_hand": 1.0})
	require.Len(t, object["holders"], 1)
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	worker.Exit()
}

func TestVerboseTellsThePlaceInTheLineAndTheHold(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		var all []*cmdtest.Process
		for i, verb := range []string{"lock", "lock -v", "lock --verbose --timeout 1h"} {
			all = append(all, cmdtest.On(t, w, append(strings.Fields(verb), w.Path("l"), "--", "sh", "-c", cmdtest.UntilEOF)...))
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), i+1)
		}
		all[0].Line()
		all[1].Tells("waiting for " + w.Path("l") + `, held by "sh `)
		all[1].Tells("; place 2 in the line")
		all[2].Tells("; place 3 in the line")
		require.NoError(t, all[0].In.Close())
		require.Equal(t, 5, all[0].Exit())
		all[1].Line()
		all[1].Tells("holds " + w.Path("l") + " after ")
		all[2].Tells("; place 2 in the line")
		for _, p := range all[1:] {
			p.LetGo(5)
		}
		require.Empty(t, all[0].Stderr.String(), "without --verbose")
	})
}

func TestVerboseTellsOfARoundAndOfAQueue(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.Member(t, w, 2, "true", "-v")
	first.Tells("waiting for " + w.Path("b") + ", 1 of 2 have come")
	second := cmdtest.Member(t, w, 2, cmdtest.UntilEOF)
	first.Tells("holds the place in round 1")
	first.Tells("waiting for " + w.Path("b") + ", round 1 is under way: 2 of its 2 members are there")
	second.LetGo(5)
	require.Equal(t, exitMissing, first.Exit())
	worker := cmdtest.On(t, w, "queue", "receive", "-v", w.Path("q"), "--", "cat")
	worker.Tells("waiting for " + w.Path("q") + ", 0 items, 0 in hand")
	cmdtest.PutItems(t, w, "item")
	worker.Ends(0, "holds the item after ")
}

func TestVerboseInJSONIsObjects(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	p := cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), "exit 3", "-v")...)...)
	p.Tells(`"event":"waiting"`)
	require.NoError(t, holder.In.Close())
	require.Equal(t, 3, p.Exit())
	events := map[any]map[string]any{}
	for line := range strings.Lines(p.Stderr.String()) {
		object := cmdtest.Parse[map[string]any](t, line) // nothing else is there
		require.Equal(t, w.Path("l"), object["path"])
		events[object["event"]] = object
	}
	require.Contains(t, events["connected"], "session")
	require.EqualValues(t, 2, events["waiting"]["place"])
	require.Len(t, events["waiting"]["holders"], 1)
	require.NotEmpty(t, events["holds"]["node"])
	require.Subset(t, events[nil], map[string]any{"status": 3.0, "outages": 0.0}, "the last one")
}

func TestVerboseTellsOfOutages(t *testing.T) {
	cmdtest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--verbose")...)...).
			Begun()
		w.Crash()
		p.Tells(`"connection lost"`)
		w.Recover()
		p.Tells(`"after":`)
		require.NoError(t, p.In.Close())
		p.Exit() // it may have been lost, if the machine is busy
		objects := cmdtest.Told(t, p.Stderr.String())
		require.Positive(t, objects[len(objects)-1]["outages"])
	})
}

func TestVerboseTellsWhenTheServersDoNotConfirmAHoldAndWhenTheyDoAgain(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	n := newNarrator(&term.Streams{Err: &text}, &job{verbosely: verbosely{Verbose: true}, Paths: conn.NodePaths{"/l"}})
	const session, killAfter = 12 * time.Second, 2 * time.Second
	for _, left := range []time.Duration{9, 5, 3, 2, 0, -1, 4, 8} {
		n.window(left*time.Second-1, killAfter, session)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "do not confirm that /l is held: unless they do, the command must end in 1s")
	require.Contains(t, lines[1], "confirm again that /l is held")
}

func TestAHoldThatIsNotConfirmedIsToldOfBeforeItIsLost(t *testing.T) {
	t.Parallel()
	w := zktest.NewPrivate(t, zktest.Embedded)
	zktest.Eventually(t, cmdtest.Soon, func() bool { // a busy machine may miss the moment
		p := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "-v")...).Begun()
		w.Freeze()
		require.Equal(t, term.ExitLost, p.Exit())
		w.Thaw()
		return strings.Contains(p.Stderr.String(), "the servers do not confirm that "+w.Path("l")+" is held: unless they do")
	}, "it is told of")
}

// A look may return when the wait is over: nothing waits for it.
func TestALookThatReturnsLateTellsNothing(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	n := newNarrator(&term.Streams{Err: &text}, &job{verbosely: verbosely{Verbose: true}, Paths: conn.NodePaths{"/l"}})
	looking, late, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	waiting, over := n.wait(context.Background())
	go func() {
		defer close(done)
		n.accompany(waiting, nil, func(context.Context, *coord.Client, look.Names) (look.Situation, error) {
			close(looking)
			<-late
			return look.Situation{Text: "held by another", Key: "x"}, nil
		})
	}()
	n.joined <- struct{}{}
	<-looking
	over()
	n.tell("holds", nil, "holds it")
	close(late)
	<-done
	require.Equal(t, term.Program+": holds it\n", text.String())
}
