package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// erased is what erases a line.
const erased = "\r\x1b[K"

// requireOneLine requires that what is on a terminal until the text is one line
// that was rewritten in place, and is erased.
func requireOneLine(t *testing.T, tty *cmdtest.Terminal, until string) {
	t.Helper()
	before, _, there := strings.Cut(tty.Screen.String(), until)
	require.True(t, there)
	require.NotContains(t, before, "\n")
	require.True(t, strings.HasSuffix(before, erased), "%q", before)
	require.Greater(t, strings.Count(before, erased), 1, "it was rewritten")
	for _, line := range strings.Split(before, erased) {
		require.Less(t, term.Cells(line), columns, "a longer line would break")
	}
}

// columns is the width of the terminals of these tests.
const columns = 200

// waits runs a command line that waits on a terminal.
func waits(t *testing.T, w *zktest.World, args ...string) *cmdtest.Terminal {
	t.Helper()
	return cmdtest.OnTerminal(t, w, "sh", append([]string{
		"-c", fmt.Sprintf(`stty cols %d rows 24; exec "$@"`, columns), "sh",
		cmdtest.Coorddemo(t), "--session-timeout", "20s",
	}, args...)...)
}

func TestAPersonThatWaitsSeesForWhomInALineThatIsErased(t *testing.T) {
	for verb, says := range map[string]string{
		"lock":            ": place 2 in the line; held by \"sh ",
		"lock --shared":   ": place 2 in the line; held by \"sh ",
		"lock --slots 1":  ": place 2 in the line; held by \"sh ",
		"lock --one-node": ": held by \"sh ",
		"elect":           ": place 2 in the line; held by \"sh ",
		"slot 1":          ": place 1 in the line; held by \"sh ",
	} {
		t.Run(verb, func(t *testing.T) {
			w := cmdtest.World(t)
			words := append(strings.Fields(verb), w.Path("l"))
			if verb == "slot 1" {
				words = []string{"slot", w.Path("l"), "1"}
			}
			first := words
			if verb == "lock --shared" {
				first = []string{"lock", w.Path("l")}
			}
			holder := cmdtest.On(t, w, append(first, "--", "sh", "-c", cmdtest.UntilEOF)...).Begun()
			tty := waits(t, w, append(words, "--", "echo", "my turn")...)
			tty.Sees("coorddemo: waiting 1s for /t-")
			tty.Sees(says)
			require.NoError(t, holder.In.Close())
			tty.Sees("my turn")
			require.NoError(t, tty.Cmd.Wait())
			requireOneLine(t, tty, "my turn")
		})
	}
}

func TestAPersonThatWaitsForAnItemSeesTheQueue(t *testing.T) {
	w := cmdtest.World(t)
	tty := waits(t, w, "queue", "receive", w.Path("q"), "--", "cat")
	tty.Sees(": 0 items, 0 in hand")
	cmdtest.PutItems(t, w, "the item")
	tty.Sees("the item")
	require.NoError(t, tty.Cmd.Wait())
	requireOneLine(t, tty, "the item")
}

func TestAPersonThatWaitsForAJobSeesWhoDoesIt(t *testing.T) {
	w := cmdtest.World(t)
	other := cmdtest.On(t, w, "once", w.Path("o"), "key", "--", "sh", "-c", cmdtest.UntilEOF).Begun()
	tty := waits(t, w, "once", w.Path("o"), "key", "--", "echo", "my turn")
	tty.Sees(": place 2 in the line; held by \"sh ")
	other.LetGo(5)
	tty.Sees("my turn")
	require.NoError(t, tty.Cmd.Wait())
	requireOneLine(t, tty, "my turn")
}

func TestAPersonInARoundSeesWhoIsThereAtBothEnds(t *testing.T) {
	w := cmdtest.World(t)
	tty := waits(t, w, "doublebarrier", "-n", "2", "--results", w.Path("b"), "--", "sh", "-c",
		`echo started; echo mine >"$COORD_RESULT"`)
	tty.Sees(": 1 of 2 have come, first ")
	second := cmdtest.Member(t, w, 2, cmdtest.UntilEOF)
	tty.Sees("started")
	requireOneLine(t, tty, "started")
	tty.Sees(": round 1 is under way: 2 of its 2 ")
	second.LetGo(5)
	tty.Sees("mine")
	require.Error(t, tty.Cmd.Wait())
	_, atEnd, _ := strings.Cut(tty.Screen.String(), "started\r\n")
	before, _, _ := strings.Cut(atEnd, "mine")
	require.NotContains(t, before, "\n")
	require.Regexp(t, `\r\x1b\[K\d\t"?$`, before, "the results begin a line")
}

func TestALineThatIsTooLongIsCut(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	tty := cmdtest.OnTerminal(t, w, "sh", "-c", `stty cols 40 rows 24; exec $D $T lock `+w.Path("l")+` -- echo my turn`)
	tty.Sees("coorddemo: waiting 3s for /")
	require.NoError(t, holder.In.Close())
	tty.Sees("my turn")
	for _, line := range strings.Split(strings.Split(tty.Screen.String(), "my turn")[0], erased) {
		require.Less(t, term.Cells(line), 40)
	}
}

func TestAnInterruptedWaitLeavesACleanLineAlsoWhenTheServersAreSilent(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"answer": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			w := zktest.NewPrivate(t, zktest.Embedded)
			cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
			tty := waits(t, w, "lock", w.Path("l"), "--", "echo", "never")
			tty.Sees("place 2 in the line")
			if silent {
				w.Freeze()
				defer w.Thaw()
			}
			tty.Press(cmdtest.Interrupt)
			require.Error(t, tty.Cmd.Wait())
			require.Equal(t, 130, tty.Cmd.ProcessState.ExitCode())
			zktest.Eventually(t, cmdtest.Soon, func() bool { return strings.HasSuffix(tty.Screen.String(), erased) },
				"the line is erased")
		})
	}
}

func TestAWaitInVainErasesItsLineBeforeItSaysSo(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
	tty := waits(t, w, "lock", "--timeout", "3s", w.Path("l"), "--", "echo", "never")
	tty.Sees("no turn")
	require.Error(t, tty.Cmd.Wait())
	requireOneLine(t, tty, "coorddemo: no turn")
}

func TestAStoppedWaitLeavesTheTerminalToTheShell(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	tty := cmdtest.OnShell(t, w, `$D $T lock `+w.Path("l")+" -- echo my-''turn\n")
	tty.Sees("place 2 in the line")
	tty.Press(cmdtest.Stop)
	tty.Answers("bg; echo back-$((1+1))\n", "back-2")
	require.NoError(t, holder.In.Close())
	tty.Sees("my-turn")
	_, background, _ := strings.Cut(tty.Screen.String(), "back-2")
	require.NotContains(t, background, "waiting")
	require.NotContains(t, background, erased)
}

// A wait as long as the one whose end is told is long enough for the line.
func TestNoLineIsWrittenWithQuietOrWhereStandardErrorIsNoTerminal(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
	quiet := waits(t, w, "lock", "--quiet", "--timeout", "3s", w.Path("l"), "--", "echo", "never")
	piped := cmdtest.On(t, w, "lock", "--timeout", "3s", w.Path("l"), "--", "echo", "never")
	require.Equal(t, term.ExitTimeout, piped.Exit())
	require.True(t, strings.HasPrefix(piped.Stderr.String(), "coorddemo: no turn"), piped.Stderr.String())
	require.Error(t, quiet.Cmd.Wait())
	quiet.Sees("no turn")
	require.True(t, strings.HasPrefix(quiet.Screen.String(), "coorddemo: no turn"), quiet.Screen.String())
}
