package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func javaProgram(t testing.TB) interop.Program   { return interop.Java(t, "Contender") }
func pythonProgram(t testing.TB) interop.Program { return interop.Python(t, "contender.py") }

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

// childName names the contenders in Go among the children of the test binary.
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

// A contender answers each line with one:
//
//	prepare TASK   prepared, when the sessions are there and the work goes on
//	run            figures FIGURES, of the time since the command
//	close          closed, when its sessions are
//
// or with "error" and a reason. It ends with its standard input.

// job is a task that is under way.
type job struct {
	*sessions
	run measurement
}

// measurement does what is measured.
type measurement func() (figures, error)

// work prepares each kind of task, and opens its sessions.
var work = map[string]func(*sessions, task) (measurement, error){
	"contend": contend,
	"hold":    hold,
	"barrier": barrier,
	"queue":   queueItems,
	"chain":   chain,
	"idle":    idle,
	"probe":   probe,
	"backlog": turnover,
	"wait":    wait,
}

// childMain is the main function of a contender in Go; its name is the only
// argument.
func childMain(args []string) {
	c := contenderNamed(args[0])
	var current job
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		fmt.Println(answer(c, &current, words[0], words[1:]))
	}
}

func answer(c contender, current *job, command string, rest []string) string {
	var result figures
	var err error
	switch command {
	case "prepare":
		t := parseTask(rest)
		current.sessions = &sessions{open: c.open}
		current.ctx, current.cancel = context.WithCancel(context.Background())
		if current.run, err = work[t.work](current.sessions, t); err != nil {
			current.close()
		}
	case "run":
		result, err = current.run()
	case "close":
		current.close()
	}
	if err != nil {
		return "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return map[string]string{"prepare": "prepared", "run": "figures " + result.String(), "close": "closed"}[command]
}

// task is what a contender has to do. It travels as one line of words
// key=value, which a few lines of any language can read.
type task struct {
	work     string   // a key of the table above
	addrs    []string // of servers; the sessions take them by turns
	path     string   // of this repetition alone
	sessions int
	// processes is how many processes do the same concurrently, without knowing
	// it.
	processes int
	each      int           // goroutines or locks of each session; consumers of a queue
	own       bool          // each goroutine has a path of its own
	count     int           // links of a chain, items of a queue, attempts
	lined     bool          // it begins when all have queued, of all processes
	behind    bool          // another process has the lock that they queue for
	settle    time.Duration // how long waiters may take to queue before it begins
	cut       bool          // the connection is cut once; without the contender's knowledge
	timeout   time.Duration // of sessions
	during    time.Duration // of the measurement
}

func (t task) String() string {
	return fmt.Sprintf(
		"work=%s addrs=%s path=%s sessions=%d each=%d own=%t count=%d lined=%t behind=%t settle=%d timeout=%d during=%d",
		t.work, strings.Join(t.addrs, ","), t.path, t.sessions, t.each, t.own, t.count, t.lined, t.behind,
		t.settle.Milliseconds(), t.timeout.Milliseconds(), t.during.Milliseconds())
}

// parseTask reads what String wrote.
func parseTask(words []string) task {
	values := map[string]string{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		values[key] = value
	}
	number := func(key string) int {
		n, _ := strconv.Atoi(values[key])
		return n
	}
	millis := func(key string) time.Duration { return time.Duration(number(key)) * time.Millisecond }
	return task{
		work: values["work"], addrs: strings.Split(values["addrs"], ","), path: values["path"],
		sessions: number("sessions"), each: number("each"), own: values["own"] == "true", count: number("count"),
		lined: values["lined"] == "true", behind: values["behind"] == "true", settle: millis("settle"),
		timeout: millis("timeout"), during: millis("during"),
	}
}

// figures are what came out: "ops" and "seconds", and others by workload, times
// in seconds.
type figures map[string]float64

func (f figures) String() string {
	words := make([]string, 0, len(f))
	for _, key := range slices.Sorted(maps.Keys(f)) {
		words = append(words, fmt.Sprintf("%s=%g", key, f[key]))
	}
	return strings.Join(words, " ")
}

func parseFigures(words []string) (figures, error) {
	f := figures{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("bench: %q is no figure", word)
		}
		f[key] = n
	}
	return f, nil
}
