//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// contend puts nodes of other programs' contenders into a directory.
func contend(t *testing.T, w *zktest.World, dir string, nodes map[string]string) {
	t.Helper()
	conn := w.Admin()
	for path := range prefixes(dir) {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil {
			require.ErrorIs(t, err, zk.ErrNodeExists)
		}
	}
	for name, data := range nodes {
		_, err := conn.Create(dir+"/"+name, []byte(data), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for name := range nodes {
			_ = conn.Delete(dir+"/"+name, -1)
		}
	})
}

// prefixes are the paths from the first name of path down to path itself.
func prefixes(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for at := 1; at < len(path); at++ {
			if path[at] == '/' && !yield(path[:at]) {
				return
			}
		}
		yield(path)
	}
}

const (
	guid1 = "11111111-1111-4111-8111-111111111111"
	guid2 = "22222222-2222-4222-8222-222222222222"
	guid3 = "33333333-3333-4333-8333-333333333333"
)

func TestInspectShowsWhoHoldsAndWhoWaits(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := on(t, w, sh(w.Path("l"), `echo $COORD_NODE $COORD_TOKEN; `+untilEOF)...)
		told := strings.Fields(holder.line())
		waiter := on(t, w, sh(w.Path("l"), "exit 0")...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)

		p := on(t, w, "inspect", w.Path("l"), "--json")
		require.Equal(t, 0, p.exit())
		r := parse[map[string]any](t, p.line())
		require.Equal(t, w.Path("l"), r["path"])
		require.Equal(t, "lock", r["kind"])
		require.Equal(t, "curator", r["dialect"])
		line := r["contenders"].([]any)
		require.Len(t, line, 2)
		first, second := line[0].(map[string]any), line[1].(map[string]any)
		require.Equal(t, true, first["holds"])
		require.EqualValues(t, 1, first["position"])
		require.Equal(t, "lock", first["kind"])
		require.Equal(t, told[0], first["node"])
		require.Regexp(t, "^sh ", first["owner"])
		require.Regexp(t, "^0x[0-9a-f]+$", first["session"])
		require.GreaterOrEqual(t, first["age"], second["age"])
		require.Equal(t, false, second["holds"])
		require.EqualValues(t, 2, second["position"])

		table := on(t, w, "inspect", w.Path("l"))
		require.Equal(t, 0, table.exit())
		text := table.output()
		require.Regexp(t, `(?m)^1 +holds +lock .* `+path.Base(told[0])+`$`, text)
		require.Regexp(t, `(?m)^2 +waits +lock `, text)

		require.NoError(t, holder.in.Close())
		require.Equal(t, 5, holder.exit())
		require.Equal(t, 0, waiter.exit())
	})
}

func TestAnEmptyLineIsNoError(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "--json", "inspect", w.Path("none"))
	require.Equal(t, 0, p.exit())
	require.JSONEq(t, `{"path":"`+w.Path("none")+`","kind":"","dialect":"","exists":false,"others":0,"sequence_left":2147483647,"odd":[],"contenders":[]}`, p.line())
	p = on(t, w, "inspect", w.Path("none"))
	require.Equal(t, 0, p.exit())
	require.Equal(t, w.Path("none")+": there is nothing", p.output())
}

func TestInspectReportsOtherNodesWhereNoContenderIs(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, name := range []string{"dir/a", "dir/b"} {
			require.Equal(t, 0, on(t, w, "barrier", "set", w.Path(name)).exit())
		}
		_, err := w.Admin().Create(w.Path("empty"), nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		p := on(t, w, "inspect", w.Path("dir"))
		require.Equal(t, 0, p.exit())
		require.Contains(t, p.output(), "nobody waits; 2 other nodes are below it")
		r := parse[report](t, on(t, w, "--json", "inspect", w.Path("dir")).line())
		require.True(t, r.Exists)
		require.Equal(t, 2, r.Others)
		require.Equal(t, w.Path("empty")+": nobody holds it, nobody waits", on(t, w, "inspect", w.Path("empty")).output())
	})
}

