package simulate

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// clocks are a seed's schedule, and whose clocks are wrong: those of the
// servers for ever, by so much, and one client's now and then.
type clocks struct {
	table   *workload.Crontab // nil in seeds without a schedule
	servers time.Duration
	wrong   *station
	stays   bool // wrong after the last fault, too
}

// wallClock is the clock of a host, which may be set.
type wallClock struct {
	ahead, looks atomic.Int64
}

func (k *wallClock) now() time.Time {
	k.looks.Add(1)
	return time.Now().Add(time.Duration(k.ahead.Load()))
}

const year = 365 * 24 * time.Hour

// wrongBy draws by how much a clock is wrong.
func wrongBy(r *rand.Rand) time.Duration {
	spans := []time.Duration{time.Minute, time.Hour, 24 * time.Hour, year, 10 * year}
	by := time.Duration((0.1 + r.Float64()) * float64(spans[r.IntN(len(spans))]))
	if workload.Chance(r, 0.5) {
		return -by
	}
	return by
}

// setServers puts the servers' clock wrong in some seeds, but for small
// differences back: a schedule begins by that clock.
func (w *world) setServers(r *rand.Rand) {
	if workload.Chance(r, 0.3) {
		w.clocks.servers = -wrongBy(r).Abs()
		w.srv.ShiftClock(w.clocks.servers)
	}
}

// populateCron has hosts run a schedule: the one whose clock is set, and the
// others.
func (w *world) populateCron(r *rand.Rand) history.Rule {
	every := w.part(r, 0.3, 2).Truncate(100 * time.Millisecond)
	t := &workload.Crontab{Every: every, Ensemble: func() time.Time { return time.Now().Add(w.clocks.servers) }}
	w.clocks.table = t
	w.clocks.wrong, w.clocks.stays = w.stations[r.IntN(len(w.stations))], workload.Chance(r, 0.5)
	judged := time.Duration(0)
	switch r.IntN(4) {
	case 0:
		t.Opts = append(t.Opts, cron.Skip())
	case 1:
		t.Opts = append(t.Opts, cron.Attempts(1, 0))
	case 2:
		t.Opts = append(t.Opts, cron.MaxConcurrent(1+r.IntN(3)), cron.Jitter(every/2))
	case 3:
		t.Opts, judged = append(t.Opts, cron.CatchUp(1000, 0)), every
	}
	if workload.Chance(r, 0.3) {
		t.Opts = append(t.Opts, cron.KeepLast(1+r.IntN(5)))
	}
	for _, s := range w.stations {
		for range 1 + r.IntN(2) {
			w.addWorker(s, "cron", "/cron", w.hold, t.Run(s.wall.now))
		}
	}
	return history.Schedule("/cron", judged)
}

var clockTroubles = []trouble{{"wall clock set", 6, setClock}}

// setClock sets the wall clock of one host.
func setClock(d *driver) (time.Duration, func() int) {
	if d.clocks.table == nil {
		return nothing()
	}
	k, by := &d.clocks.wrong.wall, wrongBy(d.r)
	k.ahead.Store(int64(by))
	looks := k.looks.Load()
	d.note("the clock of %s is %v ahead", d.clocks.wrong.name, by)
	return d.part(d.r, 0.1, 4), func() int {
		if !d.clocks.stays {
			k.ahead.Store(0)
		}
		return workload.Times(k.looks.Load() > looks)
	}
}
