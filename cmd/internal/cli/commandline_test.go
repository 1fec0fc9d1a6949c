//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALineForTheShellIsRunByTheShell(t *testing.T) {
	w := cmdtest.World(t)
	require.Zero(t, cmdtest.On(t, w, "queue", "put", w.Path("q"), "item").Exit())
	for _, verb := range []string{"lock PATH/l", "elect PATH/e", "doublebarrier -n 1 PATH/b", "queue receive PATH/q"} {
		args := strings.Fields(strings.ReplaceAll(verb, "PATH", w.Path("")))
		require.Equal(t, args[len(args)-1]+" 4", cmdtest.On(t, w, append(args, "-c", `n=3 && echo "$COORD_PATH $((n + 1))" | cat; exit 5`)...).Gives(5), verb)
	}
	require.Zero(t, cmdtest.On(t, w, "lock", "--command", "test -z \"$1\"", w.Path("l")).Exit(), "before the path, too")
	require.Equal(t, "-c x", cmdtest.On(t, w, "lock", w.Path("l"), "--", "echo", "-c", "x").Output(), "behind -- it is the command's")
}

func TestTheShellIsTheUsersOwn(t *testing.T) {
	w := cmdtest.World(t)
	for shell, want := range map[string]string{"/bin/echo": "-c the line", "": "sh", "/no/such/shell": ""} {
		line := "the line"
		if shell == "" {
			line = `test -n "$0" && echo sh`
		}
		cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "lock", w.Path("l"), "-c", line)...)
		cmd.Env = []string{"SHELL=" + shell}
		p := cmdtest.StartAs(t, cmd)
		if want == "" {
			p.Ends(127, shell)
			continue
		}
		require.Equal(t, want, p.Gives(0))
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

// shellWord is a word as a shell reads it, but for the quotes.
var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

func TestEveryVerbHasExamplesThatItUnderstands(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&verbs{})
	require.NoError(t, err)
	known := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(true) {
		known[verbName(leaf)] = true
		lines := examples[verbName(leaf)]
		require.NotEmpty(t, lines, leaf.FullPath())
		for line := range strings.Lines(lines) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, "<")
			v, ctx, err := parseArgs(&term.Streams{Out: os.Stdout, Err: os.Stderr}, shellWord.FindAllString(line, -1))
			require.NoError(t, err, line)
			require.NotNil(t, v)
			require.Equal(t, verbName(leaf), verbName(ctx.Selected()), line)
		}
	}
	for verb := range examples {
		require.True(t, known[verb], verb)
	}
}

func TestHelpOfAVerbIsHadInTwoWaysAndEndsWithExamples(t *testing.T) {
	t.Parallel()
	flag, word := cmdtest.Start(t, "queue", "put", "--help"), cmdtest.Start(t, "help", "queue", "put")
	require.Zero(t, flag.Exit())
	text := word.Gives(0)
	require.Equal(t, flag.Output(), text)
	require.Contains(t, text, "Usage: coorddemo queue put")
	require.Contains(t, text, "\nExamples:\n  coorddemo queue put /jobs one two")
	require.Contains(t, cmdtest.Start(t, "help").Gives(0), "doublebarrier")
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "help", "lokc").Exit())
}

func TestARefusalOfAnotherDialectNamesTheOption(t *testing.T) {
	w := cmdtest.World(t)
	curator, kazoo := w.Path("curator"), w.Path("kazoo")
	cmdtest.Contend(t, w, kazoo, map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000000": "x"})
	cmdtest.Contend(t, w, curator, map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000000": "x"})
	require.Contains(t, refusal(t, w, "lock", kazoo), "--dialect kazoo")
	require.Contains(t, refusal(t, w, "--dialect", "kazoo", "lock", curator), "--dialect curator")
}

func refusal(t *testing.T, w *zktest.World, args ...string) string {
	t.Helper()
	p := cmdtest.On(t, w, append(args, "--", "true")...)
	require.Equal(t, term.ExitOwnFault, p.Exit())
	return p.Stderr.String()
}
