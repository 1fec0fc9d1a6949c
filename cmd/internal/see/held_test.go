//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Inside a command, held knows the holds that the command runs under;
// elsewhere, its arguments name the holder.
func TestHeldTellsWhetherTheCommandsOfAllVerbsRunUnderWhatTheyWereGranted(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		held := []string{"held", "--timeout", "20s"}
		asking := fmt.Sprintf(`echo $COORD_NODE; while read x; do %s --zk %s %s; echo $?; done`,
			cmdtest.Coorddemo(t), w.ConnectString(), strings.Join(held, " "))
		for verb, at := range map[string]string{
			"lock": w.Path("l"), "lock --shared": w.Path("s"), "lock --slots 2": w.Path("n"), "elect": w.Path("e"),
			"doublebarrier -n 1": w.Path("b"), "--dialect kazoo lock": w.Path("k"),
			"--dialect kazoo lock --slots 2": w.Path("m"),
			"queue receive":                  w.Path("q"),
		} {
			script := asking
			if verb == "queue receive" { // whose command reads the item
				script = `echo $COORD_NODE; cat >/dev/null; ` + cmdtest.Busy
			}
			p := cmdtest.On(t, w, append(strings.Fields(verb), at, "--", "sh", "-c", script)...)
			node := p.Line()
			if script == asking {
				says, status := p.Ask()
				require.Equal(t, "0", status, verb)
				require.Contains(t, says, "held: "+at+", for ", verb)
			}
			outside := append(held, "--node", path.Base(node), at)
			require.Equal(t, 0, cmdtest.On(t, w, outside...).Exit(), verb)
			w.ExpireSession(stat(t, w, node))
			require.Equal(t, term.ExitLost, p.Exit(), verb)
			require.Equal(t, term.ExitLost, cmdtest.On(t, w, outside...).Exit(), verb)
		}
	})
}

// asInside runs held as a command of a lock would, with these variables.
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
		require.Contains(t, asInside(t, w, inside).Output(), "held: "+w.Path("l")+", there for ")
		granted := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
		require.GreaterOrEqual(t, ask(0, append(inside, "COORD_SINCE="+granted))["held_for"], 3600.0)
		ask(0, inside, w.Path("l"))
		ask(0, nil, "--node", path.Base(node), w.Path("l"))
		ask(0, nil, "--node", node, "--token", fmt.Sprint(token), w.Path("l"))
		require.Equal(t, node, ask(0, nil, "--token", fmt.Sprint(token), w.Path("l"))["node"])
		ask(term.ExitLost, nil, "--node", r.Contenders[1].Node, w.Path("l")) // it waits
		ask(term.ExitLost, nil, "--token", fmt.Sprint(token+1), w.Path("l"))
		ask(term.ExitLost,
			append(inside[:2:2], fmt.Sprintf("COORD_TOKEN=%d", token-1))) // a former holder's node of this name
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
		one := cmdtest.On(t, w, cmdtest.Sh(w.Path("1"), `echo $COORD_NODE; `+cmdtest.UntilEOF)...)
		two := cmdtest.On(t, w, cmdtest.Sh(w.Path("2"), `echo $COORD_NODE; `+cmdtest.UntilEOF)...)
		nodes := []string{one.Line(), two.Line()}
		var inside []string
		for i, node := range nodes {
			inside = append(inside, fmt.Sprintf("COORD_PATH_%d=%s", i+1, path.Dir(node)),
				fmt.Sprintf("COORD_NODE_%d=%s", i+1, node))
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

func TestLsListsEveryRecipeBelow(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.EveryRecipe(t, w)
		l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Gives(0))
		var found []string
		for _, r := range l.Recipes {
			found = append(found, fmt.Sprintf("%s %s %d", strings.TrimPrefix(r.Path, w.Path("app")+"/"), r.Kind, r.Waiting))
			require.Empty(t, r.Odd, r.Path)
		}
		require.Equal(t, []string{
			"deep/er/leader election 0", "gate barrier 0", "jobs queue 0", "licence semaphore 1", "lock lock 1",
			"round doublebarrier 1",
			"shared rwlock 1",
		}, found)
		require.Len(t, l.Recipes[6].Holders, 2)
		require.Contains(t, l.Recipes[4].Holders[0], "holder")
		require.NotNil(t, l.Recipes[4].There)
		require.Equal(t, 2, *l.Recipes[2].Items)
		require.Zero(t, l.Left)

		text := cmdtest.On(t, w, "ls", cmdtest.Below(w)).Output()
		require.Regexp(t, `(?m)^PATH +KIND +HOLDER +HELD +WAIT +ODD$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/lock")+` +lock +".*holder.*" +there for \S+ +1 *$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/shared")+` +rwlock +".*" and 1 more +there for \S+ +1 *$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/jobs")+` +queue +2 items, 0 in hand +0 *$`, text)
		require.Contains(t, text, "7 recipes at "+cmdtest.Below(w)+" and below; ")
	})
}

func TestLsListsWhatIsBelowARootWithTheNamesOfARecipe(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for _, name := range []string{"", "/ready", "/entries", "/leases", "/leases/gate"} {
		cmdtest.ByHand(t, w, cmdtest.Below(w)+name, "")
	}
	p := cmdtest.Start(t, "--zk", w.ConnectString()+cmdtest.Below(w), "ls")
	require.Equal(t, 0, p.Exit())
	require.Contains(t, p.Output(), "5 nodes were looked at")
}

