//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// others are data of others that look like something else.
var others = []string{
	"--help", "-h", "--json", "--priority=7", "--zk=127.0.0.1:9", "--zk", "-5", "-c", "-ctrue", "--command=true", "--",
	"-", "", "--no-such-option",
}

// Every verb of the model that takes more than a path.
func TestF95NoOptionIsReadBehindAPathThatMoreFollows(t *testing.T) {
	parser, err := newParser(&verbs{})
	require.NoError(t, err)
	tried := 0
	for _, verb := range parser.Model.Leaves(true) {
		if len(verb.Positional) < 2 || !isPath(verb.Positional[0]) {
			continue
		}
		for _, datum := range others {
			for _, separated := range []bool{false, true} {
				line := append(strings.Fields(verbName(verb)), "/p")
				if separated {
					line = append(line, "--")
				}
				line = append(line, datum)
				if !verb.Positional[1].Passthrough && verb.Positional[len(verb.Positional)-1].Passthrough {
					line = append(line, "--", "true")
				}
				t.Run(strings.Join(line, " "), func(t *testing.T) {
					var out bytes.Buffer
					_, ctx, err := parseArgs(&term.Streams{In: os.Stdin, Out: &out, Err: &out}, line)
					require.Empty(t, out.String(), "no help")
					if err != nil {
						require.Equal(t, term.ExitUsage, term.StatusOf(err).Code)
						return
					}
					tried++
					for _, given := range ctx.Path {
						inPlaceOfCmd := given.Flag != nil && given.Flag.Name == "command" && verb.Positional[1].Passthrough
						require.True(t, given.Flag == nil || given.Resolved || inPlaceOfCmd && !separated, "no option is read")
					}
					got := ctx.Selected().Positional[1].Target
					switch {
					case !separated && strings.HasPrefix(datum, "-"): // -c, or the separator itself
					case got.Kind() == reflect.Slice:
						require.Contains(t, got.Interface(), datum)
					case got.Kind() == reflect.String:
						require.Equal(t, datum, got.String())
					}
				})
			}
		}
	}
	require.Greater(t, tried, 30)
}

// The credentials in the environment do not go to a host that an item names.
func TestF95AnItemDoesNotChooseTheServers(t *testing.T) {
	w := cmdtest.World(t)
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = thief.Close() }()
	came := make(chan net.Conn, 1)
	go func() {
		if c, err := thief.Accept(); err == nil {
			came <- c
		}
	}()
	run := func(args ...string) *cmdtest.Process {
		t.Helper()
		cmd := exec.Command(cmdtest.Coorddemo(t), args...)
		cmd.Env = append(os.Environ(), "ZK_SERVERS="+w.ConnectString(), "ZK_AUTH=digest:operator:secret")
		return cmdtest.StartAs(t, cmd)
	}
	item := "--zk=" + thief.Addr().String()
	for _, line := range [][]string{
		{"queue", "put", w.Path("q"), item}, {"once", w.Path("o"), item, "--", "true"}, {
			"lock", w.Path("l"), item, "--", "true",
		},
	} {
		run(line...).Ends(term.ExitUsage, "stands behind the path")
		at := slices.Index(line, item)
		require.NotEqual(t, term.ExitUsage, run(slices.Insert(slices.Clone(line), at, "--")...).Exit(), "%q", line)
	}
	require.Equal(t, item, run("queue", "take", w.Path("q")).Output())
	require.Empty(t, came)
}
