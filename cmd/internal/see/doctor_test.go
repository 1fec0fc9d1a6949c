//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"io"
	"net"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheDoctorFindsNothing(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.EveryRecipe(t, w)
		p := cmdtest.On(t, w, "doctor", cmdtest.Below(w))
		text := p.Output()
		require.Equal(t, 0, p.Exit(), text)
		require.Regexp(t, `(?m)^ok +\S+ +(standalone|leader|follower), a write takes `, text)
		require.Regexp(t, `(?m)^ok +\S+ +session timeout 20s`, text)
		require.Regexp(t, `(?m)^ok +/ +the servers' clock is -?\d+m?s from this machine's$`, text)
		require.Regexp(t, `(?m)^ok +\S+ +7 recipes, 0 circles$`, text)
		require.Contains(t, text, "0 things are wrong; ")
		require.NotContains(t, text, "not known", "all servers tell who is connected")
		names, _, err := w.Admin().Children("/")
		require.NoError(t, err)
		for _, name := range names {
			require.NotContains(t, name, "doctor", "its own node is left")
		}
	})
}

func TestTheDoctorSeesServersThatAreNotThere(t *testing.T) {
	w := cmdtest.World(t)
	gone := cmdtest.ClosedPort(t)
	p := cmdtest.Start(t, "--zk", w.ConnectString()+","+gone, "--connect-timeout", "5s", "doctor", cmdtest.Below(w))
	text := p.Gives(term.ExitFailed)
	require.Regexp(t, `(?m)^WRONG +`+gone+` +\S`, text)
	require.Contains(t, text, "which sessions are connected is not known: "+gone)

	p = cmdtest.Start(t, "--zk", gone, "--connect-timeout", "500ms", "--json", "doctor")
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Equal(t, 2, cmdtest.Parse[Diagnosis](t, p.Line()).Wrong, "the server, and no session at all")

	require.Contains(t, cmdtest.Start(t, "--zk", w.ConnectString()+"/nowhere", "doctor").Gives(term.ExitFailed),
		"there is no chroot /nowhere")
}

func TestOneServerUnderTwoNamesIsNotSeveralEnsembles(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		addresses, _ := conn.AddressesOf(w.ConnectString())
		_, port, err := net.SplitHostPort(addresses[0])
		require.NoError(t, err)
		require.Zero(t, cmdtest.On(t, w, "lock", w.Path("l"), "--", "true").Exit()) // below which it looks
		p := cmdtest.Start(t, "--zk", w.ConnectString()+",localhost:"+port, "doctor", cmdtest.Below(w))
		require.NotContains(t, p.Gives(0), "several ensembles")

		p = cmdtest.Start(t, "--zk", w.ConnectString()+","+cmdtest.Start(t, "server", "--addr", "127.0.0.1:0").Line(),
			"doctor", cmdtest.Below(w))
		require.Contains(t, p.Gives(term.ExitFailed), "several ensembles")
	})
}

// One server that does not answer takes no time from the others.
func TestTheDoctorLooksAtEachServerByItself(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t)+","+w.ConnectString(), "--connect-timeout", "1s", "--json",
		"doctor", cmdtest.Below(w))
	for _, f := range cmdtest.Parse[Diagnosis](t, p.Line()).Findings {
		require.False(t, f.Wrong && f.Where == w.ConnectString(), f.Found)
	}
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "--zk", "a b", "doctor").Exit())
	require.Equal(t, term.ExitUsage,
		cmdtest.Start(t, "--zk", w.ConnectString()+"/none", "--require-chroot", "doctor").Exit())
}

// embrace has two processes hold a lock each, and each command wait for the
// other's lock.
func embrace(t *testing.T, w *zktest.World) (a, b *cmdtest.Process) {
	within := func(outer, inner string) *cmdtest.Process {
		again := strings.Join(
			append(append([]string{cmdtest.Coorddemo(t)}, cmdtest.Target(w)...), "--session-timeout", cmdtest.Short.String(),
				"lock", w.Path(inner), "--", "true"), " ")
		p := cmdtest.On(t, w, "lock", w.Path(outer), "--", "sh", "-c", "echo holds; read go; "+again)
		require.Equal(t, "holds", p.Line())
		return p
	}
	a, b = within("a", "b"), within("b", "a")
	for i, p := range []*cmdtest.Process{a, b} {
		cmdtest.Must(io.WriteString(p.In, "\n"))
		cmdtest.AwaitContenders(t, w.Admin(), w.Path([]string{"b", "a"}[i]), 2)
	}
	return a, b
}

