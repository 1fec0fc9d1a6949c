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
			status, out, stderr := inProcess(append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb+" "+rest)...)...)
			require.Equal(t, exitUsage, status, "%s %s", verb, rest)
			require.Empty(t, told(t, out), "%s %s", verb, rest)
			objects := told(t, stderr)
			require.Len(t, objects, 1, "%s %s", verb, rest)
			require.Contains(t, objects[0]["error"], says, "%s %s", verb, rest)
			require.Equal(t, "/l", objects[0]["path"])
		}
	}
	p := start(t, "--json", "--zk", "127.0.0.1:1", "lock", "/l", "--")
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, theObject(t, p, "lock /l -- ")["error"], "no command")
}

// inProcess does what Main does with a command line that cannot be right, in
// this process. It returns the status to exit with and what is written.
func inProcess(args ...string) (status int, out, stderr string) {
	var o, e strings.Builder
	std := &streams{in: strings.NewReader(""), out: &o, err: &e}
	v, ctx, err := parseArgs(std, args)
	if err == nil {
		std.json, std.account, v.note = v.JSON, accountOf(ctx, args), std.note
		err = ctx.Run(std, &v.connection)
	}
	status = std.finish(err)
	return status, o.String(), e.String()
}