func TestInspectRecognisesKindsAndDialects(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, c := range []struct {
		nodes         map[string]string
		kind, dialect string
		holders       int
	}{
		{map[string]string{"_c_" + guid1 + "-lock-0000000001": "x"}, "lock", "curator", 1},
		{map[string]string{
			"_c_" + guid1 + "-__READ__0000000001": "x", "_c_" + guid2 + "-__READ__0000000002": "y", "_c_" + guid3 + "-__WRIT__0000000003": "z",
		}, "rwlock", "curator", 2},
		{map[string]string{"_c_" + guid1 + "-__WRIT__0000000001": "x", "_c_" + guid2 + "-lock-0000000002": "y"}, "rwlock", "curator", 1},
		{map[string]string{"_c_" + guid1 + "-latch-0000000001": "x"}, "latch", "curator", 1},
		{map[string]string{strings.ReplaceAll(guid1, "-", "") + "__lock__0000000001": "x"}, "lock", "kazoo", 1},
		{map[string]string{
			"_c_" + guid1 + "-lock-0000000001": "x", strings.ReplaceAll(guid2, "-", "") + "__lock__0000000002": "x",
		}, "lock", "mixed", 1},
		{map[string]string{"_c_" + guid1 + "-lock-0000000001": "x", "_c_" + guid2 + "-latch-0000000002": "y"}, "mixed", "curator", 1},
		{map[string]string{"something else": "x"}, "", "", 0},
	} {
		t.Run(c.kind+" "+c.dialect, func(t *testing.T) {
			dir := w.Path("d")
			contend(t, w, dir, c.nodes)
			p := on(t, w, "--json", "inspect", dir)
			require.Equal(t, 0, p.exit())
			r := parse[report](t, p.line())
			require.Equal(t, c.kind, r.Kind)
			require.Equal(t, c.dialect, r.Dialect)
			require.Len(t, r.holders(), c.holders)
		})
	}
}

func TestInspectShowsWhoIsInADoubleBarrier(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		look := func() (r report, text string) {
			text = on(t, w, "inspect", w.Path("b")).output()
			r = parse[report](t, on(t, w, "--json", "inspect", w.Path("b")).line())
			return r, text
		}
		first := member(t, w, 2, "exit 0")
		inBarrier(t, w, 1)
		r, text := look()
		require.Equal(t, "doublebarrier", r.Kind)
		require.Equal(t, &roundReport{Members: 2, Waiting: 1}, r.Round)
		require.Equal(t, "waits", r.Contenders[0].State)
		require.Empty(t, r.holders())
		require.Contains(t, text, "double barrier of 2, no round yet; 1 of 2 have come")

		second := member(t, w, 2, `echo $$; cat >/dev/null`)
		second.line()
		zktest.Eventually(t, soon, func() bool { return marked(t, w) == 1 }, "the first has finished")
		late := member(t, w, 2, "exit 0", "--next")
		inBarrier(t, w, 3)
		r, text = look()
		require.Equal(t, &roundReport{Number: 1, Open: true, Members: 2, Inside: 1, Finished: 1, Waiting: 1}, r.Round)
		states := []string{}
		for _, c := range r.Contenders {
			states = append(states, c.State)
			require.NotContains(t, c.Owner, "\n")
			require.Regexp(t, "^sh ", c.Owner)
		}
		require.Equal(t, []string{"finished", "inside", "waits"}, states)
		require.Len(t, r.holders(), 2)
		require.Contains(t, text, "round 1 is open: 1 inside, 1 finished, 0 gone; 1 for the next round")
		require.Regexp(t, `(?m)^2 +inside +member +"sh `, text)

		require.NoError(t, second.in.Close())
		require.Equal(t, 0, first.exit())
		require.Equal(t, 0, second.exit())
		late.signal(syscall.SIGTERM)
		require.Equal(t, 128+int(syscall.SIGTERM), late.exit())
		r, text = look()
		require.Equal(t, &roundReport{Number: 1, Members: 2}, r.Round)
		require.Empty(t, r.Contenders)
		require.Contains(t, text, "round 1 is over; nobody waits")
	})
}

