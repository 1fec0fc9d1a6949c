package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// child is a child process as the soak sees it.
type child struct {
	name string
	proc *zktest.ChildProcess
	read chan struct{} // closed when its last line has been read
}

// spawn starts a child; n is different for each.
func (r *run) spawn(n int) *child {
	k := &child{name: fmt.Sprintf("p%d", n), read: make(chan struct{})}
	k.proc = zktest.Child(r.t, childName, k.name, r.ens.ConnectString(), r.w.Path(""),
		r.register.listener.Addr().String(), strconv.FormatUint(r.opts.Seed<<8+uint64(n), 10))
	go r.listen(k)
	return k
}

// listen reads a child's lines.
func (r *run) listen(k *child) {
	defer close(k.read)
	here := monotonic() - time.Since(r.rec.Begin())
	var shift time.Duration
	first := true
	for line := range k.proc.Lines() {
		switch {
		case first:
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				r.tally.problem("%s: %s", k.name, line)
				continue
			}
			shift, first = time.Duration(n)-here, false
		case strings.HasPrefix(line, "! "):
			r.tally.problem("%s", line[2:])
		case strings.HasPrefix(line, "# "):
			r.tally.count(line[2:])
		case strings.HasPrefix(line, "= "):
			var key string
			var w history.Write
			if _, err := fmt.Sscan(line[2:], &key, &w.Zxid, &w.Token, &w.Value); err == nil {
				r.fence.Wrote(key, w)
			}
		default:
			var rec history.Record
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				continue // the last line of a process that was killed
			}
			r.rec.Import(k.name, rec, shift)
		}
	}
}

// tend is the lane of one child's faults. A killed child is replaced.
func (r *run) tend(ctx context.Context, lane int) {
	rng := r.rng(uint64(500 + lane))
	k := r.spawn(int(r.born.Add(1)))
	defer func() { r.children[lane] = k }()
	for pause(ctx, within(rng, T/2, 3*T)) {
		begin := time.Now()
		select {
		case <-k.proc.Exited():
			r.tally.problem("%s ended by itself", k.name)
			return
		default:
		}
		switch n := rng.IntN(100); {
		case n < 55:
			r.freeze(ctx, k, "client pauses beyond T", within(rng, T+2*tick, 2*T+T/2))
		case n < 75:
			r.freeze(ctx, k, "client pauses within T", within(rng, T/10, T/2))
		default:
			r.rec.Note("kill client %s", k.name)
			k.proc.Kill()
			<-k.read
			r.rec.Died(k.name + ".")
			r.tally.fault("clients killed", 1)
			k = r.spawn(int(r.born.Add(1)))
		}
		r.mustProgress(ctx, k.name, begin)
	}
}

func (r *run) freeze(ctx context.Context, k *child, kind string, d time.Duration) {
	r.rec.Note("%s: %s for %v", kind, k.name, d)
	struck := false
	if k.proc.Stop() == nil {
		struck = pause(ctx, d)
		struck = k.proc.Continue() == nil && struck
	}
	r.tally.fault(kind, workload.Times(struck))
}

// rng is a source of random numbers for one lane.
func (r *run) rng(lane uint64) *rand.Rand { return rand.New(rand.NewPCG(r.opts.Seed, lane)) }

// calmly is the line that announces to a child that the faults are over.
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
	v.flush()
}

// lineWriter writes lines to stdout in the background: no worker waits for the
// reader while it holds a lock.
type lineWriter chan line

// line is a text to write, or asks whether all before it are written.
type line struct {
	text    string
	written chan struct{} // nil for a text; closed as the answer
}

func newLineWriter() lineWriter {
	v := make(lineWriter, 4096)
	go v.write(bufio.NewWriter(os.Stdout))
	return v
}

func (v lineWriter) write(w *bufio.Writer) {
	for l := range v {
		if l.written == nil {
			_, _ = w.WriteString(l.text + "\n")
		}
		if l.written != nil || len(v) == 0 {
			_ = w.Flush()
		}
		if l.written != nil {
			close(l.written)
		}
	}
}

func (v lineWriter) say(format string, args ...any) { v <- line{text: fmt.Sprintf(format, args...)} }

// flush returns when all lines so far are written: they survive a kill of the
// process from then on.
func (v lineWriter) flush() {
	written := make(chan struct{})
	v <- line{written: written}
	<-written
}

func childWork(args []string, v lineWriter) error {
	say := v.say
	name, servers, root := args[0], args[1], args[2]
	resource, err := rpc.Dial("tcp", args[3])
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
	rec.Sink(func(r history.Record) { say("%s", r) })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	own := childChecks{v: v, resource: resource}
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(T), coord.WithTick(tick), coord.WithIdentity(name),
		coord.WithObserver(observer(name, own)))
	if err != nil {
		return err
	}
	calm := make(chan struct{})
	s := &site{root: root, seed: seed, Site: workload.Site{
		Name: name, Rec: rec, Client: func(context.Context) *coord.Client { return c }, Pace: pace, Calm: calm,
		Checks: own,
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
	v        lineWriter
	resource *rpc.Client
}

func (c childChecks) Accept(key string, token int64) bool { return remoteUse(c.resource, key, token) }
func (c childChecks) Flush()                              { c.v.flush() }
func (c childChecks) Count(what string)                   { c.v.say("# %s", what) }
func (c childChecks) Violated(format string, args ...any) { c.v.say("! "+format, args...) }

func (c childChecks) Wrote(key string, w history.Write) {
	c.v.say("= %s %d %d %d", key, w.Zxid, w.Token, w.Value)
}
