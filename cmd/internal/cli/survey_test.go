//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// must is for what has to go well in the preparation of a test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// below is the path that the world's own paths are below.
func below(w *zktest.World) string { return strings.TrimSuffix(w.Path("x"), "/x") }

// waits starts something that is to wait, until the test ends.
func waits[T any](t *testing.T, w *zktest.World, dir string, n int, acquire func(context.Context) (T, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := acquire(ctx)
		if ctx.Err() == nil {
			t.Errorf("it does not wait at %s: %v", dir, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	awaitContenders(t, w.Admin(), dir, n)
}

// everyRecipe makes one of each recipe below the world's path.
func everyRecipe(t *testing.T, w *zktest.World) (holder, other *coord.Client) {
	ctx := t.Context()
	holder = coordtest.Open(t, w.ConnectString(), coord.WithIdentity("holder"))
	other = coordtest.Open(t, w.ConnectString(), coord.WithIdentity("other"))
	must(must(lock.New(holder, w.Path("app/lock"))).Acquire(ctx))
	waits(t, w, w.Path("app/lock"), 2, must(lock.New(other, w.Path("app/lock"))).Acquire)
	shared := must(rwlock.New(holder, w.Path("app/shared")))
	must(shared.AcquireRead(ctx))
	must(shared.AcquireRead(ctx))
	waits(t, w, w.Path("app/shared"), 3, must(rwlock.New(other, w.Path("app/shared"))).AcquireWrite)
	must(must(election.New(holder, w.Path("app/deep/er/leader"))).Campaign(ctx, nil))
	must(must(semaphore.New(holder, w.Path("app/licence"), 2)).AcquireN(ctx, 2))
	waits(t, w, w.Path("app/licence/leases"), 3, must(semaphore.New(other, w.Path("app/licence"), 2)).Acquire)
	require.NoError(t, must(barrier.New(holder, w.Path("app/gate"))).Set(ctx))
	waits(t, w, w.Path("app/round"), 2, must(doublebarrier.New(holder, w.Path("app/round"), 2)).Enter)
	q := must(queue.New(holder, w.Path("app/jobs")))
	require.NoError(t, q.Put(ctx, []byte("one")))
	require.NoError(t, q.Put(ctx, []byte("two")))
	return holder, other
}

func TestLsListsEveryRecipeBelow(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		everyRecipe(t, w)
		p := on(t, w, "--json", "ls", below(w))
		require.Equal(t, 0, p.exit())
		l := parse[listing](t, p.line())
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
		require.NotNil(t, l.Recipes[4].Age)
		require.Equal(t, 2, *l.Recipes[2].Items)
		require.Zero(t, l.Left)

		table := on(t, w, "ls", below(w))
		text := table.output()
		require.Regexp(t, `(?m)^PATH +KIND +HOLDER +FOR +WAIT +ODD$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/lock")+` +lock +".*holder.*" +\S+ +1 *$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/shared")+` +rwlock +".*" and 1 more +\S+ +1 *$`, text)
		require.Regexp(t, `(?m)^`+w.Path("app/jobs")+` +queue +2 items, 0 in hand +0 *$`, text)
		require.Contains(t, text, "7 recipes at "+below(w)+" and below; ")
	})
}

func TestLsTellsWhatItLeavesOut(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, name := range []string{"a", "b", "c", "a/deep"} {
		contend(t, w, w.Path(name), map[string]string{"_c_" + guid1 + "-lock-0000000001": "x"})
	}
	p := on(t, w, "--json", "ls", "--most", "3", below(w))
	l := parse[listing](t, p.line())
	require.Equal(t, 3, l.Looked)
	require.Equal(t, 2, l.Left, "c, and a/deep")
	require.Len(t, l.Recipes, 2)
	require.Contains(t, on(t, w, "ls", "--most", "3", below(w)).output(), "left out: ")

	admin := w.Admin()
	_, err := admin.Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	l = parse[listing](t, on(t, w, "--json", "ls", below(w)).line())
	require.Equal(t, []string{w.Path("secret")}, l.Hidden)
	require.Len(t, l.Recipes, 4)
	require.Contains(t, on(t, w, "ls", below(w)).output(), "not to be listed: "+w.Path("secret"))

	for _, args := range [][]string{{"ls", "--most", "0"}, {"ls", "nowhere"}} {
		require.Equal(t, exitUsage, on(t, w, args...).exit())
	}
	p = on(t, w, "ls", w.Path("none"))
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.output(), "0 recipes")
}

// tangle is a circle of two sessions over two locks, a lock of go-zookeeper's,
// one of Kazoo's with an orphan, and a directory with contenders of both
// dialects.
func tangle(t *testing.T, w *zktest.World) (a, b *coord.Client) {
	a, b = coordtest.Open(t, w.ConnectString(), coord.WithIdentity("alice")), coordtest.Open(t, w.ConnectString(), coord.WithIdentity("bob"))
	one, two := w.Path("one"), w.Path("two")
	must(must(lock.New(a, one)).Acquire(t.Context()))
	must(must(lock.New(b, two)).Acquire(t.Context()))
	waits(t, w, two, 2, must(lock.New(a, two)).Acquire)
	waits(t, w, one, 2, must(lock.New(b, one)).Acquire)
	hex := func(guid string) string { return strings.ReplaceAll(guid, "-", "") }
	contend(t, w, w.Path("gozk"), map[string]string{"_c_" + hex(guid1) + "-lock-0000000001": ""})
	contend(t, w, w.Path("mixed"), map[string]string{"_c_" + guid1 + "-lock-0000000001": "java", hex(guid2) + "__lock__0000000002": "python"})
	contend(t, w, w.Path("kazoo"), map[string]string{hex(guid1) + "__lock__2100000002": "python"})
	_, err := w.Admin().Create(w.Path("kazoo")+"/"+hex(guid2)+"__lock__2100000001", []byte("orphan"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return a, b
}

func TestATangleIsSeen(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a, b := tangle(t, w)
		p := on(t, w, "ls", below(w))
		text := p.output()
		require.Regexp(t, `(?m)^`+w.Path("gozk")+` +lock, go-zookeeper `, text)
		require.Regexp(t, `(?m)^`+w.Path("mixed")+` .* two dialects, which do not see each other$`, text)
		require.Regexp(t, `(?m)^`+w.Path("kazoo")+` +lock, kazoo +"orphan" .* 1 contender belongs to no session, and will never go by itself; 2100000002 of 2147483647 sequence numbers`, text)

		p = on(t, w, "graph", below(w))
		require.Equal(t, exitFailed, p.exit(), "there is a circle")
		text = p.output()
		require.Contains(t, text, "circle 1: ")
		require.NotContains(t, text, "circle 2: ")
		require.Contains(t, text, "4 waits, 1 circle; ")
		require.Regexp(t, `(?m)^".*alice.*" .* `+w.Path("two")+` .* ".*bob.*" .* holds$`, text)

		p = on(t, w, "--json", "graph", below(w))
		require.Equal(t, exitFailed, p.exit())
		g := parse[waitGraph](t, p.line())
		require.Empty(t, p.output(), "one object")
		require.Len(t, g.Circles, 1)
		require.ElementsMatch(t, []string{sessionName(a.SessionID()), sessionName(b.SessionID())}, g.Circles[0])

		p = on(t, w, "graph", "--dot", below(w))
		text = p.output()
		require.True(t, strings.HasPrefix(text, "digraph waits {"), text)
		require.Contains(t, text, `"`+sessionName(a.SessionID())+`" -> "`+sessionName(b.SessionID())+`" [label="`+w.Path("two")+`"]`)
		require.Equal(t, 2, strings.Count(text, "color=red"))
	})
}

func TestAGraphWithoutACircle(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder, other := everyRecipe(t, w)
	p := on(t, w, "--json", "graph", below(w))
	require.Equal(t, 0, p.exit())
	g := parse[waitGraph](t, p.line())
	require.Empty(t, g.Circles)
	for _, x := range g.Waits {
		require.Equal(t, sessionName(other.SessionID()), x.Session, x.Path)
		require.Equal(t, sessionName(holder.SessionID()), x.For, x.Path)
		require.True(t, x.Holds)
	}
	require.Len(t, g.Waits, 1+2+2, "a lock, a writer for two readers, a semaphore with two leases")
}

func TestWhomAContenderWaitsFor(t *testing.T) {
	r := report{Kind: "rwlock"}
	for i, kind := range []string{"read", "read", "write", "read", "read", "lock", "lock"} {
		r.Contenders = append(r.Contenders, contender{Kind: kind, Position: i})
	}
	for i, want := range [][]int{nil, nil, {1, 0}, {2}, {2}, {4, 3}, {5}} {
		var got []int
		for _, c := range r.waitsFor(i) {
			got = append(got, c.Position)
		}
		require.Equal(t, want, got, "of %d", i)
	}
}

// The names of a recipe's own nodes do not hide the recipes of others.
func TestPathsThatAreNamedLikePartsOfARecipe(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	paths := []string{"app/leases/b", "app/locks/a", "svc/ready/z"}
	for _, path := range paths {
		contend(t, w, w.Path(path), map[string]string{"_c_" + guid1 + "-lock-0000000001": "x"})
	}
	l := parse[listing](t, on(t, w, "--json", "ls", below(w)).line())
	var found []string
	for _, r := range l.Recipes {
		found = append(found, strings.TrimPrefix(r.Path, below(w)+"/"))
	}
	require.Subset(t, found, paths)
}

func TestANodeThatMayNotBeReadIsNoOrphan(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	contend(t, w, w.Path("l"), nil)
	_, err := w.Admin().Create(w.Path("l")+"/_c_"+guid1+"-lock-0000000001", nil, zk.FlagEphemeral, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	l := parse[listing](t, on(t, w, "--json", "ls", w.Path("l")).line())
	require.Len(t, l.Recipes, 1)
	require.Empty(t, l.Recipes[0].Odd)
}

// A candidate stands by: two that lead what the other stands for are no circle.
func TestCandidatesAreNoCircle(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a, b := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
	for path, clients := range map[string][]*coord.Client{w.Path("x"): {a, b}, w.Path("y"): {b, a}} {
		must(must(election.New(clients[0], path)).Campaign(t.Context(), nil))
		waits(t, w, path, 2, func(ctx context.Context) (*election.Term, error) {
			return must(election.New(clients[1], path)).Campaign(ctx, nil)
		})
	}
	require.Equal(t, 0, on(t, w, "graph", below(w)).exit())
}

// What could not be looked at in time is left out, and said to be.
func TestASurveyThatTakesTooLong(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, path := range []string{"a", "b"} {
		contend(t, w, w.Path(path), map[string]string{"_c_" + guid1 + "-lock-0000000001": "x"})
	}
	w.Embedded().Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: w.Path("b")}, zkembed.Hang())
	p := on(t, w, "--connect-timeout", "1s", "--json", "ls", below(w))
	require.Equal(t, 0, p.exit())
	l := parse[listing](t, p.line())
	require.NotZero(t, l.Left)
}
