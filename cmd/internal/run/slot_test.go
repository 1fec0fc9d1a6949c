//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// numbered is a command line for a number of two.
func numbered(w *zktest.World, script string, options ...string) []string {
	return append(append([]string{"slot"}, options...), w.Path("ids"), "2", "--", "sh", "-c", script)
}

func TestACommandHasANumberOfItsOwn(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		first := cmdtest.On(t, w, numbered(w, cmdtest.UntilEOF)...).Begun()
		require.Equal(t, "1",
			cmdtest.On(t, w, numbered(w, `test "$COORD_TOKEN" -gt 0 && echo $COORD_SLOT`, "--try")...).Gives(0))
		second := cmdtest.On(t, w, numbered(w, cmdtest.UntilEOF, "--durable", "host1", "--cooldown", "1h")...).Begun()
		cmdtest.On(t, w, numbered(w, "exit 9", "--try")...).Ends(term.ExitBusy, "held")
		cmdtest.On(t, w, numbered(w, "exit 9", "--timeout", "0.5")...).Ends(term.ExitTimeout, "no number", "held by")
		cmdtest.On(t, w, "slot", "--forget", "host1", w.Path("ids")).Ends(term.ExitBusy, "host1")
		p := cmdtest.On(t, w, "--json", "slot", "--list", w.Path("ids"))
		slots := cmdtest.Parse[struct{ Slots []map[string]any }](t, p.Line()).Slots
		require.Len(t, slots, 2)
		require.Equal(t, true, slots[0]["held"])
		require.Equal(t, "host1", slots[1]["for"])
		require.Positive(t, slots[1]["token"])
		third := cmdtest.On(t, w, numbered(w, `echo $COORD_SLOT`, "--verbose")...)
		third.Tells("held by")
		first.LetGo(5)
		require.Equal(t, "0", third.Gives(0))
		second.LetGo(5)
		// The number is kept for host1, also while another is there.
		require.Equal(t, "0", cmdtest.On(t, w, numbered(w, `echo $COORD_SLOT`)...).Gives(0))
		require.Equal(t, "1", cmdtest.On(t, w, numbered(w, `echo $COORD_SLOT`, "--durable", "host1")...).Gives(0))
		require.Contains(t, cmdtest.On(t, w, "slot", "--list", w.Path("ids")).Gives(0), "host1")
		cmdtest.On(t, w, "slot", "--forget", "host2", w.Path("ids")).Ends(term.ExitFailed, `no number is kept for "host2"`)
		require.Zero(t, cmdtest.On(t, w, "slot", "--forget", "host1", w.Path("ids")).Exit())
		require.NotContains(t, cmdtest.On(t, w, "slot", "--list", w.Path("ids")).Gives(0), "host1")
		holder := cmdtest.On(t, w, numbered(w, cmdtest.UntilEOF)...).Begun()
		cmdtest.On(t, w, "slot", w.Path("ids"), "3", "--", "true").
			Ends(0, "a holder was told that there are 2 slots here; this client, 3")
		holder.LetGo(5)
		require.Equal(t, "no slots", cmdtest.On(t, w, "slot", "--list", w.Path("others")).Gives(0))
	})
}

func TestACommandThatWasAskedForItsNumberMayOnlyHaveTidiedUp(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, numbered(w, `trap 'exit 0' TERM; echo begun; while :; do sleep 0.01; done`)...)
	require.Equal(t, "begun", p.Line())
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("ids"), "--wait").Exit())
	p.Ends(term.ExitLost, "asked for the number")
}

func TestANumberWhoseHolderMayNotBeReadIsListed(t *testing.T) {
	w := cmdtest.World(t)
	require.Zero(t, cmdtest.On(t, w, numbered(w, "true")...).Exit())
	holder := cmdtest.On(t, w,
		append([]string{"--auth", "digest:someone:secret", "--acl", "auth::cdrwa"}, numbered(w, cmdtest.UntilEOF)...)...).
		Begun()
	require.Regexp(t, `(?m)^0 +unknown +\d+ +unknown$`, cmdtest.On(t, w, "slot", "--list", w.Path("ids")).Gives(0))
	holder.LetGo(5)
}