func TestLsTellsWhatItLeavesOut(t *testing.T) {
	w := cmdtest.World(t)
	for _, name := range []string{"a", "b", "c", "a/deep"} {
		cmdtest.Contend(t, w, w.Path(name), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"})
	}
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", "--most", "3", cmdtest.Below(w)).Line())
	require.Equal(t, 3, l.Looked)
	require.Equal(t, 2, l.Left, "c, and a/deep")
	require.Len(t, l.Recipes, 2)
	require.Contains(t, cmdtest.On(t, w, "ls", "--most", "3", cmdtest.Below(w)).Output(), "left out: ")

	admin := w.Admin()
	cmdtest.Must(admin.Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	l = cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line())
	require.Equal(t, []string{w.Path("secret")}, l.Hidden)
	require.Len(t, l.Recipes, 4)
	require.Contains(t, cmdtest.On(t, w, "ls", cmdtest.Below(w)).Output(), "may not be listed: "+w.Path("secret"))

	for _, args := range [][]string{{"ls", "--most", "0"}, {"ls", "nowhere"}} {
		require.Equal(t, term.ExitUsage, cmdtest.On(t, w, args...).Exit())
	}
	require.Zero(t, cmdtest.On(t, w, "lock", w.Path("none"), "--", "true").Exit())
	require.Contains(t, cmdtest.On(t, w, "ls", w.Path("none")).Gives(0), "0 recipes")
}

func TestAGraphWithoutACircle(t *testing.T) {
	w := cmdtest.World(t)
	holder, other := cmdtest.EveryRecipe(t, w)
	g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Gives(0))
	require.Empty(t, g.Circles)
	for _, x := range g.Waits {
		require.Equal(t, look.SessionName(other.Info().SessionID), x.Session, x.Path)
		require.Equal(t, look.SessionName(holder.Info().SessionID), x.For, x.Path)
		require.True(t, x.Holds)
	}
	require.Len(t, g.Waits, 1+2+2, "a lock, a writer for two readers, a semaphore with two leases")
}

// The names of a recipe's own nodes do not hide the recipes of others.
func TestPathsThatAreNamedLikePartsOfARecipe(t *testing.T) {
	w := cmdtest.World(t)
	paths := []string{"app/leases/b", "app/locks/a", "svc/ready/z"}
	for _, path := range paths {
		cmdtest.Contend(t, w, w.Path(path), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"})
	}
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line())
	var found []string
	for _, r := range l.Recipes {
		found = append(found, strings.TrimPrefix(r.Path, cmdtest.Below(w)+"/"))
	}
	require.Subset(t, found, paths)
}

func TestANodeThatMayNotBeReadIsNoOrphan(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"), nil)
	cmdtest.Must(
		w.Admin().Create(w.Path("l")+"/_c_"+cmdtest.Guid1+"-lock-0000000001", nil, zk.FlagEphemeral,
			zk.DigestACL(zk.PermAll, "user", "password")))
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", w.Path("l")).Line())
	require.Len(t, l.Recipes, 1)
	require.Empty(t, l.Recipes[0].Odd)
}

// Candidates work while they stand by: two that each lead an election in which
// the other is a candidate are no circle.
func TestCandidatesAreNoCircle(t *testing.T) {
	w := cmdtest.World(t)
	a, b := cmdtest.Open(t, w), cmdtest.Open(t, w)
	for path, clients := range map[string][]*coord.Client{w.Path("x"): {a, b}, w.Path("y"): {b, a}} {
		cmdtest.Must(cmdtest.Must(election.New(clients[0], path)).Campaign(t.Context(), nil))
		cmdtest.Waits(t, w, path, 2, func(ctx context.Context) (*election.Term, error) {
			return cmdtest.Must(election.New(clients[1], path)).Campaign(ctx, nil)
		})
	}
	require.Equal(t, 0, cmdtest.On(t, w, "graph", cmdtest.Below(w)).Exit())
}

// What could not be looked at in time is left out, and said to be.
func TestASurveyThatTakesTooLong(t *testing.T) {
	w := cmdtest.World(t)
	for _, path := range []string{"a", "b"} {
		cmdtest.Contend(t, w, w.Path(path), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"})
	}
	w.Embedded().Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: w.Path("b")}, zkembed.Hang())
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--connect-timeout", "1s", "--json", "ls", cmdtest.Below(w)).Gives(0))
	require.NotZero(t, l.Left)
}

// The Stat of a node whose data may not be read tells its token and session all
// the same.
func TestHeldKnowsAHolderWhoseNodeMayNotBeRead(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, dir := range []string{w.Path(""), w.Path("l")} {
			require.NoError(t, coordtest.Err(w.Admin().Create(dir, nil, 0, zk.WorldACL(zk.PermAll))))
		}
		secret := []string{"--auth", "digest:someone:secret", "--acl", "auth::cdrwa"}
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_TOKEN; `+cmdtest.UntilEOF, secret...)...)
		token := holder.Number()
		require.Equal(t, 0, cmdtest.On(t, w, "held", "--token", fmt.Sprint(token), w.Path("l")).Exit())
		require.Equal(t, term.ExitLost, cmdtest.On(t, w, "held", "--token", fmt.Sprint(token+1), w.Path("l")).Exit())
		require.NoError(t, holder.In.Close())
		holder.Exit()
	})
}
