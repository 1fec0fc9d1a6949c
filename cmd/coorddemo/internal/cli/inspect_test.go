//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

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
		require.Contains(t, first["owner"], "coorddemo")
		require.Regexp(t, "^0x[0-9a-f]+$", first["session"])
		require.GreaterOrEqual(t, first["age"], second["age"])
		require.Equal(t, false, second["holds"])
		require.EqualValues(t, 2, second["position"])

		table := on(t, w, "inspect", w.Path("l"))
		require.Equal(t, 0, table.exit())
		text := table.output()
		require.Regexp(t, `(?m)^1 +holds +lock .*`+told[0], text)
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
	require.JSONEq(t, `{"path":"`+w.Path("none")+`","kind":"","dialect":"","contenders":[]}`, p.line())
	p = on(t, w, "inspect", w.Path("none"))
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.output(), "nobody holds it")
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
