package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plots are what each example shows, in order. Replicas with the same letter
// are the same one.
var plots = map[string]string{
	"barrier": `A  counts its share of round 1
*** A is killed ***
begins again: .*missing
B  counts its share of round 2, \d of 2
the text has 39 words
the text has 39 words`,
	"cron": `A  runs the slot of \S+, attempt 1
*** A is killed ***
B  runs the slot of \S+, attempt 2
has run the slot
runs the slot of \S+, attempt 1
has run the slot`,
	"leader": `A  leads, with token \d+
*** A is killed ***
B  leads, with token \d+
B  does not lead any more: .*the disk is full
C  leads, with token \d+`,
	"limit": `A  has seat \d
*** A is killed ***
B  has seat \d
C  has seat \d`,
	"migrations": `A  migrates, attempt 1
*** A is killed ***
B  migrates, attempt 2
migrated: 17 tables by B
migrated: 17 tables by B`,
	"report": `A  begins the report
*** A is paused ***
B  has written the report
*** A goes on ***
A  is refused: .*stale fencing token`,
	"shards": `A  serves
*** A is killed ***
B  serves
serves
serves
serves
serves
serves`,
	"workers": `A  takes job 1, delivery 1
*** A is killed ***
has done job \d
has done job \d
has done job \d
B  takes job \d, delivery 2`,
}

func TestEachExampleShowsWhatItSays(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o",
		bin+"/", "./...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as scripts/dist.sh has it
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	programs, err := filepath.Glob(bin + "/*")
	require.NoError(t, err)
	require.Len(t, programs, len(plots))
	type result struct {
		shown []byte
		err   error
	}
	results := map[string]chan result{}
	for _, program := range programs { // all at once: they mostly wait
		run := exec.CommandContext(t.Context(), program)
		run.Env = append(os.Environ(), "ZK_SERVERS=")
		done := make(chan result, 1)
		results[filepath.Base(program)] = done
		go func() {
			shown, err := run.CombinedOutput()
			done <- result{shown, err}
		}()
	}
	for name, done := range results {
		t.Run(name, func(t *testing.T) {
			got := <-done
			require.NoError(t, got.err, "%s", got.shown)
			follows(t, plots[name], string(got.shown))
		})
	}
}

var letter = regexp.MustCompile(`\b[A-C]\b`)

// follows checks that lines are shown in the order of a plot, and that each
// letter stands for one replica.
func follows(t *testing.T, plot, shown string) {
	t.Helper()
	pattern, letters := "(?s)", []string{}
	for line := range strings.SplitSeq(plot, "\n") {
		line = strings.ReplaceAll(line, "***", `\*\*\*`)
		line = letter.ReplaceAllStringFunc(line, func(l string) string {
			letters = append(letters, l)
			return `(replica \d)`
		})
		pattern += ".*?" + strings.ReplaceAll(line, ".*s", `[^\n]*s`)
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(shown)
	require.NotNil(t, found, "not as in the plot %s:\n%s", pattern, shown)
	cast := map[string]string{}
	for i, l := range letters {
		if cast[l] == "" {
			cast[l] = found[i+1]
		}
		require.Equal(t, cast[l], found[i+1], "%s in:\n%s", l, shown)
	}
	for a, replica := range cast {
		for b, other := range cast {
			require.Equal(t, a == b, replica == other, "%s and %s in:\n%s", a, b, shown)
		}
	}
}
