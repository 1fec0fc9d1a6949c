//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// probing runs a script that asks, each time it is told to, whether what it
// runs under is held, and prints the status.
func probing(w *zktest.World) string {
	return fmt.Sprintf(`echo $COORD_NODE; while read x; do %s --zk %s held --timeout 20s; echo $?; done`, os.Args[0], w.ConnectString())
}

// ask has the script ask and returns what held says, and the status.
func (p *process) ask() (says, status string) {
	p.t.Helper()
	_, err := p.in.Write([]byte("?\n"))
	require.NoError(p.t, err)
	return p.line(), p.line()
}

func TestInsideOfTheCommandHeldTellsWhetherItIs(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for verb, at := range map[string]string{
			"lock": w.Path("l"), "lock --shared": w.Path("s"), "lock --slots 2": w.Path("n"), "elect": w.Path("e"),
			"doublebarrier -n 1": w.Path("b"), "--dialect kazoo lock": w.Path("k"),
		} {
			p := patiently(t, w, append(strings.Fields(verb), at, "--", "sh", "-c", probing(w))...)
			p.line()
			says, status := p.ask()
			require.Equal(t, "0", status, verb)
			require.Contains(t, says, "held: "+at+", for ", verb)
			require.NoError(t, p.in.Close())
			require.Equal(t, 0, p.exit(), verb)
		}
	})
}

// asInside asks as the command of a lock would that has these variables.
func asInside(t *testing.T, w *zktest.World, variables []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(append(target(w), "held", "--timeout", "20s"), args...)...)
	cmd.Env = variables
	return startAs(t, cmd)
}

func TestHeldTellsOfALossInItsStatusAndInJSON(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := patiently(t, w, sh(w.Path("l"), `echo $COORD_NODE; echo $COORD_TOKEN; `+untilEOF)...)
		node, token := holder.line(), holder.number()
		waiter := patiently(t, w, sh(w.Path("l"), untilEOF)...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		r := parse[report](t, patiently(t, w, "--json", "inspect", w.Path("l")).line())
		inside := []string{"COORD_PATH=" + w.Path("l"), "COORD_NODE=" + node, fmt.Sprintf("COORD_TOKEN=%d", token)}
		ask := func(status int, variables []string, args ...string) map[string]any {
			t.Helper()
			p := asInside(t, w, variables, append([]string{"--json"}, args...)...)
			require.Equal(t, status, p.exit(), "%q: %s", args, p.stderr.String())
			answer := theObject(t, p, "held")
			require.Equal(t, status == 0, answer["held"])
			return answer["holds"].([]any)[0].(map[string]any)
		}
		hold := ask(0, inside)
		require.Equal(t, w.Path("l"), hold["path"])
		require.Equal(t, node, hold["node"])
		require.EqualValues(t, token, hold["token"])
		require.Equal(t, r.Contenders[0].Session, hold["session"])
		require.NotNil(t, hold["age"])
		ask(0, inside, w.Path("l"))
		ask(0, nil, "--node", path.Base(node), w.Path("l"))
		ask(0, nil, "--node", node, "--token", fmt.Sprint(token), w.Path("l"))
		require.Equal(t, node, ask(0, nil, "--token", fmt.Sprint(token), w.Path("l"))["node"])
		ask(exitLost, nil, "--node", r.Contenders[1].Node, w.Path("l")) // it waits
		ask(exitLost, nil, "--token", fmt.Sprint(token+1), w.Path("l"))
		ask(exitLost, append(inside[:2:2], fmt.Sprintf("COORD_TOKEN=%d", token-1))) // a former holder's node of this name
		w.ExpireSession(stat(t, w, node))
		require.Equal(t, false, ask(exitLost, inside)["held"])
		require.Contains(t, asInside(t, w, inside).output(), "not held: "+w.Path("l")+" (its node is gone)")
		ask(exitLost, nil, "--node", node, w.Path("l"))
		ask(exitLost, nil, "--token", fmt.Sprint(token), w.Path("l"))
		ask(exitLost, nil, "--token", "1", w.Path("nothing"))
		require.Equal(t, exitLost, holder.exit())
		waiter.line()
		require.NoError(t, waiter.in.Close())
		require.Equal(t, 5, waiter.exit())
	})
}

