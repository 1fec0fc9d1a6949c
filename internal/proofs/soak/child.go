package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
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
	name := fmt.Sprintf("p%d", n)
	k := &child{name: name, read: make(chan struct{})}
	args := childArgs(name, r.ens.ConnectString(), r.w.Path(""), r.register.listener.Addr().String(), r.opts.Seed<<8+uint64(n))
	k.proc = zktest.Child(r.t, childName, args...)
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
	defer func() { r.keep(k) }()
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
	if err := k.proc.Stop(); err != nil {
		r.tally.fault(kind, 0)
		return
	}
	stopped := time.Now()
	pause(ctx, d)
	whole := time.Since(stopped) >= d
	if err := k.proc.Continue(); err != nil || !whole {
		r.tally.fault(kind, 0)
		return
	}
	r.tally.fault(kind, 1)
}

// rng is a source of random numbers for one lane.
func (r *run) rng(lane uint64) *rand.Rand { return rand.New(rand.NewPCG(r.opts.Seed, lane)) }
