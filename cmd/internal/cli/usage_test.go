//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestACommandLineThatIsWrongIsAnsweredInBrief(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ says, args string }{
		{`there is no verb lokc`, "lokc /l -- true"},
		{`usage: coorddemo lock [flags] <path> ... -- <cmd>`, "lock /l"},
		{`no command to run: write <cmd> after --`, "lock /l"},
		{`coorddemo lock --help`, "lock /l"},
		{`missing: "<path>"`, "inspect"},
		{`path "l" must start with /`, "inspect l"},
		{"--slots -1: it must be from 1 to 2147483647", "lock --slots -1 /l -- true"},
		{"--slots 0: it must be from 1", "lock --slots 0 /l -- true"},
		{"--slots 99999999999: it must be from 1 to", "lock --slots 99999999999 /l -- true"},
		{"--slots: not a whole number, or too large a one", "lock --slots 99999999999999999999 /l -- true"},
		{"--resize changes", "lock --resize /l -- true"},
		{"--timeout: -3s: it must be positive", "lock --timeout -3 /l -- true"},
		{"--timeout: 0s: it must be positive", "queue take --timeout 0 /q"},
		{"--session-timeout: 0s: it must be positive", "--session-timeout 0 lock /l -- true"},
		{"--connect-timeout: -1s: it must be positive", "inspect --connect-timeout -1 /l"},
		{"--kill-after: 0s: it must be positive", "lock --kill-after 0 /l -- true"},
		{"99999999999 seconds are too long", "inspect --session-timeout 99999999999 /l"},
		{"between 1 ms and 24 h", "inspect --session-timeout 8999999999 /l"},
		{"invalid port", "server --addr :99999"},
		{`"soon" is not a duration`, "inspect --connect-timeout soon /l"},
		{"--backoff -1s: it must be between 0 and 24h0m0s", "queue receive --backoff -1 /q -- true"},
		{"--dead 0: it must be between 1 and 1048576", "queue receive --dead 0 /q -- true"},
		{"--priority -1: it must be between 0 and 999", "queue put --priority -1 /q x"},
		{"--data, --again, --kill-after", "elect --who --again /e"},
		{"address", "server --addr nowhere"},
		{"--allow-remote allows it", "ui --listen 192.0.2.1:80"},
		{"write HOST:PORT", "ui --listen 8080"},
		{"--listen: address foo: missing port", "exporter --listen foo /l"},
		{"--listen is empty: give it a value", "exporter --listen= /l"},
		{"usage: coorddemo ls [flags] [<path>]", "ls /l /m"},
		{"usage: coorddemo version [flags]\n", "version now"},
		{"--every goes with --watch", "ls --every 3s /l"},
		{"ask for a longer one", "--server-tick 30s inspect /l"},
		{`path "/l\xff" is not UTF-8`, "lock /l\xff -- true"},
		{`two commands: "true" by -c, and "false" "x" behind`, "lock -c true /l -- false x"},
		{"--every: 0s: it must be positive", "ui --every 0"},
		{"--most 0: it must be at least 1", "ui --most 0"},
		{"coorddemo demo stock --help", "demo stock --workers x"},
		{"--kill -1: it must not be negative", "demo stock --kill -1"},
		{"no scheme: host:port", "inspect --zk http://a:1/chroot /l"},
		{"behind the last server: a:1,b:1/app", "lock --zk a:1/app,b:1/app /l -- true"},
		{"2181:2181", "lock --zk 127.0.0.1:2181:2181 /l -- true"},
		{"no command", "lock /l --"},
		{`path "l" must start`, "lock -- l true"},
		{"root", "lock / -- true"},
		{"no-such-flag", "lock --no-such-flag /l -- true"},
		{`"never" is not a duration`, "lock --timeout never /l -- true"},
		{"on-revoke", "lock --on-revoke maybe /l -- true"},
		{"--workers: not a whole number", "demo stock --workers many"},
		{"--workers 0: it must be between 1 and 100", "demo stock --workers 0"},
		{"--stock 0: it must be between 1 and 100000", "demo stock --stock 0"},
		{"kill at most", "demo stock --kill 1000"},
		{"confirm with --yes", "break /l"},
		{"--tick: 0s: it must be positive", "server --tick 0"},
		{"it must be positive", "revoke /l --force-after=0"},
		{"--timeout: -1s: it must be positive", "revoke /l --timeout=-1s"},
		{"scheme:id:permissions", "--acl cdrwa inspect /l"},
		{"letters out of cdrwa", "--acl world:anyone:r,world:anyone:all inspect /l"},
		{"SCHEME:CREDENTIALS", "--auth secret inspect /l"},
		{"SCHEME:CREDENTIALS", "--auth :secret inspect /l"},
		{"a password is missing", "--auth digest:secret inspect /l"},
	} {
		p := cmdtest.Start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(c.args)...)...)
		p.Ends(term.ExitUsage, c.says)
		require.LessOrEqual(t, strings.Count(p.Stderr.String(), "\n"), 3, "%s: %s", c.args, p.Stderr.String())
		require.NotContains(t, p.Stderr.String(), "secret", "others may read it")
		require.Empty(t, p.Output(), c.args)
		require.NotRegexp(t, `With[A-Z]|semaphore\.`, p.Stderr.String(), "names of the library")
	}
}