func TestADeadlockOfCommandsWithinCommandsIsFound(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		first, second := embrace(t, w)
		p := cmdtest.On(t, w, "graph", cmdtest.Below(w))
		text := p.Gives(term.ExitFailed)
		require.Contains(t, text, "circle 1: these wait for each other, for ever\n")
		require.Contains(t, text, "2 waits, 1 circle; ")
		require.Regexp(t, `(?m) `+w.Path("b")+` +\S+ +`+w.Path("a")+` +".*" +0x\w+ +holds$`, text,
			"who waits at b runs under a")
		g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Line())
		require.Len(t, g.Circles, 1)
		require.Len(t, g.Circles[0], 4, "each lock has a session")
		require.Empty(t, g.Possible)
		for _, x := range g.Waits {
			require.Len(t, x.Under, 1)
			require.Len(t, x.Delays, 1)
			require.Equal(t, x.Under[0], path.Base(x.Delays[0]))
		}
		text = cmdtest.On(t, w, "graph", "--dot", cmdtest.Below(w)).Output()
		require.Equal(t, 4, strings.Count(text, "color=red"))
		require.Equal(t, 2, strings.Count(text, "style=dashed"))

		deadlock := "deadlock: a circle over " + w.Path("a") + ", " + w.Path("b")
		p = cmdtest.On(t, w, "--json", "doctor", cmdtest.Below(w))
		require.Equal(t, term.ExitFailed, p.Exit())
		d := cmdtest.Parse[Diagnosis](t, p.Line())
		require.Equal(t, []string{w.Path("a") + ": " + deadlock, w.Path("b") + ": " + deadlock}, found(t, d, true))
		for _, f := range d.Findings {
			require.True(t, !f.Wrong || strings.Contains(f.Do, "break one of its locks"), f.Do)
		}
		for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line()).Recipes {
			require.Equal(t, []string{deadlock}, r.Odd)
		}
		seen := sightAt(t,
			cmdtest.Parse[map[string]string](t, cmdtest.On(t, w, "--json", "ui", cmdtest.Below(w)).Line())["url"])
		require.Len(t, seen.Circles, 1)
		require.Empty(t, seen.Possible)

		require.Zero(t, cmdtest.On(t, w, "break", "--yes", w.Path("a")).Exit())
		require.Zero(t, second.Exit(), "it goes on")
		require.NotZero(t, first.Exit(), "its lock was broken")
		require.Zero(t, cmdtest.On(t, w, "graph", cmdtest.Below(w)).Exit())
	})
}

// In each of two clients, one goroutine holds a lock, and another waits for the
// lock that the other client holds. None waits under a hold.
func TestGoroutinesOfHealthyClientsAreNotCalledWrong(t *testing.T) {
	w := cmdtest.World(t)
	clients := []*coord.Client{cmdtest.Open(t, w), cmdtest.Open(t, w)}
	paths := []string{w.Path("a"), w.Path("b")}
	for i, c := range clients {
		cmdtest.Must(cmdtest.Must(lock.New(c, paths[i])).Acquire(t.Context()))
	}
	for i, c := range clients {
		cmdtest.Waits(t, w, paths[1-i], 2, cmdtest.Must(lock.New(c, paths[1-i])).Acquire)
	}
	for _, verb := range []string{"graph", "doctor"} {
		text := strings.Join(strings.Fields(cmdtest.On(t, w, verb, cmdtest.Below(w)).Gives(0)), " ")
		require.Contains(t, text, "for ever if each is one thread", verb)
		require.Contains(t, text, "their claims do not say under which holds they were made", verb)
		require.NotContains(t, text, "break", verb)
	}
	for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line()).Recipes {
		require.Empty(t, r.Odd)
	}
}

// The contexts of the calls carry the holds.
func TestADeadlockWithinOneProgramIsFoundByItsContexts(t *testing.T) {
	w := cmdtest.World(t)
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
	require.Len(t,
		cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Gives(term.ExitFailed)).Circles, 1)
}
