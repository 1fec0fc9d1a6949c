//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestLsListsEveryRecipeBelow(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.EveryRecipe(t, w)
		l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Gives(0))
		var found []string
		for _, r := range l.Recipes {
			found = append(found, strings.TrimPrefix(r.Path, w.Path("app")+"/")+" "+r.Kind)
			require.Empty(t, r.Odd, r.Path)
		}
		require.Equal(t, []string{
			"deep/er/leader latch", "gate barrier", "jobs queue", "licence semaphore", "lock lock", "round doublebarrier", "shared rwlock",
		}, found)
		require.Equal(t, []int{0, 0, 0, 1, 1, 1, 1}, []int{
			l.Recipes[0].Waiting, l.Recipes[1].Waiting, l.Recipes[2].Waiting, l.Recipes[3].Waiting, l.Recipes[4].Waiting, l.Recipes[5].Waiting, l.Recipes[6].Waiting,
		})
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
	_, err := admin.Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	l = cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line())
	require.Equal(t, []string{w.Path("secret")}, l.Hidden)
	require.Len(t, l.Recipes, 4)
	require.Contains(t, cmdtest.On(t, w, "ls", cmdtest.Below(w)).Output(), "not to be listed: "+w.Path("secret"))

	for _, args := range [][]string{{"ls", "--most", "0"}, {"ls", "nowhere"}} {
		require.Equal(t, term.ExitUsage, cmdtest.On(t, w, args...).Exit())
	}
	require.Contains(t, cmdtest.On(t, w, "ls", w.Path("none")).Gives(0), "0 recipes")
}

func TestAGraphWithoutACircle(t *testing.T) {
	w := cmdtest.World(t)
	holder, other := cmdtest.EveryRecipe(t, w)
	g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Gives(0))
	require.Empty(t, g.Circles)
	for _, x := range g.Waits {
		require.Equal(t, look.SessionName(other.SessionID()), x.Session, x.Path)
		require.Equal(t, look.SessionName(holder.SessionID()), x.For, x.Path)
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
	_, err := w.Admin().Create(w.Path("l")+"/_c_"+cmdtest.Guid1+"-lock-0000000001", nil, zk.FlagEphemeral, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", w.Path("l")).Line())
	require.Len(t, l.Recipes, 1)
	require.Empty(t, l.Recipes[0].Odd)
}

// A candidate stands by: two that lead what the other stands for are no circle.
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
