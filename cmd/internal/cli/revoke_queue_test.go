//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// inHand is what inspect tells of the items that consumers have.
func inHand(t *testing.T, w *zktest.World) (items []itemReport) {
	t.Helper()
	for _, item := range parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line()).Queue.First {
		if item.InHand {
			items = append(items, item)
		}
	}
	return items
}

func TestALoneConsumersItemIsTracedAndFreed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		stuck := receive(t, w, busy)
		stuck.line()
		items := inHand(t, w)
		require.Len(t, items, 1)
		require.Contains(t, items[0].Owner, " "+strconv.Itoa(stuck.pid()), "the process that has it")

		asked := on(t, w, "--json", "revoke", "--wait", w.Path("q"))
		require.Zero(t, asked.exit())
		object := parse[map[string]any](t, asked.line())
		require.Equal(t, []any{w.Path("q/taken/" + items[0].Name)}, object["asked"])
		require.Equal(t, true, object["gone"])
		require.Equal(t, 143, stuck.exit(), "the command ended by TERM")
		require.Contains(t, stuck.stderr.String(), "another client asked for")
		next := receive(t, w, "cat")
		require.Zero(t, next.exit())
		require.Equal(t, "item", next.output(), "the item went back")
	})
}

func TestACommandThatSucceedsWhenItsItemIsAskedForGivesTheItemBack(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	tidy := receive(t, w, `trap 'exit 0' TERM; `+busy)
	tidy.line()
	require.Zero(t, on(t, w, "revoke", w.Path("q")).exit())
	require.Equal(t, exitLost, tidy.exit())
	require.Contains(t, tidy.stderr.String(), "asked for the item")
	require.Equal(t, "1", on(t, w, "queue", "len", w.Path("q")).output())

	end := filepath.Join(t.TempDir(), "end")
	deaf := receive(t, w, "echo $$; until test -e "+end+"; do sleep 0.02; done", "--on-revoke", "ignore")
	deaf.line()
	require.Zero(t, on(t, w, "revoke", w.Path("q")).exit())
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.Zero(t, deaf.exit())
	require.Equal(t, "0", on(t, w, "queue", "len", w.Path("q")).output())
}

func TestBreakTakesAnItemFromItsConsumer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		stuck := receive(t, w, stubborn)
		pid := stuck.number()
		b := on(t, w, "--json", "break", "--yes", w.Path("q"))
		require.Zero(t, b.exit())
		require.Len(t, parse[map[string]any](t, b.line())["broken"], 1)
		require.Equal(t, exitLost, stuck.exit())
		requireGone(t, pid)
		require.Equal(t, "item", receive(t, w, "cat").output())
	})
}

func TestAnItemInHandIsNamedInSeveralWays(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "first")
	first := receive(t, w, busy)
	first.line()
	item := inHand(t, w)[0].Name
	for _, name := range []string{item, w.Path("q/taken/" + item), w.Path("q/entries/" + item)} {
		putItems(t, w, "second")
		second := receive(t, w, busy, "--on-revoke", "ignore")
		second.line()
		p := on(t, w, "--json", "break", "--yes", "--node", inHand(t, w)[1].Name, w.Path("q"))
		require.Zero(t, p.exit())
		require.Equal(t, exitLost, second.exit(), "only the one that was named")
		require.Equal(t, "second", receive(t, w, "cat").output())
		p = on(t, w, "--json", "revoke", "--node", name, w.Path("q"))
		require.Zero(t, p.exit(), name)
		require.Equal(t, []any{w.Path("q/taken/" + item)}, parse[map[string]any](t, p.line())["asked"], name)
		require.Equal(t, 143, first.exit())
		first = receive(t, w, busy)
		first.line()
	}
	unknown := on(t, w, "revoke", "--node", "entry-100-0000009999", w.Path("q"))
	require.Equal(t, exitFailed, unknown.exit())
	require.Contains(t, unknown.stderr.String(), "there is no contender")
	require.Len(t, inHand(t, w), 1, "nobody was asked")
	require.Zero(t, on(t, w, "revoke", w.Path("q")).exit())
	require.Equal(t, 143, first.exit())
	nobody := on(t, w, "revoke", w.Path("q"))
	require.Zero(t, nobody.exit())
	require.Contains(t, nobody.output(), "nobody holds")
}

func TestAConsumerIsAskedForAllThatItHas(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	one, two := receive(t, w, busy), receive(t, w, busy)
	awaitContenders(t, w.Admin(), w.Path("q/consumers"), 2)
	putItems(t, w, "a", "b")
	one.line()
	two.line()
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line())
	for _, c := range r.Contenders {
		if strings.HasSuffix(c.Owner, " "+strconv.Itoa(two.pid())) {
			require.Zero(t, on(t, w, "revoke", "--node", c.Node, w.Path("q")).exit())
		}
	}
	require.Equal(t, 143, two.exit())
	require.True(t, alive(one.pid()))
	require.Zero(t, on(t, w, "revoke", w.Path("q")).exit())
	require.Equal(t, 143, one.exit())
}
