// Package docs checks what the documents say against the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// files returns the files below the root whose names match, tracked or not.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if ok, _ := filepath.Match(pattern, d.Name()); ok {
			found = append(found, path)
		}
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// squeezed drops indentation and empty lines.
func squeezed(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// What the documents show is compiled: each block of Go stands, but for its
// indentation, in a test file.
func TestTheExamplesInTheDocumentsAreCompiled(t *testing.T) {
	var compiled strings.Builder
	for _, path := range files(t, "*_test.go") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		compiled.WriteString(squeezed(string(text)))
	}
	blocks := 0
	for _, path := range files(t, "*.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			if !strings.Contains(compiled.String(), squeezed(block[1])) {
				t.Errorf("%s: no test compiles this example:\n%s", path, block[1])
			}
		}
	}
	require.Positive(t, blocks)
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestTheLinksBetweenTheDocumentsLead(t *testing.T) {
	for _, path := range files(t, "*.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(path), found[1]))
			require.NoError(t, err, "%s links to %s", path, found[1])
		}
	}
}

func TestTheReadmeFitsOnThreeScreens(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 150)
}
