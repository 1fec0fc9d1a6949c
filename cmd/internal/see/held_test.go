//go:build linux || darwin || freebsd || openbsd

package see

import (
	"fmt"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// probing runs a script that asks, each time it is told to, whether what it
// runs under is held, and prints the status.
func probing(t *testing.T, w *zktest.World) string {
	return fmt.Sprintf(`echo $COORD_NODE; while read x; do %s --zk %s held --timeout 20s; echo $?; done`, cmdtest.Coorddemo(t), w.ConnectString())
}

func TestInsideOfTheCommandHeldTellsWhetherItIs(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for verb, at := range map[string]string{
			"lock": w.Path("l"), "lock --shared": w.Path("s"), "lock --slots 2": w.Path("n"), "elect": w.Path("e"),
			"doublebarrier -n 1": w.Path("b"), "--dialect kazoo lock": w.Path("k"),
		} {
			p := cmdtest.On(t, w, append(strings.Fields(verb), at, "--", "sh", "-c", probing(t, w))...).Begun()
			says, status := p.Ask()
			require.Equal(t, "0", status, verb)
			require.Contains(t, says, "held: "+at+", for ", verb)
			p.LetGo(0)
		}
	})
}

// asInside asks as the command of a lock would that has these variables.
func asInside(t *testing.T, w *zktest.World, variables []string, args ...string) *cmdtest.Process {
	t.Helper()
	cmd := exec.Command(cmdtest.Coorddemo(t), append(append(cmdtest.Target(w), "held", "--timeout", "20s"), args...)...)
	cmd.Env = variables
	return cmdtest.StartAs(t, cmd)
}

