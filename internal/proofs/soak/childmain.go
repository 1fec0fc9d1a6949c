package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// calmly is the line that tells a child that the faults are over.
const calmly = "calm"

// childName is the name under which the child's main function is registered.
const childName = "soak"

// monotonic is the machine's monotonic clock, the same for all processes.
func monotonic() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// childMain runs a client with its workers, like those in the soak's own
// process. It writes to stdout: first a line with the clock, then records, and
// lines that begin with "!" for problems, "#" for counts, and "=" for a write
// by a transaction. A line on stdin says that the faults are over; the end of
// stdin, to stop.
func childMain(args []string) {
	v := newLineWriter()
	if err := childWork(args, v); err != nil {
		v.say("! %s: %v", args[0], err)
	}
	v.end()
}

// lineWriter writes lines to stdout in the background, so that no worker waits
// for the reader while it holds a lock.
type lineWriter struct {
	lines chan string
	asked chan chan struct{} // answered when all lines so far are written
	over  chan struct{}
}

func newLineWriter() *lineWriter {
	v := &lineWriter{lines: make(chan string, 4096), asked: make(chan chan struct{}), over: make(chan struct{})}
	go v.write(bufio.NewWriter(os.Stdout))
	return v
}

func (v *lineWriter) write(w *bufio.Writer) {
	defer close(v.over)
	for {
		select {
		case line, more := <-v.lines:
			if !more {
				_ = w.Flush()
				return
			}
			_, _ = w.WriteString(line + "\n")
			if len(v.lines) == 0 {
				_ = w.Flush()
			}
		case done := <-v.asked:
			for range len(v.lines) {
				_, _ = w.WriteString(<-v.lines + "\n")
			}
			_ = w.Flush()
			close(done)
		}
	}
}

func (v *lineWriter) say(format string, args ...any) { v.lines <- fmt.Sprintf(format, args...) }

// flush returns when all lines so far are written: they survive a kill of the
// process from then on.
func (v *lineWriter) flush() {
	done := make(chan struct{})
	v.asked <- done
	<-done
}

func (v *lineWriter) end() {
	close(v.lines)
	<-v.over
}

// childArgs returns a child's arguments.
func childArgs(name, servers, root, register string, seed uint64) []string {
	return []string{name, servers, root, register, strconv.FormatUint(seed, 10)}
}

func childWork(args []string, v *lineWriter) error {
	say := v.say
	name, servers, root := args[0], args[1], args[2]
	resource, err := dialRegister(args[3])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	rec := history.New()
	rec.ByChecks()
	say("%d", int64(monotonic()-time.Since(rec.Begin())))
	rec.Sink(func(r history.Record) {
		line, err := json.Marshal(r)
		if err != nil {
			say("! %v", err)
		}
		say("%s", line)
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(T), coord.WithTick(tick), coord.WithIdentity(name),
		coord.WithObserver(childObserver(name, say)))
	if err != nil {
		return err
	}
	calm := make(chan struct{})
	s := &site{root: root, seed: seed, Site: workload.Site{
		Name: name, Rec: rec, Client: func(context.Context) *coord.Client { return c }, Pace: pace, Calm: calm,
		Checks: childChecks{v: v, resource: resource},
	}}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if line := in.Text(); line == calmly {
				close(calm)
			}
		}
		cancel()
	}()
	s.work(ctx)
	return c.Close(context.Background())
}

// childChecks are the checks of a child. After a pause its calls return late,
// and it learns late of its holds' losses: so neither is judged.
type childChecks struct {
	workload.Unchecked
	v        *lineWriter
	resource *remote
}

func (c childChecks) Accept(key string, token int64) bool { return c.resource.use(key, token) }
func (c childChecks) Flush()                              { c.v.flush() }
func (c childChecks) Count(what string)                   { c.v.say("# %s", what) }
func (c childChecks) Violated(format string, args ...any) { c.v.say("! "+format, args...) }

func (c childChecks) Wrote(key string, w history.Write) {
	c.v.say("= %s %d %d %d", key, w.Zxid, w.Token, w.Value)
}

func childObserver(name string, say func(string, ...any)) func(coord.Event) {
	counted := map[string]string{
		coord.SessionOver: "sessions over", coord.ClaimRecovered: "creates found again",
		coord.StrayRemoved: "nodes made late, and removed",
	}
	return func(e coord.Event) {
		switch what, ok := counted[e.Kind]; {
		case ok:
			say("# %s", what)
		case e.Kind == coord.NodeStranded:
			say("! %s: node %s stranded: %v", name, e.Path, e.Err)
		case errors.Is(e.Err, coord.ErrLost):
			say("# holds lost")
		}
	}
}
