package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	"usage":        "compared with the help",
	"json":         "parsed",
	"yaml":         "checked by the types of Kubernetes, in tools/manifests",
	"ini":          "a systemd unit, checked by systemd-analyze in packaging",
	"properties":   "ZooKeeper's configuration: a server is started with it",
	"mermaid":      "compared with the imports",
	"sql":          "for people",
	"text":         "for people: output, trees, drawings",
}

// blocks returns all blocks of all documents.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, path := range files(t, "*.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := filepath.Rel(root, path)
		require.NoError(t, err)
		all = append(all, blocksOf(t, doc, string(text))...)
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
var commandLine = regexp.MustCompile(`(?m)^(\$ )?(sudo )?(zkcoord|coorddemo|make|go|kubectl|systemctl|apt|apt-get|dpkg|export) +[^─]*$`)

// So that no command goes unchecked: every block says what it is, and commands
// are in those that are run or checked.
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
