package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/history"
)

// site is one client with its workers, in this process or in a child.
type site struct {
	name    string // "c3", "p7"
	client  *coord.Client
	rec     *history.Recorder
	root    string
	seed    uint64
	use     func(place string, token int64) bool
	problem func(format string, args ...any)
	count   func(what string)
	late    func(worker string, d time.Duration)
	heed    func(worker string, h history.Holder)
	wrote   func(place string, mzxid, token int64)           // by a transaction
	passed  func(worker, key string, from, to time.Duration) // the barrier, since the history's beginning
	told    func()                                           // waits until what was recorded cannot be lost
	gate    *gate                                            // in the soak's own process only
	quiet   *atomic.Bool                                     // faults are over: hold shortly
}

// worker does one recipe's work at one place, again and again.
type worker struct {
	*site
	name  string // "c3.lock"
	place place
	key   string
	rng   *rand.Rand
	items int // put so far

	finish func(context.Context) error // gives back what the recipe's object holds; nil for nothing
}

// work runs all workers of the site until ctx ends.
func (s *site) work(ctx context.Context) {
	var all sync.WaitGroup
	for i, p := range places {
		for _, role := range p.roles {
			if role.only != nil && !role.only(s.name) {
				continue
			}
			w := s.worker(i, p, role.suffix)
			cycle, err := role.start(w)
			if err != nil {
				s.problem("%s: %v", w.name, err)
				continue
			}
			all.Go(func() { w.loop(ctx, cycle) })
		}
	}
	all.Wait()
}

func (s *site) worker(i int, p place, suffix string) *worker {
	return &worker{
		site: s, place: p, key: s.root + "/" + p.name, name: s.name + "." + p.name + suffix,
		rng: rand.New(rand.NewPCG(s.seed, uint64(i))),
	}
}

func (w *worker) loop(ctx context.Context, cycle func(context.Context) error) {
	for ctx.Err() == nil {
		err := cycle(ctx)
		if err != nil && !expected(err) {
			w.problem("%s: unexpected error: %v", w.name, err)
			w.rest(ctx, time.Second)
		}
		w.rest(ctx, time.Duration(w.rng.Int64N(int64(20*time.Millisecond))))
	}
	if w.finish == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stuckAfter)
	defer cancel()
	if err := w.finish(limited); err != nil {
		w.problem("%s: finishing: %v", w.name, err)
	}
}

// expected tells errors that the faults bring about.
func expected(err error) bool {
	for _, known := range []error{
		context.Canceled, context.DeadlineExceeded, coord.ErrBusy, coord.ErrLost, coord.ErrUnconfirmed,
		coord.ErrDisconnected, coord.ErrSessionExpired,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (w *worker) rest(ctx context.Context, d time.Duration) bool { return pause(ctx, d) }

// pause waits, and tells whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// patience is a context for one acquisition: usually long, sometimes too short,
// sometimes cancelled at a random moment.
func (w *worker) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	switch n := w.rng.IntN(20); {
	case n == 0 && !w.quiet.Load():
		return context.WithTimeout(ctx, time.Duration(w.rng.Int64N(int64(300*time.Millisecond))))
	case n == 1 && !w.quiet.Load():
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(time.Duration(w.rng.Int64N(int64(300*time.Millisecond))), cancel)
		return ctx, func() { timer.Stop(); cancel() }
	}
	return context.WithTimeout(ctx, 30*time.Second)
}

// trusted is something that others count on for a while.
type trusted interface{ Err() error }

// trust keeps it until end, or until ctx or the trust in it ends. It returns a
// moment, the latest that is known, at which the trust lasted.
func (w *worker) trust(ctx context.Context, what trusted, end time.Time) (sure time.Time) {
	sure = w.rec.Begin()
	for {
		now := time.Now()
		if what.Err() != nil {
			return sure
		}
		if sure = now; now.After(end) || !pause(ctx, 10*time.Millisecond) {
			return sure
		}
	}
}

// ended looks at what a call that began then made of its context.
func (w *worker) ended(ctx context.Context, begin time.Time, err error) {
	if ctx.Err() == nil {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.late(w.name, min(time.Since(deadline), time.Since(begin)))
	}
	if err != nil {
		w.count("acquisitions ended by their context")
	}
}
