package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A change of a guard fails here if its mutant's text is no longer there, long
// before the proof runs.
func TestTheTableIsUpToDate(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	guards := map[string]bool{}
	for _, m := range mutants {
		require.False(t, guards[m.guard], "%s: there are two of this name", m.guard)
		guards[m.guard] = true
		for _, e := range append([]edit{m.edit}, m.also...) {
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			require.NoError(t, err, m.guard)
			require.Equal(t, 1, strings.Count(string(source), e.old), "%s: %s must have this once:\n%s", m.guard, e.file, e.old)
			require.NotEqual(t, e.old, e.new, m.guard)
		}
		require.NotEmpty(t, m.tests, m.guard)
		for _, s := range m.tests {
			pattern := regexp.MustCompile(s.run)
			require.True(t, slices.ContainsFunc(testsIn(t, filepath.Join(root, s.pkg)), pattern.MatchString), "%s: no test in %s matches %s", m.guard, s.pkg, s.run)
		}
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
