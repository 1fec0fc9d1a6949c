package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A change of a guard fails here if its mutant's function no longer has the
// text, long before the proof runs.
func TestTheTableIsUpToDate(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	tree, err := readSources(root, mutants)
	require.NoError(t, err)
	guards := map[string]bool{}
	for _, m := range mutants {
		require.False(t, guards[m.guard], "%s: there are two of this name", m.guard)
		guards[m.guard] = true
		for _, e := range m.edits {
			_, err := tree.find(e)
			assert.NoError(t, err, m.guard)
			assert.NotEqual(t, e.old, e.new, m.guard)
		}
		require.NotEmpty(t, m.tests, m.guard)
		for _, s := range m.tests {
			pattern := regexp.MustCompile(s.run)
			assert.True(t, slices.ContainsFunc(testsIn(t, filepath.Join(root, s.pkg)), pattern.MatchString),
				"%s: no test in %s matches %s", m.guard, s.pkg, s.run)
		}
	}
}

// A text that stands in a file twice is found by its function, a method by its
// receiver, and two edits of one file are both made.
func TestAMutantIsFoundByFunctionAndText(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "some", "file.go")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(`package some

const limit = 3

func (t *T[K]) less() bool { return len(t.all) < limit }

func less(n int) bool { return n < limit }

func twice(n int) bool { return n < limit || n < limit }
`), 0o600))
	m := off("", nil, "T.less", "limit", "9").and("limit", "3", "4").and("less", "n < limit", "true")
	tree, err := readSources(root, []mutant{m})
	require.NoError(t, err)

	changed, err := tree.apply(m)
	require.NoError(t, err)
	require.Equal(t, map[string]string{file: `package some

const limit = 4

func (t *T[K]) less() bool { return len(t.all) < 9 }

func less(n int) bool { return true }

func twice(n int) bool { return n < limit || n < limit }
`}, changed)

	for decl, old := range map[string]string{"twice": "limit", "less": "len", "gone": "limit"} {
		_, err := tree.apply(off("", nil, decl, old, ""))
		require.ErrorContains(t, err, "not once", decl)
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsIn lists the tests of the package in a directory.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
			names = append(names, match[1])
		}
	}
	return names
}
