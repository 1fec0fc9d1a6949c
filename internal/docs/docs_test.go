// Package docs checks what the documents say against the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

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

var (
	declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	named    = regexp.MustCompile(`\bTest[A-Z0-9]\w*…?`)
	scenario = regexp.MustCompile(`\bF\d\d\b`)
	run      = regexp.MustCompile(`go test [^` + "`" + `\n]*-run '?(\w+)`)
)

// Documents prove what they say by naming tests. A name that ends in … is the
// beginning of one, F07 stands for TestF07…, and -run finds what contains its
// pattern.
func TestTheTestsThatTheDocumentsNameExist(t *testing.T) {
	tests := map[string]bool{}
	for _, path := range files(t, "*_test.go") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
	}
	exists := func(is func(name, like string) bool, like string) bool {
		for name := range tests {
			if is(name, like) {
				return true
			}
		}
		return false
	}
	checked := 0
	for _, path := range files(t, "*.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range named.FindAllString(string(text), -1) {
			checked++
			if begin, cut := strings.CutSuffix(name, "…"); !tests[name] && !(cut && exists(strings.HasPrefix, begin)) {
				t.Errorf("%s names %s, and there is no such test", path, name)
			}
		}
		for _, number := range scenario.FindAllString(string(text), -1) {
			if !exists(strings.HasPrefix, "Test"+number) {
				t.Errorf("%s names %s, and there is no such scenario", path, number)
			}
		}
		for _, found := range run.FindAllStringSubmatch(string(text), -1) {
			if !exists(strings.Contains, found[1]) {
				t.Errorf("%s says %q, and no test is run by that", path, found[0])
			}
		}
	}
	require.Greater(t, checked, 100)
}

func TestTheReadmeFitsOnThreeScreens(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 150)
}

// A tab counts 4. What is preformatted, an example's output and a single long
// word are as long as they are.
func TestCommentsEndAtColumn80(t *testing.T) {
	for _, path := range files(t, "*.go") {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for i, line := range strings.Split(string(source), "\n") {
			comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
			long := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > 80
			if ok && long && strings.Contains(strings.TrimSpace(comment), " ") &&
				!strings.HasPrefix(comment, " ") && !strings.HasPrefix(comment, "Output:") {
				t.Errorf("%s:%d: the comment is longer than 80 columns", path, i+1)
			}
		}
	}
}

// See virtualtime.Test for what happens elsewhere under the race detector.
func TestBubblesAreMadeInOnePlace(t *testing.T) {
	call := "synctest" + ".Test("
	for _, path := range files(t, "*.go") {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		made := strings.Contains(string(source), call)
		require.Equal(t, filepath.Base(path) == "virtualtime.go", made, "%s: %s", path, call)
	}
}
