//go:build linux || darwin || freebsd || openbsd

package see

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// inHand is what inspect tells of the items that consumers have.
func inHand(t *testing.T, w *zktest.World) (items []look.ItemReport) {
	t.Helper()
	for _, item := range cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line()).Queue.First {
		if item.InHand {
			items = append(items, item)
		}
	}
	return items
}

func TestALoneConsumersItemIsTracedAndFreed(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		stuck := cmdtest.Receive(t, w, cmdtest.Busy)
		stuck.Line()
		items := inHand(t, w)
		require.Len(t, items, 1)
		require.Contains(t, items[0].Owner, " "+strconv.Itoa(stuck.Pid()), "the process that has it")

		asked := cmdtest.On(t, w, "--json", "revoke", "--wait", w.Path("q"))
		require.Zero(t, asked.Exit())
		object := cmdtest.Parse[map[string]any](t, asked.Line())
		require.Equal(t, []any{w.Path("q/taken/" + items[0].Name)}, object["asked"])
		require.Equal(t, true, object["gone"])
		require.Equal(t, false, object["forced"])
		require.Equal(t, 143, stuck.Exit(), "the command ended by TERM")
		require.Contains(t, stuck.Stderr.String(), "another client asked for")
		next := cmdtest.Receive(t, w, "cat")
		require.Zero(t, next.Exit())
		require.Equal(t, "item", next.Output(), "the item went back")
	})
}

func TestACommandThatSucceedsWhenItsItemIsAskedForGivesTheItemBack(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.PutItems(t, w, "item")
	tidy := cmdtest.Receive(t, w, `trap 'exit 0' TERM; `+cmdtest.Busy)
	tidy.Line()
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.Equal(t, term.ExitLost, tidy.Exit())
	require.Contains(t, tidy.Stderr.String(), "asked for the item")
	require.Equal(t, "1", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())

	end := filepath.Join(t.TempDir(), "end")
	deaf := cmdtest.Receive(t, w, "echo $$; until test -e "+end+"; do sleep 0.2; done", "--on-revoke", "ignore")
	deaf.Line()
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.Zero(t, deaf.Exit())
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
}

func TestBreakTakesAnItemFromItsConsumer(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		stuck := cmdtest.Receive(t, w, cmdtest.Stubborn)
		pid := stuck.Number()
		b := cmdtest.On(t, w, "--json", "break", "--yes", w.Path("q"))
		require.Zero(t, b.Exit())
		require.Len(t, cmdtest.Parse[map[string]any](t, b.Line())["broken"], 1)
		require.Equal(t, term.ExitLost, stuck.Exit())
		cmdtest.RequireGone(t, pid)
		require.Equal(t, "item", cmdtest.Receive(t, w, "cat").Output())
	})
}

func TestAnItemInHandIsNamedInSeveralWays(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.PutItems(t, w, "first")
	first := cmdtest.Receive(t, w, cmdtest.Busy)
	first.Line()
	item := inHand(t, w)[0].Name
	for _, name := range []string{item, w.Path("q/taken/" + item), w.Path("q/entries/" + item)} {
		cmdtest.PutItems(t, w, "second")
		second := cmdtest.Receive(t, w, cmdtest.Busy, "--on-revoke", "ignore")
		second.Line()
		p := cmdtest.On(t, w, "--json", "break", "--yes", "--node", inHand(t, w)[1].Name, w.Path("q"))
		require.Zero(t, p.Exit())
		require.Equal(t, term.ExitLost, second.Exit(), "only the one that was named")
		require.Equal(t, "second", cmdtest.Receive(t, w, "cat").Output())
		p = cmdtest.On(t, w, "--json", "revoke", "--node", name, w.Path("q"))
		require.Zero(t, p.Exit(), name)
		require.Equal(t, []any{w.Path("q/taken/" + item)}, cmdtest.Parse[map[string]any](t, p.Line())["asked"], name)
		require.Equal(t, 143, first.Exit())
		first = cmdtest.Receive(t, w, cmdtest.Busy)
		first.Line()
	}
	unknown := cmdtest.On(t, w, "revoke", "--node", "entry-100-0000009999", w.Path("q"))
	require.Equal(t, term.ExitFailed, unknown.Exit())
	require.Contains(t, unknown.Stderr.String(), "there is no contender")
	require.Len(t, inHand(t, w), 1, "nobody was asked")
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.Equal(t, 143, first.Exit())
	nobody := cmdtest.On(t, w, "revoke", w.Path("q"))
	require.Zero(t, nobody.Exit())
	require.Contains(t, nobody.Output(), "nobody holds")
}

func TestAConsumerIsAskedForAllThatItHas(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	one, two := cmdtest.Receive(t, w, cmdtest.Busy), cmdtest.Receive(t, w, cmdtest.Busy)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("q/consumers"), 2)
	cmdtest.PutItems(t, w, "a", "b")
	one.Line()
	two.Line()
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
	for _, c := range r.Contenders {
		if strings.HasSuffix(c.Owner, " "+strconv.Itoa(two.Pid())) {
			require.Zero(t, cmdtest.On(t, w, "revoke", "--node", c.Node, w.Path("q")).Exit())
		}
	}
	require.Equal(t, 143, two.Exit())
	require.True(t, cmdtest.Alive(one.Pid()))
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.Equal(t, 143, one.Exit())
}
