package see

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// On a terminal, or with COLUMNS, lines end where the screen does; in a pipe
// names are whole.
func TestWhatPeopleSeeFitsOnTheirScreens(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.Tangle(t, w)
	cmdtest.EveryRecipe(t, w)
	long := w.Path("locks/" + strings.Repeat("department/", 8) + "report")
	for _, guid := range []string{cmdtest.Guid1, cmdtest.Guid2} {
		cmdtest.Contend(t, w, long, map[string]string{"_c_" + guid + "-lock-000000000" + guid[:1]: strings.Repeat("application ", 8) + guid})
	}
	for _, verb := range []string{
		"inspect " + long, "inspect " + w.Path("app/jobs"), "inspect " + w.Path("kazoo"), "inspect " + w.Path("mixed"),
		"inspect " + w.Path("app/round"), "inspect " + w.Path("app/licence"), "ls " + cmdtest.Below(w), "graph " + cmdtest.Below(w), "doctor " + cmdtest.Below(w),
	} {
		for _, columns := range []int{80, 100} {
			cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), strings.Fields(verb)...)...)
			cmd.Env = []string{fmt.Sprint("COLUMNS=", columns)}
			for line := range strings.SplitSeq(cmdtest.StartAs(t, cmd).Output(), "\n") {
				require.LessOrEqual(t, term.Cells(line), columns, "%s: %s", verb, line)
			}
		}
	}
	whole := cmdtest.On(t, w, "inspect", long).Output()
	require.Contains(t, whole, long+": lock")
	require.Regexp(t, `(?m) _c_`+cmdtest.Guid2+`-lock-0000000002$`, whole)

	tty := cmdtest.OnTerminal(t, w, cmdtest.Coorddemo(t), "inspect", long)
	tty.Sees("0002\r\n")
	screen := strings.TrimRight(tty.Screen.String(), "\r\n")
	require.Contains(t, screen, "…")
	for line := range strings.SplitSeq(screen, "\r\n") {
		require.LessOrEqual(t, term.Cells(line), 80, line)
	}
}
