//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestACommandLineThatIsWrongIsAnsweredInBrief(t *testing.T) {
	for says, args := range map[string]string{
		`there is no verb lokc`:                             "lokc /l -- true",
		`usage: coorddemo lock [flags] <path> ... -- <cmd>`: "lock /l",
		`no command to run: write <cmd> after --`:           "lock /l",
		`coorddemo lock --help`:                             "lock /l",
		`missing: "<path>"`:                                 "inspect",
		`path "l" must start with /`:                        "inspect l",
		"--slots -1: it must be at least 1":                 "lock --slots -1 /l -- true",
		"--slots 0: it must be at least 1":                  "lock --slots 0 /l -- true",
		"--resize changes":                                  "lock --resize /l -- true",
		"--timeout: -3s: it must be positive":               "lock --timeout -3 /l -- true",
		"--timeout: 0s: it must be positive":                "queue take --timeout 0 /q",
		"--session-timeout: 0s: it must be positive":        "--session-timeout 0 lock /l -- true",
		"--connect-timeout: -1s: it must be positive":       "inspect --connect-timeout -1 /l",
		"--kill-after: 0s: it must be positive":             "lock --kill-after 0 /l -- true",
		"99999999999 seconds are too long":                  "inspect --session-timeout 99999999999 /l",
		"between 1 ms and 24 h":                             "inspect --session-timeout 8999999999 /l",
		"invalid port":                                      "server --addr :99999",
		`"soon" is not a duration`:                          "inspect --connect-timeout soon /l",
		"--delay -1s: it must not be negative":              "queue receive --delay -1 /q -- true",
		"--dead 0: it must be at least 1":                   "queue receive --dead 0 /q -- true",
		"--priority -1: it must be between 0 and 999":       "queue put --priority -1 /q x",
		"--data, --again, --timeout":                        "elect --who --again /e",
		"address":                                           "server --addr nowhere",
		"--allow-remote allows it":                          "ui --listen 192.0.2.1:80",
		"write HOST:PORT":                                   "ui --listen 8080",
		"--every: 0s: it must be positive":                  "ui --every 0",
		"--most 0: it must be at least 1":                   "ui --most 0",
		"coorddemo demo stock --help":                       "demo stock --workers x",
		"--kill -1: it must not be negative":                "demo stock --kill -1",
	} {
		p := start(t, append([]string{"--zk", "127.0.0.1:1"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, p.exit(), args)
		require.Contains(t, p.stderr.String(), says, args)
		require.LessOrEqual(t, strings.Count(p.stderr.String(), "\n"), 3, "%s: %s", args, p.stderr.String())
		require.Empty(t, p.output(), args)
	}
}

func TestTheProgramGoesByTheNameItWasCalledBy(t *testing.T) {
	for called, name := range map[string]string{
		"coorddemo": "coorddemo", "/usr/local/bin/zkcoord": "zkcoord", "./zkcoord-1.2": "zkcoord-1.2", "zkcoord.exe": "zkcoord",
		"": "zkcoord", "a link\x1b[2J": "zkcoord", "-": "zkcoord",
	} {
		require.Equal(t, name, calledBy([]string{called}), called)
	}
	require.Equal(t, "zkcoord", calledBy(nil))
}

// built are the programs as people get them, under both names.
func built(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "../../zkcoord", "../../coorddemo").CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

func TestBothProgramsAreTheSameAndSpeakOfThemselvesByTheirNames(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	dir := built(t)
	for name, other := range map[string]string{"zkcoord": "coorddemo", "coorddemo": "zkcoord"} {
		call := func(args ...string) (told string, status int) {
			t.Helper()
			p := startAs(t, exec.Command(filepath.Join(dir, name), args...))
			status = p.exit()
			told = p.output() + p.stderr.String()
			require.NotContains(t, told, other, "%q", args)
			return told, status
		}
		told, status := call("lock", "/l")
		require.Equal(t, exitUsage, status)
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
		for _, verb := range []string{"lock", "elect", "doublebarrier", "queue receive", "demo stock"} {
			told, status := call(append(strings.Fields(verb), "--help")...)
			require.Zero(t, status)
			require.Contains(t, told, "Usage: "+name+" "+verb)
		}
		told, status = call(append(target(w), "lock", w.Path("l"), "--", filepath.Join(dir, name), "--zk", w.ConnectString(), "inspect", w.Path("l"))...)
		require.Zero(t, status, "a command under guard")
		require.Contains(t, told, `"`+name+" ", "the holder has the program's name")
	}
}

func TestWithoutAnythingToDoTheHelpIsShown(t *testing.T) {
	p := start(t)
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, p.stderr.String(), "Usage: coorddemo")
	require.Contains(t, p.stderr.String(), "doublebarrier")
}

func TestNumbersBelowZeroBelongToTheCommandAfterTheSeparator(t *testing.T) {
	server := start(t, "server", "--addr", "127.0.0.1:0")
	p := start(t, "--zk", server.line(), "lock", "/l", "--", "echo", "--nice", "-5")
	require.Equal(t, 0, p.exit())
	require.Equal(t, "--nice -5", p.output())
}

func TestAGaugeFitsOnItsLine(t *testing.T) {
	require.Equal(t, "  "+strings.Repeat("█", 20)+strings.Repeat("░", 20)+" 5 of 10", gauge(5, 10, 200))
	for columns := 1; columns < 120; columns++ {
		line := []rune(gauge(3, 10, columns))
		require.LessOrEqual(t, len(line), max(columns-1, len("3 of 10")))
	}
	require.Contains(t, gauge(0, 0, 80), "0 of 0")
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"lock", "--help"}, {"demo", "stock", "--help"}} {
		p := start(t, args...)
		require.Equal(t, 0, p.exit())
		text := p.output()
		require.Contains(t, text, "Usage: coorddemo")
		require.NotContains(t, text, "__guard")
	}
}

func TestAPathThatNoServerTakesIsRefusedBeforeItsParentsAreMade(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, verb := range []string{"lock", "queue put", "barrier set"} {
			args := append(strings.Fields(verb), w.Path("parent/key\U0001f511"))
			if verb == "lock" {
				args = append(args, "--", "true")
			}
			p := on(t, w, args...)
			require.Equal(t, exitUsage, p.exit(), verb)
			require.Contains(t, p.stderr.String(), "U+1F511", verb)
			made, _, err := w.Admin().Exists(w.Path("parent"))
			require.NoError(t, err)
			require.False(t, made, "%s has made the parent", verb)
		}
	})
}

func TestServersThatAreSeparatedByBlanksAreToldApartFromIPv6(t *testing.T) {
	for _, servers := range []string{"a:1 b:2", "a:1;b:2"} {
		p := start(t, "--zk", servers, "inspect", "/l")
		require.Equal(t, exitUsage, p.exit(), servers)
		require.Contains(t, p.stderr.String(), "separated by commas", servers)
		require.NotContains(t, p.stderr.String(), "IPv6", servers)
	}
}
