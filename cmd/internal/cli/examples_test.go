//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

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
	require.Zero(t, word.Exit())
	text := word.Output()
	require.Equal(t, flag.Output(), text)
	require.Contains(t, text, "Usage: coorddemo queue put")
	require.Contains(t, text, "\nExamples:\n  coorddemo queue put /jobs one two")
	all := cmdtest.Start(t, "help")
	require.Zero(t, all.Exit())
	require.Contains(t, all.Output(), "doublebarrier")
	none := cmdtest.Start(t, "help", "lokc")
	require.Equal(t, term.ExitUsage, none.Exit())
}

func TestARefusalOfAnotherDialectNamesTheOption(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
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
