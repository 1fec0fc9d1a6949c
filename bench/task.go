package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// task is what a contender is told to do. It travels as one line of words
// key=value, which a few lines of any language can read.
type task struct {
	work     string   // a key of the table in child.go
	addrs    []string // of servers; the sessions take them by turns
	path     string   // of this repetition alone
	sessions int
	// processes is how many do the same at once; those do not know of it.
	processes int
	each      int           // goroutines or locks of each session; consumers of a queue
	own       bool          // each goroutine has a path of its own
	count     int           // links of a chain, items of a queue, attempts
	lined     bool          // it begins when all have queued, of all processes
	behind    bool          // another process has the lock that they queue for
	settle    time.Duration // how long waiters may take to queue before it begins
	cut       bool          // the connection is cut once; the contender is not told
	timeout   time.Duration // of sessions
	during    time.Duration // of the measurement
}

func (t task) String() string {
	return fmt.Sprintf("work=%s addrs=%s path=%s sessions=%d each=%d own=%t count=%d lined=%t behind=%t settle=%d timeout=%d during=%d",
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
		lined: values["lined"] == "true", behind: values["behind"] == "true", settle: millis("settle"), timeout: millis("timeout"), during: millis("during"),
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
