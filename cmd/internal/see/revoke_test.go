//go:build linux || darwin || freebsd || openbsd

package see

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	jobs "github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestARevokedCommandEndsByTerm(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `trap 'exit 9' TERM; `+cmdtest.Busy)...).Begun()
		require.Contains(t, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait").Gives(0), "asked")
		require.Equal(t, 9, p.Exit(), "the lock was not lost, so the command's status counts")
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestARevokedCommandThatIgnoresTermIsKilled(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn, "--kill-after", "100ms")...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l")).Exit())
	require.Equal(t, 137, p.Exit())
}

func TestRevocationMayBeIgnoredAndForced(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--on-revoke", "ignore")...)
	pid := p.Number()
	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", timeout)
	})
	require.True(t, cmdtest.Alive(pid))
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("l")).Output(), "asked to give up")
	forced := cmdtest.On(t, w, "revoke", w.Path("l"), "--force-after", "0.1")
	require.Regexp(t, "deleted by force: "+w.Path("l")+"/.*; the former holder may still act", forced.Gives(0))
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.RequireGone(t, pid)

	p = cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--on-revoke", "ignore")...).Begun()
	forced = cmdtest.On(t, w, "--json", "revoke", w.Path("l"), "--force-after", "0.1")
	require.Equal(t, true, cmdtest.Parse[map[string]any](t, forced.Line())["forced"])
	require.Equal(t, term.ExitLost, p.Exit())
}

func TestARequestThatCameBeforeTheGrantEndsTheCommandSoon(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).InLine(w, w.Path("l"), 2)
	node := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line()).Contenders[1].Node
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--node", path.Base(node)).Exit())
	require.NoError(t, first.In.Close())
	require.Equal(t, 5, first.Exit(), "the holder was not asked")
	require.Equal(t, 143, waiter.Exit())
}

func TestNamesOfOthersAreShownPlainlyWhenTheyAreBroken(t *testing.T) {
	node := "/g/\u202efdp"
	text := new(BreakVerb).told([]look.Contender{{Node: node}}, []string{node, "/g/b"})
	require.Equal(t, "deleted \"/g/\\u202efdp\"\ndeleted /g/b\n", text)
	require.NotContains(t, new(BreakVerb).told([]look.Contender{{Node: node}}, nil), node)
}

func TestNoHolderToAskIsNoError(t *testing.T) {
	w := cmdtest.World(t)
	require.Zero(t, cmdtest.On(t, w, "lock", w.Path("l"), "--", "true").Exit())
	require.Contains(t, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait").Gives(0), "nobody holds")
	require.Contains(t, cmdtest.On(t, w, "break", "--yes", w.Path("l")).Gives(0), "nobody holds")
	p := cmdtest.On(t, w, "--json", "revoke", w.Path("l"))
	require.Equal(t, 0, p.Exit())
	require.JSONEq(t, `{"path":"`+w.Path("l")+`","asked":[],"gone":false,"forced":false}`, p.Line())
	require.Equal(t, term.ExitFailed, cmdtest.On(t, w, "revoke", w.Path("l"), "--node", "other").Exit())
}

func TestACandidateThatCannotBeAskedIsAFailure(t *testing.T) {
	w := cmdtest.World(t)
	leader := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", cmdtest.UntilEOF).Begun()
	waiter := cmdtest.On(t, w, "elect", w.Path("e"), "--", "true").InLine(w, w.Path("e"), 2)
	node := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("e")).Line()).Contenders[1].Node
	require.EqualValues(t, term.ExitFailed,
		cmdtest.Parse[map[string]any](t,
			cmdtest.On(t, w, "--json", "revoke", "--node", node, w.Path("e")).Gives(term.ExitFailed))["status"])
	for _, verb := range [][]string{{"revoke"}, {"break", "--yes"}} {
		cmdtest.On(t, w, append(verb, "--node", "nobody", w.Path("e"))...).
			Ends(term.ExitFailed, "there is no contender nobody")
	}
	leader.LetGo(5)
	require.Zero(t, waiter.Exit())
}

// Holders are waited for at the same time, not one after the other.
func TestAllHoldersHaveTheSameTimeToGiveUp(t *testing.T) {
	w := cmdtest.World(t)
	const each = time.Second
	cmdtest.InTime(t, 3*each, func() time.Duration {
		cmdtest.Contend(t, w, w.Path("l"), map[string]string{
			"_c_" + cmdtest.Guid1 + "-__READ__0000000001": "x", "_c_" + cmdtest.Guid2 + "-__READ__0000000002": "y",
			"_c_" + cmdtest.Guid3 + "-__READ__0000000003": "z",
		})
		begun := time.Now()
		require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--force-after", each.String()).Exit())
		names, _, err := w.Admin().Children(w.Path("l"))
		require.NoError(t, err)
		require.Empty(t, names)
		return time.Since(begun)
	})
}

// inHand is what inspect says of the items that consumers have.
func inHand(t *testing.T, w *zktest.World) (items []look.ItemReport) {
	t.Helper()
	shown := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
	for _, item := range shown.Queue.First {
		if item.InHand {
			items = append(items, item)
		}
	}
	return items
}

func TestALoneConsumersItemIsTracedAndFreed(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		stuck := cmdtest.Receive(t, w, cmdtest.Busy).Begun()
		items := inHand(t, w)
		require.Len(t, items, 1)
		require.Contains(t, items[0].Owner, " "+strconv.Itoa(stuck.Pid()), "the process that has it")

		asked := cmdtest.On(t, w, "--json", "revoke", "--wait", w.Path("q"))
		require.Zero(t, asked.Exit())
		object := cmdtest.Parse[map[string]any](t, asked.Line())
		require.Equal(t, []any{w.Path("q/taken/" + items[0].Name)}, object["asked"])
		require.Equal(t, true, object["gone"])
		require.Equal(t, false, object["forced"])
		stuck.Ends(143, "another client asked for")
		require.Equal(t, "item", cmdtest.Receive(t, w, "cat").Gives(0), "the item went back")
	})
}