func TestTheProgramGoesByTheNameItWasCalledBy(t *testing.T) {
	t.Parallel()
	for called, name := range map[string]string{
		"coorddemo": "coorddemo", "/usr/local/bin/zkcoord": "zkcoord", "./zkcoord-1.2": "zkcoord-1.2",
		"zkcoord.exe": "zkcoord",
		"":            "zkcoord", "a link\x1b[2J": "zkcoord", "-": "zkcoord",
	} {
		require.Equal(t, name, term.CalledBy([]string{called}), called)
	}
	require.Equal(t, "zkcoord", term.CalledBy(nil))
}

func TestBothProgramsAreTheSameAndSpeakOfThemselvesByTheirNames(t *testing.T) {
	w := cmdtest.World(t)
	dir := cmdtest.Built(t)
	for name, other := range map[string]string{"zkcoord": "coorddemo", "coorddemo": "zkcoord"} {
		call := func(args ...string) (told string, status int) {
			t.Helper()
			p := cmdtest.StartAs(t, exec.Command(filepath.Join(dir, name), args...))
			status = p.Exit()
			told = p.Output() + p.Stderr.String()
			require.NotContains(t, told, other, "%q", args)
			return told, status
		}
		told, status := call("lock", "/l")
		require.Equal(t, term.ExitUsage, status)
		for _, says := range []string{name + ": ", "usage: " + name + " lock [flags]", name + " lock --help"} {
			require.Contains(t, told, says)
		}
		for args, says := range map[string]string{
			"":                           "Usage: " + name + " ",
			"lokc":                       name + ": there is no verb lokc",
			"version":                    name + " ",
			"inspect /l":                 name + " server",
			"lock /l -- ":                "as in " + name + " lock /l",
			"revoke --force-after -1 /l": name + " break",
		} {
			told, _ := call(strings.Fields(args)...)
			require.Contains(t, told, says, args)
		}
		for _, verb := range []string{
			"lock", "elect", "doublebarrier", "once", "cron", "slot", "queue receive", "demo stock",
		} {
			told, status := call(append(strings.Fields(verb), "--help")...)
			require.Zero(t, status)
			require.Contains(t, told, "Usage: "+name+" "+verb)
		}
		told, status = call(
			append(cmdtest.Target(w), "lock", w.Path("l"), "--", filepath.Join(dir, name), "--zk", w.ConnectString(), "inspect",
				w.Path("l"))...)
		require.Zero(t, status, "a command under guard")
		require.Contains(t, told, `"`+name+" ", "the holder has the program's name")
	}
}

func TestWithoutAnythingToDoTheHelpIsShown(t *testing.T) {
	t.Parallel()
	cmdtest.Start(t).Ends(term.ExitUsage, "Usage: coorddemo", "doublebarrier")
}

func TestNumbersBelowZeroBelongToTheCommandAfterTheSeparator(t *testing.T) {
	t.Parallel()
	require.Equal(t, "--nice -5",
		cmdtest.Start(t, "--zk", cmdtest.Start(t, "server", "--addr", "127.0.0.1:0").Line(), "lock", "/l", "--", "echo",
			"--nice", "-5").Gives(0))
}

func TestAPathThatNoServerTakesIsRefusedBeforeItsParentsAreMade(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, verb := range []string{"lock", "queue put", "barrier set"} {
			args := append(strings.Fields(verb), w.Path("parent/key\U0001f511"))
			if verb == "lock" {
				args = append(args, "--", "true")
			}
			cmdtest.On(t, w, args...).Ends(term.ExitUsage, "U+1F511")
			made, _, err := w.Admin().Exists(w.Path("parent"))
			require.NoError(t, err)
			require.False(t, made, "%s has made the parent", verb)
		}
	})
}

