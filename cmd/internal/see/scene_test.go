//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// scene is five locks in the layouts of Curator, go-zookeeper and Kazoo: alice
// and bob wait for each other at billing and stock; carol waits at report for a
// process that is gone; dave waits at import for a node that belongs to no
// session; erin holds archive, and a Kazoo client that she does not see has
// come there, with one of the last numbers. What is below secret must not be
// listed. It returns the sessions that a test cannot recognise by name.
func scene(t *testing.T, w *zktest.World) (alice, bob, dead string) {
	open := func(name string, d coord.Dialect) *coord.Client {
		return cmdtest.Open(t, w, coord.WithIdentity(name), coord.WithDialect(d))
	}
	wait := func(c *coord.Client, name string) {
		cmdtest.Waits(t, w, w.Path(name), 2, cmdtest.Must(lock.New(c, w.Path(name))).Acquire)
	}
	a := open("alice", coord.Curator)
	cmdtest.Must(cmdtest.Must(lock.New(a, w.Path("billing"))).Acquire(t.Context()))
	b, events, err := zk.Connect(strings.Split(w.ConnectString(), ","), zktest.SessionTimeout, zk.WithLogInfo(false))
	require.NoError(t, err)
	require.NoError(t, zk.NewLock(b, w.Path("stock"), zk.WorldACL(zk.PermAll)).Lock())
	waited := make(chan error, 1)
	go func() { waited <- zk.NewLock(b, w.Path("billing"), zk.WorldACL(zk.PermAll)).Lock() }()
	t.Cleanup(func() {
		b.Close()
		require.Error(t, <-waited, "bob got the lock that alice holds")
		for range events {
		}
	})
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("billing"), 2)
	wait(a, "stock")

	var gone atomic.Bool
	d := cmdtest.Open(t, w, coord.WithIdentity("nightly report"), coord.WithDialect(coord.Kazoo),
		coord.WithSessionTimeout(5*time.Minute),
		coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("the process is gone")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}))
	report := cmdtest.Must(cmdtest.Must(lock.New(d, w.Path("report"))).Acquire(t.Context()))
	t.Cleanup(func() { w.ExpireSession(report.Session()) })
	gone.Store(true)
	w.DropConn(report.Session())
	wait(open("carol", coord.Kazoo), "report")

	digits := func(guid string) string { return strings.ReplaceAll(guid, "-", "") }
	cmdtest.Contend(t, w, w.Path("import"), nil)
	cmdtest.ByHand(t, w, w.Path("import/"+digits(cmdtest.Guid1)+"__lock__0000000000"), "by hand")
	wait(open("dave", coord.Kazoo), "import")

	cmdtest.Must(cmdtest.Must(lock.New(open("erin", coord.Curator), w.Path("archive"))).Acquire(t.Context()))
	cmdtest.Contend(t, w, w.Path("archive"), map[string]string{digits(cmdtest.Guid2) + "__lock__2100000002": "frank"})
	cmdtest.Must(w.Admin().Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	return look.SessionName(a.Info().SessionID), look.SessionName(b.SessionID()), look.SessionName(report.Session())
}

const (
	twoDialects = "two dialects, which do not see each other"
	noSession   = "1 contender belongs to no session, and will never go by itself"
	usedUp      = "2100000002 of 2147483647 sequence numbers are used up; use another path before the rest is"
)

func TestTheVerbsTellAllOfATangle(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		alice, bob, dead := scene(t, w)
		t.Run("ls", func(t *testing.T) { lsTellsTheScene(t, w) })
		t.Run("inspect", func(t *testing.T) { inspectTellsTheScene(t, w) })
		t.Run("graph", func(t *testing.T) { graphTellsTheScene(t, w, alice, bob, dead) })
		t.Run("graph --dot", func(t *testing.T) { dotTellsTheScene(t, w, alice, bob) })
		t.Run("doctor", func(t *testing.T) { doctorTellsTheScene(t, w, alice, bob, dead) })
	})
}

func lsTellsTheScene(t *testing.T, w *zktest.World) {
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Gives(0))
	require.Len(t, l.Recipes, 5)
	for i, want := range []listed{
		{Path: "archive", Dialect: "mixed", Holders: []string{"erin", "frank"}, Odd: []string{twoDialects, usedUp}},
		{Path: "billing", Dialect: "curator", Holders: []string{"alice"}, Odd: []string{}},
		{Path: "import", Dialect: "kazoo", Holders: []string{"by hand"}, Odd: []string{noSession}},
		{Path: "report", Dialect: "kazoo", Holders: []string{"nightly report"}, Odd: []string{}},
		{Path: "stock", Dialect: "curator", Holders: []string{""}, Odd: []string{}}, // zk.Lock does not say who it is
	} {
		got := l.Recipes[i]
		require.Equal(t, w.Path(want.Path), got.Path)
		require.Equal(t, "lock", got.Kind, got.Path)
		require.Equal(t, want.Dialect, got.Dialect, got.Path)
		require.Len(t, got.Holders, len(want.Holders), got.Path)
		for i, holder := range want.Holders {
			require.True(t, strings.HasPrefix(got.Holders[i], holder), got.Holders)
		}
		require.NotNil(t, got.There, got.Path)
		require.Equal(t, 2-len(want.Holders), got.Waiting, got.Path)
		require.Equal(t, want.Odd, got.Odd, got.Path)
	}
	text := cmdtest.On(t, w, "ls", cmdtest.Below(w)).Output()
	for name, shows := range map[string]string{
		"archive": `lock, mixed +"erin`, "billing": `lock +"alice`, "import": `lock, kazoo +"by hand"`,
		"report": `lock, kazoo +"nightly report `, "stock": `lock, go-zookeeper +unknown`,
	} {
		require.Regexp(t, `(?m)^`+w.Path(name)+` +`+shows, text)
	}
	require.Contains(t, text, twoDialects)
	require.Contains(t, text, noSession)
}

