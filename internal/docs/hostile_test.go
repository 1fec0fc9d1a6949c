//go:build linux || darwin

package docs

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// hostile are data that somebody else has chosen.
var hostile = []string{
	"--help", "-h", "--json", "--priority=7", "--zk=127.0.0.1:9", "-c", "-ctrue", "--command=true", "--", "-", "-5", "",
	" ", "two\nlines", "\n", "x\n",
	`a'b"c$(touch x)` + "`d`\\", "\u202egnp.exe", "*", "~",
}

// published finds the commands that take an item or a key, in documents and
// helps: the option, the path, perhaps the separator, the datum, and the rest.
var published = regexp.MustCompile(
	`(?:zkcoord|coorddemo) (queue put|once)((?: -[^ \n]+(?: [^-/ \n][^ \n]*)?)*) (/[^ \n"]+)( --)? ("[^"\n]*"|[^-<|"'\s)` +
		"`" + `][^\s)` + "`" + `]*)([^\n` + "`" + `]*)`)

// datumCommand is such a command.
type datumCommand struct{ where, verb, options, path, separator, datum string }

// commands returns the published commands that take an item or a key.
func (d *desk) commands() (all []datumCommand) {
	sources := maps.Collect(texts(d.t, "*.md"))
	for _, verb := range []string{"queue put", "once"} {
		help, err := exec.CommandContext(d.t.Context(), d.bin+"/zkcoord", append(strings.Fields(verb), "--help")...).Output()
		require.NoError(d.t, err)
		sources[verb+" --help"] = string(help)
	}
	manual, err := exec.CommandContext(d.t.Context(), d.bin+"/zkcoord", "__manual").Output()
	require.NoError(d.t, err)
	sources["manual page"] = strings.ReplaceAll(string(manual), `\-`, "-")
	for where, text := range sources {
		for _, m := range published.FindAllStringSubmatch(text, -1) {
			c := datumCommand{filepath.Base(where), m[1], m[2], m[3], m[4], m[5]}
			if !slices.ContainsFunc(all, c.reads) {
				all = append(all, c)
			}
		}
	}
	return all
}

// reads reports whether another command is read in the same way.
func (c datumCommand) reads(other datumCommand) bool {
	return c.verb == other.verb && c.options == other.options && c.separator == other.separator &&
		c.isVariable() == other.isVariable()
}

// isVariable reports whether others can choose the datum.
func (c datumCommand) isVariable() bool {
	return strings.Contains(c.datum, "$") && !strings.HasPrefix(c.datum, `"$(date`)
}

// run runs the command with another datum, and what CMD there is replaced.
func (c datumCommand) run(d *desk, connect, datum string) error {
	line := fmt.Sprintf(`zkcoord %s%s %s%s "$datum"`, c.verb, c.options, c.path, c.separator)
	if c.verb == "once" && !c.forgets() {
		line += " -- true"
	}
	shell := exec.CommandContext(d.t.Context(), "bash", "-c", line)
	shell.Env = append(slices.Clip(d.env), "ZK_SERVERS="+connect, "datum="+datum)
	shell.Dir = d.t.TempDir()
	return shell.Run()
}

func (c datumCommand) forgets() bool { return strings.Contains(c.options, "--forget") }

// checkHostile runs each published command that takes an item or a key with
// such as others may have chosen.
func (d *desk) checkHostile(t *testing.T) {
	srv := coordtest.Embedded(t)
	all := d.commands()
	verbs := map[string]int{}
	delivered := 0
	for i, c := range all {
		verbs[c.verb]++
		if c.isVariable() {
			require.NotEmpty(t, c.separator, "%s: no -- before %s", c.where, c.datum)
		}
		client := coordtest.Open(t, fmt.Sprintf("%s/%d", srv.ConnectString(), i))
		q, err := queue.New(client, c.path)
		require.NoError(t, err)
		o, err := once.New(client, c.path)
		require.NoError(t, err)
		for _, datum := range hostile {
			if c.forgets() {
				_, _ = o.Do(t.Context(), datum,
					func(context.Context, *once.Run) ([]byte, error) { return nil, nil }) // no key is empty
			}
			failure := c.run(d, fmt.Sprintf("%s/%d", srv.ConnectString(), i), datum)
			var got []string
			if c.verb == "once" {
				for r, err := range o.List(t.Context()) {
					require.NoError(t, err)
					got = append(got, r.Key)
					require.NoError(t, o.Forget(t.Context(), r.Key))
				}
			} else if item, err := q.TryTake(t.Context()); err == nil {
				got = append(got, string(item))
			}
			switch {
			case c.forgets():
				require.Equal(t, failure == nil, len(got) == 0 && datum != "", "%s: %q with %q: %v", c.where, c, datum, failure)
				continue
			case failure != nil:
				require.Empty(t, got, "%s: %q with %q fails, and does something", c.where, c, datum)
				require.False(t, c.separator != "" && c.verb == "queue put", "%s: %q with %q: %v", c.where, c, datum, failure)
				continue
			}
			require.Equal(t, []string{datum}, got, "%s: %q", c.where, c)
			delivered++
		}
	}
	require.Greater(t, delivered, len(hostile))
	require.Greater(t, verbs["queue put"], 1)
	require.Greater(t, verbs["once"], 3)
}