func TestServersThatAreSeparatedByBlanksAreToldApartFromIPv6(t *testing.T) {
	t.Parallel()
	for _, servers := range []string{"a:1 b:2", "a:1;b:2"} {
		p := cmdtest.Start(t, "--zk", servers, "inspect", "/l")
		p.Ends(term.ExitUsage, "separated by commas")
		require.NotContains(t, p.Stderr.String(), "IPv6", servers)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	told := cmdtest.Start(t, "version").Gives(0)
	require.Contains(t, told, "coorddemo")
	require.Equal(t, told, cmdtest.Start(t, "--version").Output())
	require.Contains(t, cmdtest.Parse[map[string]string](t, cmdtest.Start(t, "version", "--json").Gives(0))["go"], "go1")
}

// Behind the command of a lock, paths are no longer meant.
func TestEachOfSeveralPathsIsCompleted(t *testing.T) {
	w := cmdtest.World(t)
	require.Zero(t, cmdtest.On(t, w, "barrier", "set", w.Path("gate")).Exit())
	for line, want := range map[string]string{
		"coorddemo lock --timeout 5 /a /b " + w.Path("ga"): w.Path("gate"),
		"coorddemo exporter /a " + w.Path("ga"):            w.Path("gate"),
		"coorddemo lock /a -- " + w.Path("ga"):             "",
	} {
		cmd := exec.Command(cmdtest.Coorddemo(t))
		cmd.Env = []string{"COMP_LINE=" + line, "ZK_SERVERS=" + w.ConnectString()}
		require.Equal(t, want, strings.TrimSpace(cmdtest.StartAs(t, cmd).Output()), line)
	}
	// The line's own servers take the place of the variable's.
	for _, option := range []string{"--zk " + w.ConnectString(), "--zk=" + w.ConnectString()} {
		cmd := exec.Command(cmdtest.Coorddemo(t))
		cmd.Env = []string{
			"COMP_LINE=coorddemo inspect " + option + " " + w.Path("ga"), "ZK_SERVERS=" + cmdtest.ClosedPort(t),
		}
		require.Equal(t, w.Path("gate"), strings.TrimSpace(cmdtest.StartAs(t, cmd).Output()), option)
	}
}

func TestHelpThatCannotBeWrittenIsNoMistakeOfTheUser(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("left out: there is no /dev/full here")
	}
	defer func() { require.NoError(t, full.Close()) }()
	_, _, err = parseArgs(&term.Streams{Out: full, Err: os.Stderr}, []string{"lock", "--help"})
	var failed *term.ExitError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, term.ExitFailed, failed.Code)
}

func TestTheManualHasTheCommandLinesOfTheHelp(t *testing.T) {
	t.Parallel()
	page := cmdtest.Start(t, "__manual").Output()
	require.Contains(t, page,
		`\fBlock [flags] <path> \&.\&.\&. -- <cmd> \&.\&.\&.\fP`+
			"\n.br\nRun a command while holding a lock\\&.\n.PP\nCMD runs while")
	require.Contains(t, page, `\fBinspect [flags] <path>\fP`)
	require.Contains(t, page, `--command=STRING`)
	for section, line := range map[string]string{
		"EXIT STATUS": "75: with --try", "ENVIRONMENT": "ZK_SERVERS", "EXAMPLES": "coorddemo lock --try /locks/site",
		"SEE ALSO": "flock(1)",
	} {
		_, text, found := strings.Cut(page, "\n.SH "+section+"\n")
		require.True(t, found, section)
		text, _, _ = strings.Cut(text, "\n.SH ")
		require.Contains(t, strings.ReplaceAll(text, `\-`, "-"), line)
	}
}

// A completer may start the program, too. Its command lines are what they say.
func TestACommandLineIsCarriedOutWhereAShellCompletes(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "lock", w.Path("l"), "--", "echo", "held")...)
	cmd.Env = []string{"COMP_LINE=zkcoord lo"}
	p := cmdtest.StartAs(t, cmd)
	require.Equal(t, "held", p.Line())
	require.Equal(t, 0, p.Exit())
}

func TestMain(m *testing.M) { cmdtest.Main(m, Main) }