func TestInspectShowsWhatIsInAQueue(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "first", strings.Repeat("ü", 100), "third")
		consumer := receive(t, w, `echo $$; sleep 600`)
		consumer.line()
		r := parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line())
		require.Equal(t, "queue", r.Kind)
		require.Empty(t, r.Contenders, "it has never waited")
		require.Equal(t, 3, r.Queue.Items)
		require.Equal(t, 1, r.Queue.InHand)
		require.Len(t, r.Queue.First, 3)
		inHand, next := r.Queue.First[0], r.Queue.First[1]
		require.True(t, inHand.InHand)
		require.Equal(t, "first", inHand.Data)
		require.Equal(t, 1, inHand.Deliveries)
		require.Equal(t, 100, inHand.Priority)
		require.Regexp(t, "^0x[0-9a-f]+$", inHand.Session)
		require.False(t, next.InHand)
		require.Equal(t, 200, next.Size)
		require.Equal(t, strings.Repeat("ü", 20)+"…", next.Data)

		text := on(t, w, "inspect", w.Path("q")).output()
		require.Contains(t, text, "queue of 3 items, 1 in hand")
		require.Regexp(t, `(?m)^entry-100-0000000000 +"first" +100 +1 +\S+ +for \S+ +"sh \S+ `+strconv.Itoa(consumer.pid())+`"`, text)
		consumer.signal(syscall.SIGTERM)
		require.Equal(t, 143, consumer.exit())
	})
}

func TestInspectShowsWhoConsumes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	require.Equal(t, 0, receive(t, w, "true").exit())
	one, two := receive(t, w, "echo works; exec sleep 600"), receive(t, w, "echo works; exec sleep 600")
	awaitContenders(t, w.Admin(), w.Path("q/consumers"), 2)
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line())
	require.Len(t, r.Contenders, 2)
	require.Equal(t, 2, r.Queue.Consumers)
	for _, c := range r.Contenders {
		require.Equal(t, "waits", c.State)
		require.Regexp(t, "^sh ", c.Owner)
	}
	require.Contains(t, on(t, w, "inspect", w.Path("q")).output(), "2 consumers")

	putItems(t, w, "item")
	worker, idle := one, two
	select {
	case <-one.lines:
	case <-two.lines:
		worker, idle = two, one
	}
	r = parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line())
	require.Len(t, r.Queue.First, 1)
	require.Contains(t, r.Queue.First[0].Owner, strconv.Itoa(worker.pid()))
	for _, c := range r.Contenders {
		want := "waits"
		if strings.HasSuffix(c.Owner, " "+strconv.Itoa(worker.pid())) {
			want = "works"
		}
		require.Equal(t, want, c.State, c.Owner)
	}
	require.NoError(t, w.Admin().Delete(w.Path("q/taken/"+r.Queue.First[0].Name), -1))
	require.Equal(t, exitLost, worker.exit())
	idle.signal(syscall.SIGTERM)
	require.Equal(t, 143, idle.exit())
}

func TestInspectShowsAClosedBarrier(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, 0, on(t, w, "barrier", "set", w.Path("b")).exit())
	require.Contains(t, on(t, w, "inspect", w.Path("b")).output(), "a closed barrier")
	require.Equal(t, "barrier", parse[report](t, on(t, w, "--json", "inspect", w.Path("b")).line()).Kind)
	require.Equal(t, 0, on(t, w, "barrier", "remove", w.Path("b")).exit())
	require.Contains(t, on(t, w, "inspect", w.Path("b")).output(), "there is nothing")
}

func TestVerbsThatAskSayWhatIsMissing(t *testing.T) {
	for _, verb := range []string{"inspect", "revoke"} {
		p := start(t, verb, "/l")
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), "ZK_SERVERS")
		require.Equal(t, exitUsage, start(t, verb).exit(), "no path")
		require.Equal(t, exitUsage, start(t, "--zk", "127.0.0.1:1", verb, "relative").exit())
		require.Equal(t, exitUnavailable, start(t, "--zk", closedPort(t), "--connect-timeout", "0.2", verb, "/l").exit())
	}
}

func TestTheAgeOfAContenderThatMayNotBeReadIsUnknown(t *testing.T) {
	r := report{Path: "/l"}
	unread := r.contender(1, coord.ContenderInfo{Node: "/l/x\u202ey"})
	require.Nil(t, unread.Age)
	r.Contenders = []contender{unread, r.contender(2, coord.ContenderInfo{Node: "/l/z", Since: time.Now()})}
	var table bytes.Buffer
	require.NoError(t, r.table(page{&table, 0}))
	require.Regexp(t, `unknown +unknown +unknown +"x\\u202ey"\n`, table.String())
	require.Regexp(t, `0s +none +z\n`, table.String())
}

func TestNamesOfItemsAreQuotedWhenThereIsSomethingUnseenInThem(t *testing.T) {
	q := &queueReport{Items: 1, First: []itemReport{{Name: "entry-\u202e"}}}
	var table bytes.Buffer
	require.NoError(t, q.table(page{&table, 0}))
	require.Contains(t, table.String(), `"entry-\u202e"`)
}
