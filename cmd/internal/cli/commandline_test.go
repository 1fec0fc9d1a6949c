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

func TestALineForTheShellIsRunByTheShell(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	require.Zero(t, on(t, w, "queue", "put", w.Path("q"), "item").exit())
	for _, verb := range []string{"lock PATH/l", "elect PATH/e", "doublebarrier -n 1 PATH/b", "queue receive PATH/q"} {
		args := strings.Fields(strings.ReplaceAll(verb, "PATH", w.Path("")))
		p := on(t, w, append(args, "-c", `n=3 && echo "$COORD_PATH $((n + 1))" | cat; exit 5`)...)
		require.Equal(t, 5, p.exit(), verb)
		require.Equal(t, args[len(args)-1]+" 4", p.output(), verb)
	}
	require.Zero(t, on(t, w, "lock", "--command", "test -z \"$1\"", w.Path("l")).exit(), "before the path, too")
	require.Equal(t, "-c x", on(t, w, "lock", w.Path("l"), "--", "echo", "-c", "x").output(), "behind -- it is the command's")
}

func TestTheShellIsTheUsersOwn(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for shell, want := range map[string]string{"/bin/echo": "-c the line", "": "sh", "/no/such/shell": ""} {
		line := "the line"
		if shell == "" {
			line = `test -n "$0" && echo sh`
		}
		cmd := exec.Command(os.Args[0], append(target(w), "lock", w.Path("l"), "-c", line)...)
		cmd.Env = []string{"SHELL=" + shell}
		p := startAs(t, cmd)
		if want == "" {
			require.Equal(t, 127, p.exit())
			require.Contains(t, p.stderr.String(), shell)
			continue
		}
		require.Zero(t, p.exit(), shell)
		require.Equal(t, want, p.output())
	}
}

func TestOneCommandIsRunAndNotNoneOrTwo(t *testing.T) {
	for _, verb := range []string{"lock /l", "elect /l", "doublebarrier -n 1 /l", "queue receive /l"} {
		for rest, says := range map[string]string{"-c x -- true": "two commands", "-c x true": "two commands", "--": "no command", "--command=": "command"} {
			p := start(t, append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb+" "+rest)...)...)
			require.Equal(t, exitUsage, p.exit(), "%s %s", verb, rest)
			object := theObject(t, p, verb+" -- ")
			require.Contains(t, object["error"], says, "%s %s", verb, rest)
			require.Equal(t, "/l", object["path"])
		}
	}
}