func inspectTellsTheScene(t *testing.T, w *zktest.World) {
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("archive"))
	require.Equal(t, []string{"curator", "kazoo"}, []string{r.Contenders[0].Dialect, r.Contenders[1].Dialect})
	require.Equal(t, []string{twoDialects, usedUp}, r.Odd)
	require.Regexp(t, `(?m)^2 +holds +lock, kazoo +"frank" `, text)
	require.Contains(t, text, "→ one path, one dialect")
}

func graphTellsTheScene(t *testing.T, w *zktest.World, alice, bob, dead string) {
	g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Gives(0))
	circle := []string{alice, bob}
	slices.Sort(circle)
	require.Equal(t, [][]string{circle}, g.Possible)
	require.Empty(t, g.Circles)
	waits := map[string]waitFor{}
	for _, x := range g.Waits {
		require.True(t, x.Holds, x.Path)
		waits[strings.TrimPrefix(x.Path, cmdtest.Below(w)+"/")] = x
	}
	require.Len(t, waits, 4)
	require.Len(t, g.Waits, 4, "at archive, nobody waits: each dialect has a holder")
	require.Equal(t, []string{bob, alice}, []string{waits["billing"].Session, waits["billing"].For})
	require.Equal(t, []string{alice, bob}, []string{waits["stock"].Session, waits["stock"].For})
	require.Contains(t, waits["report"].Owner, "carol")
	require.Equal(t, dead, waits["report"].For)
	require.Contains(t, waits["import"].Owner, "dave")
	require.Equal(t, "0x0", waits["import"].For, "it belongs to no session")

	text := cmdtest.On(t, w, "graph", cmdtest.Below(w)).Output()
	require.Contains(t, text, "4 waits, 0 circles, 1 possible one; ")
	require.Contains(t, text, "possible circle 1: these sessions wait for each other")
	require.NotContains(t, text, "circle 2")
	require.Regexp(t, `(?m)^unknown +`+bob+` +`+w.Path("billing")+` +\S+ +"alice.*" +`+alice+` +holds$`, text)
	require.Regexp(t, `(?m)^"alice.*" +`+alice+` +`+w.Path("stock")+` +\S+ +unknown +`+bob+` +holds$`, text)
	require.Regexp(t, `(?m)^"carol.*" .* +`+w.Path("report")+` +\S+ +"nightly report.*" +`+dead+` +holds$`, text)
}

func dotTellsTheScene(t *testing.T, w *zktest.World, alice, bob string) {
	text := cmdtest.On(t, w, "graph", "--dot", cmdtest.Below(w)).Gives(0)
	require.True(t, strings.HasPrefix(text, "digraph waits {"), text)
	require.Contains(t, text, `"`+alice+`" -> "`+bob+`" [label="`+w.Path("stock")+`"]`)
	require.Equal(t, 2, strings.Count(text, "color=orange"))
}

// found are the doctor's findings that are wrong, or the others.
func found(t *testing.T, d Diagnosis, wrong bool) (all []string) {
	t.Helper()
	for _, f := range d.Findings {
		require.Equal(t, f.Wrong, f.Do != "", f.Found)
		if f.Wrong == wrong {
			all = append(all, f.Where+": "+f.Found)
		}
	}
	return all
}

func doctorTellsTheScene(t *testing.T, w *zktest.World, alice, bob, dead string) {
	d := cmdtest.Parse[Diagnosis](t, cmdtest.On(t, w, "--json", "doctor", cmdtest.Below(w)).Gives(term.ExitFailed))
	require.ElementsMatch(t, []string{
		w.Path("archive") + ": " + twoDialects, w.Path("archive") + ": " + usedUp, w.Path("import") + ": " + noSession,
		w.Path("secret") + ": its children may not be listed with these credentials",
	}, found(t, d, true))
	require.Equal(t, 4, d.Wrong)
	fine := strings.Join(found(t, d, false), "\n")
	require.Regexp(t,
		`sessions (`+alice+`, `+bob+`|`+bob+`, `+alice+`) wait for each other .* for ever if each is one thread`, fine)
	require.Regexp(t,
		w.Path("report")+`: "nightly report .* \(`+dead+
			`\) holds, and its session is connected to none of the named servers`, fine)
	require.Equal(t, 1, strings.Count(fine, "its session is connected to none of the named servers"))

	text := strings.Join(strings.Fields(cmdtest.On(t, w, "doctor", cmdtest.Below(w)).Output()),
		" ") // lines may be broken anywhere
	require.Contains(t, text, "WRONG "+w.Path("archive")+" "+twoDialects)
	require.Contains(t, text, "WRONG "+w.Path("import")+" "+noSession)
	require.Contains(t, text, "("+dead+") holds, and its session is connected to none of the named servers")
	require.Contains(t, text, "4 things are wrong; ")
}
