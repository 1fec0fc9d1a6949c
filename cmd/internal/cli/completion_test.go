//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Behind the command of a lock, paths are no longer meant.
func TestEachOfSeveralPathsIsCompleted(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	require.Zero(t, on(t, w, "barrier", "set", w.Path("gate")).exit())
	for line, want := range map[string]string{
		"coorddemo lock --timeout 5 /a /b " + w.Path("ga"): w.Path("gate"),
		"coorddemo exporter /a " + w.Path("ga"):            w.Path("gate"),
		"coorddemo lock /a -- " + w.Path("ga"):             "",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"COMP_LINE=" + line, "ZK_SERVERS=" + w.ConnectString()}
		p := startAs(t, cmd)
		require.Equal(t, want, strings.TrimSpace(p.output()), line)
	}
}

func TestTheManualHasTheCommandLinesOfTheHelp(t *testing.T) {
	page := start(t, "__manual").output()
	require.Contains(t, page, `\fBlock [flags] <path> \&.\&.\&. -- <cmd> \&.\&.\&.\fP`+"\n.br\nCMD runs while")
	require.Contains(t, page, `\fBinspect [flags] <path>\fP`)
	require.Contains(t, page, `--command=STRING`)
}

// A completer may start the program, too. Its command lines are what they say.
func TestACommandLineIsCarriedOutWhereAShellCompletes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], append(target(w), "lock", w.Path("l"), "--", "echo", "held")...)
	cmd.Env = []string{"COMP_LINE=zkcoord lo"}
	p := startAs(t, cmd)
	require.Equal(t, "held", p.line())
	require.Equal(t, 0, p.exit())
}
