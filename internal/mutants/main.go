// Command mutants shows that the tests notice when a guard of the library is
// missing: it switches one guard off, runs the tests that must notice, and
// expects them to fail; one guard after the other. The sources are not touched:
// the go command is told to compile a changed copy of one file in the place of
// the original.
//
//	go run ./internal/mutants            all, as "make mutants" does
//	go run ./internal/mutants -run AwaitWindow those whose name contains AwaitWindow
//	go run ./internal/mutants -show      with what the tests said, to see that
//	                                     they failed for the right reason
//
// It fails when a mutant survives, when a test fails without a mutant, and when
// the function that a mutant names no longer has the text to replace exactly
// once; the function may stand in any file of the tree.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// mutant is a guard and how to switch it off.
type mutant struct {
	guard string // the guarded promise, in a few words
	edits []edit // switch the guard off
	tests suites
}

// off makes a row of the table: a guard, the tests that must notice when it is
// missing, and the edit that takes it away.
func off(guard string, tests suites, decl, old, new string) mutant {
	return mutant{guard, []edit{{decl, old, new}}, tests}
}

// and has the mutant make a further edit.
func (m mutant) and(decl, old, new string) mutant {
	m.edits = append(m.edits, edit{decl, old, new})
	return m
}

type edit struct {
	decl string // a function, a method ("Type.Name"), a variable or a constant of a package
	old  string // a piece of its text, there exactly once in the tree
	new  string // its replacement
}

// suite is tests that must fail with the guard switched off; one that does is
// enough. They run on the embedded server, nearly all in virtual time.
type suite struct {
	pkg, run string
	flags    string // for the tests
}

type suites []suite

func in(pkg, run string) suites { return suites{{pkg: pkg, run: run}} }

func (s suites) or(pkg, run string) suites { return append(s, suite{pkg: pkg, run: run}) }

func main() {
	only := flag.String("run", "", "only mutants whose guard matches this regular expression")
	jobs := flag.Int("jobs", max(1, runtime.NumCPU()/2), "how many mutants at a time")
	show := flag.Bool("show", false, "print what the tests said that killed a mutant")
	flag.Parse()
	if err := run(*only, *jobs, *show); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string, jobs int, show bool) error {
	pattern, err := regexp.Compile("(?i)" + only)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !pattern.MatchString(m.guard) })
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	tree, err := readSources(root, chosen)
	if err != nil {
		return err
	}
	b := bench{root: root, work: work, tree: tree, show: show, sick: map[string]error{}}
	begun := time.Now()
	b.examine(chosen)
	fmt.Printf("the tests were run without a mutant (%v)\n", time.Since(begun).Round(time.Second))
	return b.all(chosen, jobs, begun)
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