func TestALineForTheShellIsRunByTheShell(t *testing.T) {
	w := cmdtest.World(t)
	require.Zero(t, cmdtest.On(t, w, "queue", "put", w.Path("q"), "item").Exit())
	for _, verb := range []string{"lock PATH/l", "elect PATH/e", "doublebarrier -n 1 PATH/b", "queue receive PATH/q"} {
		args := strings.Fields(strings.ReplaceAll(verb, "PATH", w.Path("")))
		require.Equal(t, args[len(args)-1]+" 4",
			cmdtest.On(t, w, append(args, "-c", `n=3 && echo "$COORD_PATH $((n + 1))" | cat; exit 5`)...).Gives(5), verb)
	}
	require.Zero(t, cmdtest.On(t, w, "lock", "--command", "test -z \"$1\"", w.Path("l")).Exit(), "before the path, too")
	require.Equal(t, "-c x", cmdtest.On(t, w, "lock", w.Path("l"), "--", "echo", "-c", "x").Output(),
		"behind -- it is the command's")
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
	for _, verb := range []string{
		"lock /l", "elect /l", "doublebarrier -n 1 /l", "once /l key", "cron /l @daily", "slot /l 2", "queue receive /l",
	} {
		for rest, says := range map[string]string{
			"-c x -- true": "two commands", "-c x true": "two commands", "--": "no command", "--command=": "command",
		} {
			status, out, stderr := inProcess(
				append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb+" "+rest)...)...)
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

// inProcess does what Main does, in this process. It returns the status to exit
// with and what is written.
func inProcess(args ...string) (status int, out, stderr string) {
	var o, e strings.Builder
	std := &term.Streams{In: strings.NewReader(""), Out: &o, Err: &e}
	v, ctx, err := parseArgs(std, args)
	if err == nil {
		std.JSON, std.Account, v.Note = v.JSON, accountOf(ctx, args), std.Note
		err = ctx.Run(std, &v.Connection)
	}
	status = std.Finish(err, conn.Hint)
	return status, o.String(), e.String()
}

// shellWord is a word as a shell reads it, with the quotes.
var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

// wordsOf are the words of an example, without what the shell does with them.
func wordsOf(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	line, _, _ = strings.Cut(line, "<")
	words := shellWord.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	return words
}

// With a variable that is not set, --node "$NODE" has no value. Taken for
// absent, it would have break delete every claim.
func TestF90AnOptionThatIsGivenEmptyIsRefused(t *testing.T) {
	t.Parallel()
	std := &term.Streams{Out: os.Stdout, Err: os.Stderr}
	var mayBe []string
	for _, leaf := range cmdtest.Must(kong.New(&verbs{})).Model.Leaves(true) {
		verb := strings.Fields(verbName(leaf))
		example, _, _ := strings.Cut(examples[verbName(leaf)], "\n")
		words := wordsOf(example)
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				if flag.IsBool() {
					continue
				}
				rest := slices.Clone(words[len(verb):])
				if at := slices.Index(rest, "--"+flag.Name); at >= 0 {
					rest = slices.Delete(rest, at, at+2)
				}
				args := slices.Concat(verb, []string{"--" + flag.Name, ""}, rest)
				_, _, err := parseArgs(std, args)
				if flag.Tag.Has("mayBeEmpty") {
					mayBe = append(mayBe, verbName(leaf)+" --"+flag.Name)
					require.NoError(t, err, args)
					continue
				}
				var refused *term.ExitError
				require.ErrorAs(t, err, &refused, "%q", args)
				require.Equal(t, term.ExitUsage, refused.Code, "%q", args)
				require.ErrorContains(t, err, "--"+flag.Name, "%q", args)
			}
		}
	}
	require.Equal(t, []string{"elect --data", "shards --data"}, mayBe, "where no data are data, too")
}

func TestEveryVerbHasExamplesThatItUnderstands(t *testing.T) {
	t.Parallel()
	parser := cmdtest.Must(kong.New(&verbs{}))
	known := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(true) {
		known[verbName(leaf)] = true
		lines := examples[verbName(leaf)]
		require.NotEmpty(t, lines, leaf.FullPath())
		for line := range strings.Lines(lines) {
			v, ctx, err := parseArgs(&term.Streams{Out: os.Stdout, Err: os.Stderr}, wordsOf(line))
			require.NoError(t, err, line)
			require.NotNil(t, v)
			require.Equal(t, verbName(leaf), verbName(ctx.Selected()), line)
		}
	}
	for verb := range examples {
		require.True(t, known[verb], verb)
	}
}

func TestHelpIsHadInTwoWaysAndThatOfAVerbEndsWithExamples(t *testing.T) {
	t.Parallel()
	flag, word := cmdtest.Start(t, "queue", "put", "--help"), cmdtest.Start(t, "help", "queue", "put")
	require.Zero(t, flag.Exit())
	text := word.Gives(0)
	require.Equal(t, flag.Output(), text)
	require.Contains(t, text, "Usage: coorddemo queue put")
	require.Contains(t, text, "\nExamples:\n  coorddemo queue put /jobs -- one two")
	all := cmdtest.Start(t, "help").Gives(0)
	require.Contains(t, all, "Usage: coorddemo")
	require.Contains(t, all, "doublebarrier")
	require.NotContains(t, all, "__", "what only the program calls")
	require.Equal(t, all, cmdtest.Start(t, "--help").Gives(0))
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "help", "lokc").Exit())
}

func TestARefusalOfAnotherDialectNamesTheOption(t *testing.T) {
	w := cmdtest.World(t)
	curator, kazoo := w.Path("curator"), w.Path("kazoo")
	cmdtest.Contend(t, w, kazoo, map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000000": "x"})
	cmdtest.Contend(t, w, curator, map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000000": "x"})
	cmdtest.On(t, w, "lock", kazoo, "--", "true").Ends(term.ExitOwnFault, "--dialect kazoo")
	cmdtest.On(t, w, "--dialect", "kazoo", "lock", curator, "--", "true").Ends(term.ExitOwnFault, "--dialect curator")
}
