//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALineForTheShellIsRunByTheShell(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	require.Zero(t, cmdtest.On(t, w, "queue", "put", w.Path("q"), "item").Exit())
	for _, verb := range []string{"lock PATH/l", "elect PATH/e", "doublebarrier -n 1 PATH/b", "queue receive PATH/q"} {
		args := strings.Fields(strings.ReplaceAll(verb, "PATH", w.Path("")))
		p := cmdtest.On(t, w, append(args, "-c", `n=3 && echo "$COORD_PATH $((n + 1))" | cat; exit 5`)...)
		require.Equal(t, 5, p.Exit(), verb)
		require.Equal(t, args[len(args)-1]+" 4", p.Output(), verb)
	}
	require.Zero(t, cmdtest.On(t, w, "lock", "--command", "test -z \"$1\"", w.Path("l")).Exit(), "before the path, too")
	require.Equal(t, "-c x", cmdtest.On(t, w, "lock", w.Path("l"), "--", "echo", "-c", "x").Output(), "behind -- it is the command's")
}

func TestTheShellIsTheUsersOwn(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for shell, want := range map[string]string{"/bin/echo": "-c the line", "": "sh", "/no/such/shell": ""} {
		line := "the line"
		if shell == "" {
			line = `test -n "$0" && echo sh`
		}
		cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "lock", w.Path("l"), "-c", line)...)
		cmd.Env = []string{"SHELL=" + shell}
		p := cmdtest.StartAs(t, cmd)
		if want == "" {
			require.Equal(t, 127, p.Exit())
			require.Contains(t, p.Stderr.String(), shell)
			continue
		}
		require.Zero(t, p.Exit(), shell)
		require.Equal(t, want, p.Output())
	}
}

func TestOneCommandIsRunAndNotNoneOrTwo(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"lock /l", "elect /l", "doublebarrier -n 1 /l", "queue receive /l"} {
		for rest, says := range map[string]string{"-c x -- true": "two commands", "-c x true": "two commands", "--": "no command", "--command=": "command"} {
			status, out, stderr := inProcess(append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb+" "+rest)...)...)
			require.Equal(t, term.ExitUsage, status, "%s %s", verb, rest)
			require.Empty(t, cmdtest.Told(t, out), "%s %s", verb, rest)
			objects := cmdtest.Told(t, stderr)
			require.Len(t, objects, 1, "%s %s", verb, rest)
			require.Contains(t, objects[0]["error"], says, "%s %s", verb, rest)
			require.Equal(t, "/l", objects[0]["path"])
		}
	}
	p := cmdtest.Start(t, "--json", "--zk", "127.0.0.1:1", "lock", "/l", "--")
	require.Equal(t, term.ExitUsage, p.Exit())
	require.Contains(t, cmdtest.TheObject(t, p, "lock /l -- ")["error"], "no command")
}

// inProcess does what Main does with a command line that cannot be right, in
// this process. It returns the status to exit with and what is written.
func inProcess(args ...string) (status int, out, stderr string) {
	var o, e strings.Builder
	std := &term.Streams{In: strings.NewReader(""), Out: &o, Err: &e}
	v, ctx, err := parseArgs(std, args)
	if err == nil {
		std.JSON, std.Account, v.Note = v.JSON, accountOf(ctx, args), std.Note
		err = ctx.Run(std, &v.Connection)
	}
	status = std.Finish(err, hint)
	return status, o.String(), e.String()
}
