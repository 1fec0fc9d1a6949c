// Package docs checks what the documents say against the code.
package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
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

// texts are what those files say, by their paths.
func texts(t *testing.T, pattern string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, path := range files(t, pattern) {
			if !yield(path, read(t, path)) {
				return
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// What a reader copies compiles outside of this module.
func TestExamplesOfTheLibraryImportNoInternalPackage(t *testing.T) {
	for path, text := range texts(t, "*example*_test.go") {
		if !strings.Contains(path, "/internal/") { // of the command
			require.NotContains(t, text, `"github.com/zkcoord/zkcoord/internal/`, path)
		}
	}
}

var opens = regexp.MustCompile(`coord\.Open\((\w+),`)

// Open waits for a server for as long as its context lasts.
func TestNoExampleWaitsForServersForEver(t *testing.T) {
	for path, text := range texts(t, "*example*_test.go") {
		for function := range strings.SplitSeq(text, "\nfunc ") {
			for _, with := range opens.FindAllStringSubmatch(function, -1) {
				require.Regexp(t, `\b`+with[1]+`, \w+ := context\.WithTimeout\(`, function, path)
			}
		}
	}
}

var (
	holds   = regexp.MustCompile(`\b(?:lock|rwlock|semaphore|election|once|cron|slots)\.New\(`)
	bounds  = regexp.MustCompile(`\b(?:lock|rwlock|semaphore|election|once|cron|slots)\.(?:MaxHold|StopGrace)\(`)
	serving = regexp.MustCompile(`(?s)\b(?:election|cron)\.New\(.*\.Run\(ctx, `)
)

// A service that hangs in its shutdown would hold for ever.
func TestF74EveryExampleOfAServiceBoundsItsHold(t *testing.T) {
	services := map[string]string{"docs/starting.md": blocksOfKind(t, "go main.go")[0].text}
	for path, text := range texts(t, "main.go") {
		if strings.HasPrefix(path, root+"/examples/") && holds.MatchString(text) {
			services[path] = text
		}
	}
	for path, text := range texts(t, "*example*_test.go") {
		for function := range strings.SplitSeq(text, "\nfunc ") {
			if serving.MatchString(function) {
				name, _, _ := strings.Cut(function, "(")
				services[path+", "+name] = function
			}
		}
	}
	require.Greater(t, len(services), 7)
	for name, service := range services {
		if !bounds.MatchString(service) {
			t.Errorf("%s: neither MaxHold nor StopGrace", name)
		}
	}
}

var aroundLines = regexp.MustCompile(`\s*\n\s*`)

// squeezed drops indentation and empty lines.
func squeezed(text string) string {
	return "\n" + aroundLines.ReplaceAllString(strings.TrimSpace(text), "\n") + "\n"
}

// What the documents show is compiled: each block of Go stands, but for its
// indentation, in a test file, and one of Python in a program of the tests.
func TestTheExamplesInTheDocumentsAreCompiled(t *testing.T) {
	for kind, pattern := range map[string]string{"go": "*_test.go", "python": "*.py"} {
		var compiled strings.Builder
		for _, text := range texts(t, pattern) {
			compiled.WriteString(squeezed(text))
		}
		for _, b := range blocksOfKind(t, kind) {
			if !strings.Contains(compiled.String(), squeezed(b.text)) {
				t.Errorf("%v: no test has this example:\n%s", b, b.text)
			}
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	headline = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names by which GitHub knows the headings of a document.
func anchors(t *testing.T, path string) (names []string) {
	t.Helper()
	for _, found := range headline.FindAllStringSubmatch(read(t, path), -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestTheLinksBetweenTheDocumentsLeadToFilesAndHeadings(t *testing.T) {
	for path, text := range texts(t, "*.md") {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			to := path
			if found[1] != "" {
				to = filepath.Join(filepath.Dir(path), found[1])
			}
			_, err := os.Stat(to)
			require.NoError(t, err, "%s links to %s", path, found[1])
			if found[2] != "" {
				require.Contains(t, anchors(t, to), found[2], "%s links to %s", path, found[1])
			}
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
	tests := "\n" // a line for each
	for _, text := range texts(t, "*_test.go") {
		for _, found := range declared.FindAllStringSubmatch(text, -1) {
			tests += found[1] + "\n"
		}
	}
	checked := 0
	for path, text := range texts(t, "*.md") {
		for _, name := range named.FindAllString(text, -1) {
			checked++
			begin, cut := strings.CutSuffix(name, "…")
			if !cut {
				begin += "\n"
			}
			if !strings.Contains(tests, "\n"+begin) {
				t.Errorf("%s names %s, and there is no such test", path, name)
			}
		}
		for _, number := range scenario.FindAllString(text, -1) {
			checked++
			if !strings.Contains(tests, "\nTest"+number) {
				t.Errorf("%s names %s, and there is no such scenario", path, number)
			}
		}
		for _, found := range run.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(tests, found[1]) {
				t.Errorf("%s says %q, and no test is run by that", path, found[0])
			}
		}
	}
	require.Greater(t, checked, 100)
}

func TestTheReadmeFitsOnThreeScreens(t *testing.T) {
	require.LessOrEqual(t, strings.Count(read(t, root+"/README.md"), "\n"), 150)
}

// A tab counts 4. What is preformatted, an example's output and a single long
// word are as long as they are.
func TestCommentsEndAtColumn80(t *testing.T) {
	for path, source := range texts(t, "*.go") {
		for i, line := range strings.Split(source, "\n") {
			comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
			long := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > 80
			if ok && long && strings.Contains(strings.TrimSpace(comment), " ") &&
				!strings.HasPrefix(comment, " ") && !strings.HasPrefix(comment, "Output:") {
				t.Errorf("%s:%d: the comment is longer than 80 columns", path, i+1)
			}
		}
	}
}

var code = regexp.MustCompile("`[^`]*`")

// Lines of documents end at column 120: a change can be read. Tables, headings,
// what is between fences or written by a program, and a single long word (code
// counts as one) are as long as they are.
func TestLinesOfDocumentsEndAtColumn120(t *testing.T) {
	for path, text := range texts(t, "*.md") {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue // an entry is a line
		}
		fence, written := false, false
		for i, line := range strings.Split(text, "\n") {
			switch {
			case strings.HasPrefix(line, "```"):
				fence = !fence
			case strings.HasPrefix(line, "<!-- Written by"):
				written = strings.Contains(line, "begin")
			case fence, written, strings.HasPrefix(line, "|"), strings.HasPrefix(line, "!["), strings.HasPrefix(line, "#"):
			case utf8.RuneCountInString(line) > 120 &&
				strings.Contains(strings.Trim(code.ReplaceAllString(line, "x"), " -"), " "):
				t.Errorf("%s:%d: the line is longer than 120 columns", path, i+1)
			}
		}
	}
}

// See virtual.Test for what happens elsewhere under the race detector.
func TestBubblesAreMadeInOnePlace(t *testing.T) {
	call := "synctest" + ".Test("
	for path, source := range texts(t, "*.go") {
		made := strings.Contains(source, call)
		require.Equal(t, strings.HasSuffix(path, "virtual/virtual.go"), made, "%s: %s", path, call)
	}
}

func TestMain(m *testing.M) { zktest.Main(m) }

// A block is what a document shows between two fences.
type block struct {
	doc, heading string
	line         int    // of its first fence
	kind         string // what the fence says
	text         string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.doc, b.line) }

// kinds says what becomes of the blocks of each kind in these tests, and in
// those of other packages that look at the documents.
var kinds = map[string]string{
	"go":           "compiled",
	"go main.go":   "a whole program: built with the go.mod, and run",
	"go.mod":       "see go main.go",
	"sh":           "run",
	"sh elsewhere": "for another machine, or for hours: every command is checked",
	"usage":        "written by the program",
	"json":         "parsed",
	"yaml":         "checked by the types of Kubernetes, in tools/manifests",
	"ini":          "a systemd unit, checked by systemd-analyze in packaging",
	"properties":   "ZooKeeper's configuration: a server is started with it",
	"python":       "part of a program that a test runs",
	"mermaid":      "compared with the imports",
	"text":         "for people: output, trees, drawings",
}

// blocks returns all blocks of all documents.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	for path, text := range texts(t, "*.md") {
		doc, err := filepath.Rel(root, path)
		require.NoError(t, err)
		all = append(all, blocksOf(t, doc, text)...)
	}
	return all
}

func blocksOf(t *testing.T, doc, text string) (all []block) {
	t.Helper()
	var open *block
	heading := ""
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open != nil:
			all, open = append(all, *open), nil
		case isFence:
			open = &block{doc: doc, heading: heading, line: i + 1, kind: fence}
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "    "):
			t.Errorf("%s:%d: a block is put between fences that say what it is", doc, i+1)
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		}
	}
	require.Nil(t, open, "%s: a fence is open", doc)
	return all
}

func blocksOfKind(t *testing.T, kind string) []block {
	t.Helper()
	all := slices.DeleteFunc(blocks(t), func(b block) bool { return b.kind != kind })
	require.NotEmpty(t, all, kind)
	return all
}

// commandLine is the beginning of a line that people would type.
var commandLine = regexp.MustCompile(
	`(?m)^(\$ )?(sudo )?(zkcoord|coorddemo|make|go|kubectl|systemctl|apt|apt-get|dpkg|export) +[^─]*$`)

// No command goes unchecked: every block names its kind, and commands stand in
// blocks of a kind that is run or checked.
func TestEveryBlockInTheDocumentsIsOfAKnownKind(t *testing.T) {
	for _, b := range blocks(t) {
		if kinds[b.kind] == "" {
			t.Errorf("%v: a block of kind %q; known are %v", b, b.kind, kinds)
		}
		if b.kind == "text" && commandLine.MatchString(b.text) {
			t.Errorf("%v: commands are in a block of kind sh: %s", b, commandLine.FindString(b.text))
		}
		if b.kind == "json" && !json.Valid([]byte(b.text)) {
			t.Errorf("%v: no JSON", b)
		}
	}
}

// measured reads, of the first table with a column below a heading of
// docs/benchmarks.md, the numbers of that column by contender, without the
// ratios.
func measured(t *testing.T, heading, column string) map[string]string {
	t.Helper()
	_, below, found := strings.Cut(read(t, root+"/docs/benchmarks.md"), "## "+heading+"\n")
	require.True(t, found, heading)
	at, figures := 0, map[string]string{}
	for line := range strings.Lines(below) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " *`")
		}
		switch {
		case at == 0:
			at = max(0, slices.Index(cells, column))
		case len(cells) == 1:
			return figures
		default:
			figures[cells[0]], _, _ = strings.Cut(cells[at], " ")
		}
	}
	require.Positive(t, at, column)
	return figures
}

func TestTheFiguresOfTheComparisonAreThoseOfTheBenchmarks(t *testing.T) {
	text := read(t, root+"/README.md")
	peers := []string{"zkcoord", "Curator", "Kazoo", "zk.Lock", "etcd"}
	cycle := measured(t, "Uncontended acquire and release", "median, µs")
	for row, figures := range map[string]map[string]string{
		"acquire and release, one server, µs":         cycle,
		"hand-offs per second, 32 sessions, ensemble": measured(t, "Hand-offs among N sessions", "ensemble of three, loopback (× zk.Lock)"),
	} {
		want := "| " + row
		for _, peer := range peers {
			want += " | " + figures[peer]
		}
		require.Contains(t, text, want+" |\n")
	}
	require.Contains(t, text, "faster ("+cycle["Redis (weaker)"]+" µs)")
}