func TestACommandThatSucceedsWhenItsItemIsAskedForGivesTheItemBack(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	tidy := cmdtest.Receive(t, w, `trap 'exit 0' TERM; `+cmdtest.Busy).Begun()
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	tidy.Ends(term.ExitLost, "asked for the item")
	require.Equal(t, "1", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())

	end := filepath.Join(t.TempDir(), "end")
	deaf := cmdtest.Receive(t, w, "echo $$; until test -e "+end+"; do sleep 0.2; done", "--on-revoke", "ignore").Begun()
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.Zero(t, deaf.Exit())
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
}

func TestBreakTakesAnItemFromItsConsumer(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		stuck := cmdtest.Receive(t, w, cmdtest.Stubborn)
		pid := stuck.Number()
		require.Len(t,
			cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "--json", "break", "--yes", w.Path("q")).Gives(0))["broken"], 1)
		require.Equal(t, term.ExitLost, stuck.Exit())
		cmdtest.RequireGone(t, pid)
		require.Equal(t, "item", cmdtest.Receive(t, w, "cat").Output())
	})
}

func TestAnItemInHandIsNamedInSeveralWays(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "first")
	first := cmdtest.Receive(t, w, cmdtest.Busy).Begun()
	item := inHand(t, w)[0].Name
	for _, name := range []string{item, w.Path("q/taken/" + item), w.Path("q/entries/" + item)} {
		cmdtest.PutItems(t, w, "second")
		second := cmdtest.Receive(t, w, cmdtest.Busy, "--on-revoke", "ignore").Begun()
		require.Zero(t, cmdtest.On(t, w, "--json", "break", "--yes", "--node", inHand(t, w)[1].Name, w.Path("q")).Exit())
		require.Equal(t, term.ExitLost, second.Exit(), "only the one that was named")
		require.Equal(t, "second", cmdtest.Receive(t, w, "cat").Output())
		require.Equal(t, []any{w.Path("q/taken/" + item)},
			cmdtest.Parse[map[string]any](t,
				cmdtest.On(t, w, "--json", "revoke", "--node", name, w.Path("q")).Gives(0))["asked"], name)
		require.Equal(t, 143, first.Exit())
		first = cmdtest.Receive(t, w, cmdtest.Busy).Begun()
	}
	cmdtest.On(t, w, "revoke", "--node", "entry-100-0000009999", w.Path("q")).
		Ends(term.ExitFailed, "there is no contender")
	require.Len(t, inHand(t, w), 1, "nobody was asked")
	require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("q")).Exit())
	require.Equal(t, 143, first.Exit())
	nobody := cmdtest.On(t, w, "revoke", w.Path("q"))
	require.Zero(t, nobody.Exit())
	require.Contains(t, nobody.Output(), "nobody holds")
}

// A misspelt path must not look like good health.
func TestAPathThatDoesNotExistIsNotTakenForAnEmptyOne(t *testing.T) {
	w := cmdtest.World(t)
	for _, verb := range [][]string{{"ls"}, {"graph"}, {"revoke"}, {"break", "--yes"}, {"revoke", "--wait"}} {
		cmdtest.On(t, w, append(verb, w.Path("typo"))...).Ends(term.ExitAbsent, "there is no node "+w.Path("typo"))
	}
	doctor := cmdtest.On(t, w, "doctor", w.Path("typo"))
	require.Equal(t, term.ExitFailed, doctor.Exit())
	require.Contains(t, doctor.Output(), "there is no such node")
	require.Zero(t, cmdtest.On(t, w, "ls", "/").Exit())
}

func TestAConsumerIsAskedForAllThatItHas(t *testing.T) {
	w := cmdtest.World(t)
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

func TestBreakTakesTheLockFromItsHolder(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn, "--kill-after", "100ms")...)
		pid := p.Number()
		next := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 4")...).InLine(w, w.Path("l"), 2)
		require.Len(t,
			cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "--json", "break", "--yes", w.Path("l")).Gives(0))["broken"], 1)
		require.Equal(t, 4, next.Exit())
		require.Equal(t, term.ExitLost, p.Exit())
		cmdtest.RequireGone(t, pid)
	})
}

// A lease is not a child of the semaphore's path.
func TestALeaseIsNamedByItsNodesName(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.Busy, "--slots", "2")...).Begun()
	r, _ := cmdtest.Seen[look.Report](t, w, w.Path("s"))
	cmdtest.On(t, w, "revoke", "--wait", "--node", path.Base(r.Contenders[0].Node), w.Path("s")).Ends(0)
	require.Equal(t, 143, p.Exit())
}

// If somebody names a ledger, but may mean the jobs below it, nothing is done,
// and the exit status says so.
func TestRevokeAndBreakNameWhatIsHeldBelowThePath(t *testing.T) {
	w := cmdtest.World(t)
	c := cmdtest.Open(t, w, coord.WithIdentity("host7"))
	_, _, err := cmdtest.Must(jobs.New(c, w.Path("jobs"))).Begin(t.Context(), "invoice")
	require.NoError(t, err)
	for _, verb := range [][]string{{"revoke"}, {"break", "--yes"}} {
		for _, at := range []string{w.Path("jobs"), cmdtest.Below(w)} {
			cmdtest.On(t, w, append(verb, at)...).
				Ends(term.ExitFailed, "nobody holds "+at+" itself, and nothing was done; held below it: "+w.Path("jobs")+"/keys/",
					`invoice by "host7`)
		}
	}
}
