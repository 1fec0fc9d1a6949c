//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACommandLineThatIsWrongIsAnsweredInBrief(t *testing.T) {
	for says, args := range map[string]string{
		`there is no verb lokc`:                             "lokc /l -- true",
		`usage: coorddemo lock [flags] <path> -- <cmd> ...`: "lock /l",
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
		`"soon" is not a duration`:                          "inspect --connect-timeout soon /l",
		"--delay -1s: it must not be negative":              "queue receive --delay -1 /q -- true",
		"--dead 0: it must be at least 1":                   "queue receive --dead 0 /q -- true",
		"--priority -1: it must be between 0 and 999":       "queue put --priority -1 /q x",
		"--data, --again, --timeout":                        "elect --who --again /e",
		"address":                                           "server --addr nowhere",
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