func TestHeldTellsOfALossInItsStatusAndInJSON(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_NODE; echo $COORD_TOKEN; `+cmdtest.UntilEOF)...)
		node, token := holder.Line(), holder.Number()
		waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).InLine(w, w.Path("l"), 2)
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
		inside := []string{"COORD_PATH=" + w.Path("l"), "COORD_NODE=" + node, fmt.Sprintf("COORD_TOKEN=%d", token)}
		ask := func(status int, variables []string, args ...string) map[string]any {
			t.Helper()
			p := asInside(t, w, variables, append([]string{"--json"}, args...)...)
			require.Equal(t, status, p.Exit(), "%q: %s", args, p.Stderr.String())
			answer := cmdtest.TheObject(t, p, "held")
			require.Equal(t, status == 0, answer["held"])
			return answer["holds"].([]any)[0].(map[string]any)
		}
		hold := ask(0, inside)
		require.Equal(t, w.Path("l"), hold["path"])
		require.Equal(t, node, hold["node"])
		require.EqualValues(t, token, hold["token"])
		require.Equal(t, r.Contenders[0].Session, hold["session"])
		require.NotNil(t, hold["there_for"])
		require.Nil(t, hold["held_for"], "it is not told since when")
		granted := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
		require.GreaterOrEqual(t, ask(0, append(inside, "COORD_SINCE="+granted))["held_for"], 3600.0)
		ask(0, inside, w.Path("l"))
		ask(0, nil, "--node", path.Base(node), w.Path("l"))
		ask(0, nil, "--node", node, "--token", fmt.Sprint(token), w.Path("l"))
		require.Equal(t, node, ask(0, nil, "--token", fmt.Sprint(token), w.Path("l"))["node"])
		ask(term.ExitLost, nil, "--node", r.Contenders[1].Node, w.Path("l")) // it waits
		ask(term.ExitLost, nil, "--token", fmt.Sprint(token+1), w.Path("l"))
		ask(term.ExitLost, append(inside[:2:2], fmt.Sprintf("COORD_TOKEN=%d", token-1))) // a former holder's node of this name
		w.ExpireSession(stat(t, w, node))
		require.Equal(t, false, ask(term.ExitLost, inside)["held"])
		require.Contains(t, asInside(t, w, inside).Output(), "not held: "+w.Path("l")+" (its node is gone)")
		ask(term.ExitLost, nil, "--node", node, w.Path("l"))
		ask(term.ExitLost, nil, "--token", fmt.Sprint(token), w.Path("l"))
		ask(term.ExitLost, nil, "--token", "1", w.Path("nothing"))
		require.Equal(t, term.ExitLost, holder.Exit())
		waiter.Line()
		waiter.LetGo(5)
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
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one, two := cmdtest.On(t, w, cmdtest.Sh(w.Path("1"), `echo $COORD_NODE; `+cmdtest.UntilEOF)...), cmdtest.On(t, w, cmdtest.Sh(w.Path("2"), `echo $COORD_NODE; `+cmdtest.UntilEOF)...)
		nodes := []string{one.Line(), two.Line()}
		var inside []string
		for i, node := range nodes {
			inside = append(inside, fmt.Sprintf("COORD_PATH_%d=%s", i+1, path.Dir(node)), fmt.Sprintf("COORD_NODE_%d=%s", i+1, node))
		}
		require.Equal(t, 0, asInside(t, w, inside).Exit())
		w.ExpireSession(stat(t, w, nodes[1]))
		require.Equal(t, term.ExitLost, asInside(t, w, inside).Exit())
		require.Equal(t, term.ExitLost, asInside(t, w, inside, w.Path("2")).Exit())
		require.Equal(t, 0, asInside(t, w, inside, w.Path("1")).Exit())
		require.Equal(t, term.ExitLost, two.Exit())
		one.LetGo(5)
	})
}

func TestHeldFindsSlotsMembersAndItems(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		const script = `echo $COORD_NODE; cat >/dev/null; ` + cmdtest.Busy
		for verb, at := range map[string]string{
			"lock --slots 2": w.Path("n"), "--dialect kazoo lock --slots 2": w.Path("k"), "doublebarrier -n 1": w.Path("b"),
			"queue receive": w.Path("q"),
		} {
			p := cmdtest.On(t, w, append(strings.Fields(verb), at, "--", "sh", "-c", script)...)
			node := p.Line()
			require.Equal(t, 0, cmdtest.On(t, w, "held", "--timeout", "20s", "--node", path.Base(node), at).Exit(), verb)
			w.ExpireSession(stat(t, w, node))
			require.Equal(t, term.ExitLost, p.Exit(), verb)
			require.Equal(t, term.ExitLost, cmdtest.On(t, w, "held", "--timeout", "20s", "--node", path.Base(node), at).Exit(), verb)
		}
	})
}

func TestWhatHeldCannotKnowHasAStatusOfItsOwnInTime(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	for _, address := range []string{cmdtest.ClosedPort(t), cmdtest.SilentServer(t)} {
		cmdtest.InTime(t, patience+5*time.Second, func() time.Duration {
			began := time.Now()
			p := cmdtest.Start(t, "--json", "--zk", address, "held", "--timeout", patience.String(), "--token", "7", "/l")
			require.Equal(t, term.ExitUnavailable, p.Exit())
			require.EqualValues(t, term.ExitUnavailable, cmdtest.TheObject(t, p, "held")["status"])
			return time.Since(began)
		})
	}
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo $COORD_NODE; "+cmdtest.UntilEOF)...)
		inside := []string{"COORD_PATH=" + w.Path("l"), "COORD_NODE=" + holder.Line()}
		w.Freeze()
		p := asInside(t, w, inside, "--timeout", "0.5")
		require.Equal(t, term.ExitUnavailable, p.Exit())
		w.Thaw()
		_ = holder.In.Close()
		holder.Exit()
	})
}

func TestHeldHasToKnowWhatToAskFor(t *testing.T) {
	t.Parallel()
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
		cmd := exec.Command(cmdtest.Coorddemo(t), append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(c.args)...)...)
		cmd.Env = c.variables
		cmdtest.StartAs(t, cmd).Ends(term.ExitUsage, c.says)
	}
}