// stat is the session that a node belongs to.
func stat(t *testing.T, w *zktest.World, node string) int64 {
	t.Helper()
	_, stat, err := w.Admin().Exists(node)
	require.NoError(t, err)
	return stat.EphemeralOwner
}

func TestHeldAsksForAllOfSeveralHolds(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one, two := patiently(t, w, sh(w.Path("1"), `echo $COORD_NODE; `+untilEOF)...), patiently(t, w, sh(w.Path("2"), `echo $COORD_NODE; `+untilEOF)...)
		nodes := []string{one.line(), two.line()}
		var inside []string
		for i, node := range nodes {
			inside = append(inside, fmt.Sprintf("COORD_PATH_%d=%s", i+1, path.Dir(node)), fmt.Sprintf("COORD_NODE_%d=%s", i+1, node))
		}
		require.Equal(t, 0, asInside(t, w, inside).exit())
		w.ExpireSession(stat(t, w, nodes[1]))
		require.Equal(t, exitLost, asInside(t, w, inside).exit())
		require.Equal(t, exitLost, asInside(t, w, inside, w.Path("2")).exit())
		require.Equal(t, 0, asInside(t, w, inside, w.Path("1")).exit())
		require.Equal(t, exitLost, two.exit())
		require.NoError(t, one.in.Close())
		require.Equal(t, 5, one.exit())
	})
}

func TestHeldFindsSlotsMembersAndItems(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		const script = `echo $COORD_NODE; cat >/dev/null; ` + busy
		for verb, at := range map[string]string{
			"lock --slots 2": w.Path("n"), "--dialect kazoo lock --slots 2": w.Path("k"), "doublebarrier -n 1": w.Path("b"),
			"queue receive": w.Path("q"),
		} {
			p := patiently(t, w, append(strings.Fields(verb), at, "--", "sh", "-c", script)...)
			node := p.line()
			require.Equal(t, 0, patiently(t, w, "held", "--timeout", "20s", "--node", path.Base(node), at).exit(), verb)
			w.ExpireSession(stat(t, w, node))
			require.Equal(t, exitLost, p.exit(), verb)
			require.Equal(t, exitLost, patiently(t, w, "held", "--timeout", "20s", "--node", path.Base(node), at).exit(), verb)
		}
	})
}

func TestWhatHeldCannotKnowHasAStatusOfItsOwnInTime(t *testing.T) {
	const patience = 300 * time.Millisecond
	for _, address := range []string{closedPort(t), silentServer(t)} {
		inTime(t, patience+5*time.Second, func() time.Duration {
			began := time.Now()
			p := start(t, "--json", "--zk", address, "held", "--timeout", patience.String(), "--token", "7", "/l")
			require.Equal(t, exitUnavailable, p.exit())
			require.EqualValues(t, exitUnavailable, theObject(t, p, "held")["status"])
			return time.Since(began)
		})
	}
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		holder := on(t, w, sh(w.Path("l"), "echo $COORD_NODE; "+untilEOF)...)
		inside := []string{"COORD_PATH=" + w.Path("l"), "COORD_NODE=" + holder.line()}
		w.Freeze()
		p := asInside(t, w, inside, "--timeout", "0.5")
		require.Equal(t, exitUnavailable, p.exit())
		w.Thaw()
		_ = holder.in.Close()
		holder.exit()
	})
}

func TestHeldHasToKnowWhatToAskFor(t *testing.T) {
	inside := []string{"COORD_PATH=/a", "COORD_NODE=/a/node"}
	for _, c := range []struct {
		variables []string
		args      string
		says      string
	}{
		{nil, "held", "does not run under anything"},
		{nil, "held /l", "does not run under /l"},
		{inside, "held /l", "does not run under /l"},
		{nil, "held --token 7", "go with a PATH"},
		{nil, "held l", "must start with /"},
		{nil, "held --timeout 0 /l", "--timeout"},
	} {
		cmd := exec.Command(os.Args[0], append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(c.args)...)...)
		cmd.Env = c.variables
		p := startAs(t, cmd)
		require.Equal(t, exitUsage, p.exit(), c.args)
		require.Contains(t, p.stderr.String(), c.says, c.args)
	}
}
