//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// shellWord is a word as a shell reads it, but for the quotes.
var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

func TestEveryVerbHasExamplesThatItUnderstands(t *testing.T) {
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
			v, ctx, err := parseArgs(&streams{out: os.Stdout, err: os.Stderr}, shellWord.FindAllString(line, -1))
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
	flag, word := start(t, "queue", "put", "--help"), start(t, "help", "queue", "put")
	require.Zero(t, flag.exit())
	require.Zero(t, word.exit())
	text := word.output()
	require.Equal(t, flag.output(), text)
	require.Contains(t, text, "Usage: coorddemo queue put")
	require.Contains(t, text, "\nExamples:\n  coorddemo queue put /jobs one two")
	all := start(t, "help")
	require.Zero(t, all.exit())
	require.Contains(t, all.output(), "doublebarrier")
	none := start(t, "help", "lokc")
	require.Equal(t, exitUsage, none.exit())
}

func TestARefusalOfAnotherDialectNamesTheOption(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	curator, kazoo := w.Path("curator"), w.Path("kazoo")
	contend(t, w, kazoo, map[string]string{strings.ReplaceAll(guid1, "-", "") + "__lock__0000000000": "x"})
	contend(t, w, curator, map[string]string{"_c_" + guid1 + "-lock-0000000000": "x"})
	require.Contains(t, refusal(t, w, "lock", kazoo), "--dialect kazoo")
	require.Contains(t, refusal(t, w, "--dialect", "kazoo", "lock", curator), "--dialect curator")
}

func refusal(t *testing.T, w *zktest.World, args ...string) string {
	t.Helper()
	p := on(t, w, append(args, "--", "true")...)
	require.Equal(t, exitOwnFault, p.exit())
	return p.stderr.String()
}
