package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bench runs mutants.
type bench struct {
	root, work string
	tree       sources
	show       bool
	sick       map[string]error // packages whose tests fail without a mutant
}

// all runs the mutants, so many at a time, and reports each.
func (b bench) all(mutants []mutant, jobs int, begun time.Time) error {
	limit := make(chan struct{}, jobs)
	var failures atomic.Int64
	var wg sync.WaitGroup
	for i, m := range mutants {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			from := time.Now()
			by, err := b.kill(i, m)
			if err != nil {
				failures.Add(1)
				fmt.Printf("FAIL      %s: %v\n", m.guard, err)
				return
			}
			fmt.Printf("killed    %s: by %s (%v)\n", m.guard, by, time.Since(from).Round(100*time.Millisecond))
		})
	}
	wg.Wait()
	failed := int(failures.Load())
	fmt.Printf("%d of %d mutants killed in %v\n", len(mutants)-failed, len(mutants), time.Since(begun).Round(time.Second))
	if failed > 0 {
		return fmt.Errorf("%d guards are missed by no test, or could not be switched off", failed)
	}
	return nil
}

// examine runs every suite without a mutant.
func (b bench) examine(mutants []mutant) {
	runs := map[string][]string{}
	for _, m := range mutants {
		for _, s := range m.tests {
			if !slices.Contains(runs[s.pkg], s.run) {
				runs[s.pkg] = append(runs[s.pkg], s.run)
			}
		}
	}
	for pkg, names := range runs {
		all := suite{pkg: pkg, run: strings.Join(names, "|")}
		out, err := b.test("", all)
		if err != nil { // once more: a busy machine is no reason to stop
			out, err = b.test("", all)
		}
		if err != nil {
			b.sick[pkg] = fmt.Errorf("%s fails without a mutant:\n%s", pkg, out)
		}
	}
}

// noticed finds the first test that failed, or a panic.
var noticed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|(panic: .*)`)

// kill switches the guard off and returns which test noticed.
func (b bench) kill(i int, m mutant) (by string, err error) {
	overlay, err := b.overlay(i, m)
	if err != nil {
		return "", err
	}
	for _, s := range m.tests {
		if err := b.sick[s.pkg]; err != nil {
			return "", err
		}
		out, err := b.test(overlay, s)
		switch found := noticed.FindStringSubmatch(out); {
		case err == nil && strings.Contains(out, "no tests to run"):
			return "", fmt.Errorf("no test in %s matches %s", s.pkg, s.run)
		case err == nil:
		case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
			return "", fmt.Errorf("does not compile:\n%s", out)
		case found == nil:
			return "", fmt.Errorf("%s ended without a verdict:\n%s", s.pkg, out)
		default:
			if b.show {
				fmt.Printf("%s\n%s", m.guard, out)
			}
			return cmp.Or(found[1], found[2]), nil
		}
	}
	return "", errors.New("survived")
}

// overlay writes the changed files and the go command's description of them.
func (b bench) overlay(i int, m mutant) (string, error) {
	changed, err := b.tree.apply(m)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range changed {
		replace[path] = filepath.Join(b.work, fmt.Sprintf("%d-%d.go", i, len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	description, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(b.work, fmt.Sprintf("%d.json", i))
	return overlay, os.WriteFile(overlay, description, 0o600)
}

// limit bounds one run of tests; one that hangs has noticed, too.
const limit = 90 * time.Second

func (b bench) test(overlay string, s suite) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout", limit.String(), "-run", s.run}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	args = append(args, s.pkg)
	args = append(args, strings.Fields(s.flags)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "ZKTEST_SERVERS=embedded", "ZKTEST_ARTEFACTS="+filepath.Join(b.work, "artefacts"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
