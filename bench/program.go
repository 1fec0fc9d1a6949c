package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func javaProgram(t testing.TB) interop.Program {
	return interop.Java(t, filepath.Join("testdata", "java"), "Contender")
}

func pythonProgram(t testing.TB) interop.Program {
	return interop.Python(t, filepath.Join("testdata", "python", "contender.py"))
}

// process is a contender that runs.
type process struct {
	child *zktest.ChildProcess
}

// start starts a contender's process, which ends with the test.
func (m *measurer) start(c contender) process {
	if c.program == nil {
		return process{zktest.Child(m.t, childName, c.name)}
	}
	if m.programs[c.name] == nil {
		m.programs[c.name] = c.program(m.t)
	}
	return process{m.programs[c.name].Start(m.t)}
}

// childName is that of contenders in Go among the children of the test binary.
const childName = "contender"

// answered returns the words of the next answer behind its first one, which is
// to be as expected.
func (p process) answered(expected string, within time.Duration) ([]string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case line, ok := <-p.child.Lines():
		words := strings.Fields(line)
		switch {
		case !ok:
			return nil, errors.New("the contender's process has ended")
		case words[0] != expected:
			return nil, fmt.Errorf("the contender answered %q in the place of %q", line, expected)
		}
		return words[1:], nil
	case <-timer.C:
		return nil, fmt.Errorf("the contender did not answer %q within %v", expected, within)
	}
}

// processorTime is what the processes have used.
func processorTime(pids ...int) time.Duration {
	const perSecond = 100 // ticks of the kernel's interface
	ticks := 0
	for _, pid := range pids {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// The name in brackets may hold spaces and brackets itself.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 13 {
			continue
		}
		for _, field := range fields[11:13] { // in the process itself, and in the kernel
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / perSecond
}
