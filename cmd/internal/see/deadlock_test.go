//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// embrace has two processes hold a lock each, and wait for the other's in a
// command of its own.
func embrace(t *testing.T, w *zktest.World) (a, b *cmdtest.Process) {
	within := func(outer, inner string) *cmdtest.Process {
		again := strings.Join(append(append([]string{cmdtest.Coorddemo(t)}, cmdtest.Target(w)...), "--session-timeout", cmdtest.Short.String(), "lock", w.Path(inner), "--", "true"), " ")
		p := cmdtest.On(t, w, "lock", w.Path(outer), "--", "sh", "-c", "echo holds; read go; "+again)
		require.Equal(t, "holds", p.Line())
		return p
	}
	a, b = within("a", "b"), within("b", "a")
	for i, p := range []*cmdtest.Process{a, b} {
		_, err := io.WriteString(p.In, "\n")
		require.NoError(t, err)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path([]string{"b", "a"}[i]), 2)
	}
	return a, b
}

func TestADeadlockOfCommandsWithinCommandsIsFound(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		first, second := embrace(t, w)
		p := cmdtest.On(t, w, "graph", cmdtest.Below(w))
		require.Equal(t, term.ExitFailed, p.Exit())
		text := p.Output()
		require.Contains(t, text, "circle 1: these wait for each other, for ever\n")
		require.Contains(t, text, "2 waits, 1 circle; ")
		require.Regexp(t, `(?m) `+w.Path("b")+` +\S+ +`+w.Path("a")+` +".*" +0x\w+ +holds$`, text, "who waits at b runs under a")
		g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Line())
		require.Len(t, g.Circles, 1)
		require.Len(t, g.Circles[0], 4, "each lock has a session")
		require.Empty(t, g.Possible)
		for _, x := range g.Waits {
			require.Len(t, x.Under, 1)
		}
		text = cmdtest.On(t, w, "graph", "--dot", cmdtest.Below(w)).Output()
		require.Equal(t, 4, strings.Count(text, "color=red"))
		require.Equal(t, 2, strings.Count(text, "style=dashed"))

		deadlock := "deadlock: a circle over " + w.Path("a") + ", " + w.Path("b")
		p = cmdtest.On(t, w, "--json", "doctor", cmdtest.Below(w))
		require.Equal(t, term.ExitFailed, p.Exit())
		var wrong []string
		for _, f := range cmdtest.Parse[Diagnosis](t, p.Line()).Findings {
			if f.Wrong {
				require.Contains(t, f.Do, "break one of its locks")
				require.Equal(t, deadlock, f.Found)
				wrong = append(wrong, f.Where)
			}
		}
		require.Equal(t, []string{w.Path("a"), w.Path("b")}, wrong)
		for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line()).Recipes {
			require.Equal(t, []string{deadlock}, r.Odd)
		}
		seen := sightAt(t, cmdtest.Parse[map[string]string](t, cmdtest.On(t, w, "--json", "ui", cmdtest.Below(w)).Line())["url"])
		require.Len(t, seen.Circles, 1)
		require.Empty(t, seen.Possible)

		require.Zero(t, cmdtest.On(t, w, "break", "--yes", w.Path("a")).Exit())
		require.Zero(t, second.Exit(), "it goes on")
		require.NotZero(t, first.Exit(), "its lock was broken")
		require.Zero(t, cmdtest.On(t, w, "graph", cmdtest.Below(w)).Exit())
	})
}

// Of each of two clients, one goroutine holds, and another waits for what the
// other client's first one holds. None waits under a hold.
func TestGoroutinesOfHealthyClientsAreNotCalledWrong(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	clients := []*coord.Client{cmdtest.Open(t, w), cmdtest.Open(t, w)}
	paths := []string{w.Path("a"), w.Path("b")}
	for i, c := range clients {
		cmdtest.Must(cmdtest.Must(lock.New(c, paths[i])).Acquire(t.Context()))
	}
	for i, c := range clients {
		cmdtest.Waits(t, w, paths[1-i], 2, cmdtest.Must(lock.New(c, paths[1-i])).Acquire)
	}
	for _, verb := range []string{"graph", "doctor"} {
		p := cmdtest.On(t, w, verb, cmdtest.Below(w))
		require.Zero(t, p.Exit(), verb)
		text := strings.Join(strings.Fields(p.Output()), " ")
		require.Contains(t, text, "for ever if each is one thread", verb)
		require.Contains(t, text, "their claims do not tell under which holds they were made", verb)
		require.NotContains(t, text, "break", verb)
	}
	for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line()).Recipes {
		require.Empty(t, r.Odd)
	}
}

// Holds are told by the contexts of the calls.
func TestADeadlockWithinOneProgramIsFoundByItsContexts(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	paths := []string{w.Path("a"), w.Path("b")}
	c := cmdtest.Open(t, w)
	var holds []*coord.Hold
	for _, path := range paths {
		holds = append(holds, cmdtest.Must(cmdtest.Must(lock.New(c, path)).Acquire(t.Context())))
	}
	for i, h := range holds {
		cmdtest.Waits(t, w, paths[1-i], 2, func(ctx context.Context) (*coord.Hold, error) {
			return cmdtest.Must(lock.New(c, paths[1-i])).Acquire(h.Context(ctx))
		})
	}
	p := cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w))
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Len(t, cmdtest.Parse[WaitGraph](t, p.Line()).Circles, 1)
}
