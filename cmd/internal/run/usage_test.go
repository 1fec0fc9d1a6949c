//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// Such a path may be misspelt: an empty answer is no good news then.
func TestWhoFindsNothingSaysIfThereIsNoNode(t *testing.T) {
	w := cmdtest.World(t)
	for _, verb := range [][]string{
		{"queue", "len"},
		{"queue", "dead"},
		{"queue", "requeue", "--all"},
		{"queue", "acknowledge", "--all"},
		{"once", "--list"},
		{"cron", "--list"},
		{"slot", "--list"},
	} {
		cmdtest.On(t, w, append(verb, w.Path("typo"))...).Ends(0, "there is no node "+w.Path("typo"))
	}
	cmdtest.On(t, w, "barrier", "wait", w.Path("typo")).Ends(0, "no barrier is closed at "+w.Path("typo"))
	require.Zero(t, cmdtest.On(t, w, "queue", "put", w.Path("q"), "x").Exit())
	dead := cmdtest.On(t, w, "queue", "dead", w.Path("q"))
	require.Zero(t, dead.Exit())
	require.NotContains(t, dead.Stderr.String(), "there is no node")
}

func TestWhatIsWrongWithACommandLineIsTold(t *testing.T) {
	w := cmdtest.World(t)
	for line, says := range map[string]string{
		"lock /a /b /a -- true":                                           "/a is named twice",
		"lock /a /b/ -- true":                                             `path "/b/"`,
		"lock /a / -- true":                                               "root",
		"lock --slots 2 /a /b -- true":                                    "--slots is for one path",
		"lock /a --try /b -- true":                                        "--try stands behind the path",
		"lock /a /bin/true":                                               "no command to run",
		"lock --label caf\xe9 /l -- true":                                 "UTF-8",
		"lock /a /usr/bin/env true":                                       "several paths: write -- before the command",
		"lock /a /b true":                                                 "several paths: write -- before the command",
		"lock /a /b true -- x":                                            "several paths: write -- before the command",
		"lock --slots 2 /a /usr/bin/env true":                             "several paths: write -- before the command",
		"lock /a /b --try true":                                           "--try stands behind the path",
		"lock -- /a /b true":                                              "several paths: write -- before the command",
		"lock --slots -1 /l -- true":                                      "--slots",
		"lock --slots x /l -- true":                                       "--slots",
		"lock --resize /l -- true":                                        "--resize",
		"lock --slots 2 --shared /l -- true":                              "two kinds of locks",
		"lock --shared --delay 1s /l -- true":                             "--delay",
		"elect /e":                                                        "say one of",
		"elect --who --observe /e":                                        "say one of",
		"elect --who /e -- true":                                          "say one of",
		"elect --transfer x /e -- true":                                   "say one of",
		"elect --transfer x --priority 1 /e":                              "--priority",
		"elect nowhere -- true":                                           "must start with /",
		"elect --data unlock PATH -- true":                                "unlock",
		"elect --timeout -1 /e -- true":                                   "--timeout",
		"elect --who --timeout 1s /e":                                     "--timeout",
		"elect --health true --health-every 0 /e -- true":                 "--health-every",
		"elect --who -v /e":                                               "--verbose",
		"elect --observe -v /e":                                           "--verbose",
		"once PATH":                                                       "no key",
		"once PATH -- true":                                               "no key",
		"once --list PATH key":                                            "--list",
		"once --forget PATH":                                              "a key",
		"once --forget PATH key -- true":                                  "--forget",
		"once --at-most-once --attempts 2 PATH key -- true":               "choose one",
		"once --attempts 0 PATH key -- true":                              "at least one",
		"once --keep-last 0 PATH key -- true":                             "at least 1",
		"once --backoff 1s PATH key -- true":                              "--attempts",
		"once PATH " + strings.Repeat("x", 201) + " -- true":              "200 bytes",
		"cron PATH":                                                       "no schedule",
		"cron PATH -- true":                                               "no schedule",
		"cron --list PATH @daily":                                         "--list",
		"cron PATH @often -- true":                                        "@often",
		"cron PATH 1,2,3 -- true":                                         "five fields",
		"cron --timezone Nowhere PATH @daily -- true":                     "no such zone",
		"cron PATH TZ=UTC@daily -- true":                                  "--timezone",
		"cron --at-most-once --attempts 2 PATH @daily -- true":            "choose one",
		"cron --backoff 1s PATH @daily -- true":                           "--attempts",
		"cron --attempts 0 PATH @daily -- true":                           "at least one",
		"cron --jitter -1s PATH @daily -- true":                           "jitter",
		"slot PATH":                                                       "how many slots",
		"slot PATH 0 -- true":                                             "at least 1",
		"slot PATH x -- true":                                             `"x"`,
		"slot PATH 2":                                                     "no command",
		"slot --list PATH 2":                                              "--list",
		"slot --forget a PATH 2 -- true":                                  "--forget",
		"slot --cooldown 1h PATH 2 -- true":                               "--durable",
		"slot --durable " + strings.Repeat("x", 1001) + " PATH 2 -- true": "1000",
		"shards --keys a,a PATH -- true":                                  "twice",
		"shards --keys a --ranges 2 PATH -- true":                         "choose one",
		"doublebarrier /b -- true":                                        "--members",
		"doublebarrier -n 2 /b --":                                        "no command",
		"doublebarrier -n 2 b -- true":                                    "must start with /",
		"doublebarrier -n 0 /b -- true":                                   "0 members",
		"doublebarrier -n 4001 /b -- true":                                "4001 members",
		"doublebarrier -n 2 --timeout 0 /b -- true":                       "--timeout",
		"doublebarrier -n two /b -- true":                                 "two",
		"barrier set nowhere":                                             "must start with /",
		"barrier wait --timeout -1s /b":                                   "--timeout",
		"queue receive PATH":                                              "no command",
		"queue put --priority 1000 PATH x":                                "between 0 and 999",
		"queue take relative":                                             "must start with /",
	} {
		cmdtest.On(t, w, strings.Fields(strings.ReplaceAll(line, "PATH", w.Path("path")))...).Ends(term.ExitUsage, says)
	}
	cmdtest.On(t, w, "cron", w.Path("cron"), "0 0 30 2 *", "--", "true").Ends(term.ExitUsage, "no time")
	cmdtest.Start(t, "barrier", "wait", "/b").Ends(term.ExitUsage, "server")
}
