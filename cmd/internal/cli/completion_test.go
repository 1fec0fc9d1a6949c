//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Behind the command of a lock, paths are no longer meant.
func TestEachOfSeveralPathsIsCompleted(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	require.Zero(t, cmdtest.On(t, w, "barrier", "set", w.Path("gate")).Exit())
	for line, want := range map[string]string{
		"coorddemo lock --timeout 5 /a /b " + w.Path("ga"): w.Path("gate"),
		"coorddemo exporter /a " + w.Path("ga"):            w.Path("gate"),
		"coorddemo lock /a -- " + w.Path("ga"):             "",
	} {
		cmd := exec.Command(cmdtest.Coorddemo(t))
		cmd.Env = []string{"COMP_LINE=" + line, "ZK_SERVERS=" + w.ConnectString()}
		p := cmdtest.StartAs(t, cmd)
		require.Equal(t, want, strings.TrimSpace(p.Output()), line)
	}
}

func TestTheManualHasTheCommandLinesOfTheHelp(t *testing.T) {
	t.Parallel()
	page := cmdtest.Start(t, "__manual").Output()
	require.Contains(t, page, `\fBlock [flags] <path> \&.\&.\&. -- <cmd> \&.\&.\&.\fP`+"\n.br\nCMD runs while")
	require.Contains(t, page, `\fBinspect [flags] <path>\fP`)
	require.Contains(t, page, `--command=STRING`)
	for section, line := range map[string]string{
		"EXIT STATUS": "75: with --try", "ENVIRONMENT": "ZK_SERVERS", "EXAMPLES": "coorddemo lock --try /locks/report", "SEE ALSO": "flock(1)",
	} {
		_, text, found := strings.Cut(page, "\n.SH "+section+"\n")
		require.True(t, found, section)
		text, _, _ = strings.Cut(text, "\n.SH ")
		require.Contains(t, strings.ReplaceAll(text, `\-`, "-"), line)
	}
}

// A completer may start the program, too. Its command lines are what they say.
func TestACommandLineIsCarriedOutWhereAShellCompletes(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "lock", w.Path("l"), "--", "echo", "held")...)
	cmd.Env = []string{"COMP_LINE=zkcoord lo"}
	p := cmdtest.StartAs(t, cmd)
	require.Equal(t, "held", p.Line())
	require.Equal(t, 0, p.Exit())
}
