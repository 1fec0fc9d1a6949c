package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Site is a client and the test around it.
type Site struct {
	Name   string
	Rec    *history.Recorder
	Client func(ctx context.Context) *coord.Client // waits for it; nil when ctx ends first
	Pace   Pace
	Calm   <-chan struct{} // closed when the last fault is over: from then on no call is given up, and holds are short
	Checks

	uncertain sync.Map // nodes of holds by which an increment may be carried out yet
}

// Pace says how long things last.
type Pace struct {
	Timeout   time.Duration // T, the session timeout
	Deadlines float64       // share of the calls that have a deadline within Early
	Cancels   float64       // share of the calls that are cancelled within Early
	Early     time.Duration
	Rushed    float64       // share of the releases whose context has ended, and share of those whose context is about to
	Patience  time.Duration // of other calls; zero is for ever
	Certain   time.Duration // patience of calls that are not given up half-way
	Hold      func(*rand.Rand) time.Duration
	Step      time.Duration // how often, at least, a holder looks at its hold
	Writes    float64       // share of the steps with a transaction
	Pause     time.Duration // between two uses, at most
}

// Checks are a test's own, in addition to what workers judge themselves.
type Checks interface {
	Granted(w *Worker, what history.Holder)                   // nil for a turn without a hold
	Look(w *Worker, h coord.Held)                             // now and then while h is held
	Late(w *Worker, what string, by time.Duration, err error) // a call returned so long after its context's end
	Expected(w *Worker, err error) bool                       // reports whether the test itself caused err
	Accept(key string, token int64) bool                      // the fenced resource
	Wrote(key string, written history.Write)                  // by a transaction of a holder
	Flush()                                                   // returns when all records are safe
	Count(what string)
	Violated(format string, args ...any)
}

// Unchecked checks nothing.
type Unchecked struct{}

func (Unchecked) Granted(*Worker, history.Holder)            {}
func (Unchecked) Look(*Worker, coord.Held)                   {}
func (Unchecked) Late(*Worker, string, time.Duration, error) {}
func (Unchecked) Expected(*Worker, error) bool               { return false }
func (Unchecked) Accept(string, int64) bool                  { return true }
func (Unchecked) Wrote(string, history.Write)                {}
func (Unchecked) Flush()                                     {}
func (Unchecked) Count(string)                               {}

// Use is one use of a recipe by a client. It reports whether the worker got its
// turn.
type Use func(w *Worker, c *coord.Client) bool

// Worker uses one recipe again and again.
type Worker struct {
	*Site
	Name   string // begins with the site's and a dot
	Recipe string
	Key    string
	Rand   *rand.Rand

	hold  func(*rand.Rand) time.Duration
	ctx   context.Context // of Work
	heeds bool            // releases its hold when it is revoked
	items int             // put so far
	turn  chan struct{}   // closed by Work
}

// NewWorker makes a worker. hold draws how long it holds; nil stands for the
// site's pace.
func NewWorker(s *Site, name, recipe, key string, r *rand.Rand, hold func(*rand.Rand) time.Duration) *Worker {
	if hold == nil {
		hold = s.Pace.Hold
	}
	return &Worker{
		Site: s, Name: s.Name + "." + name, Recipe: recipe, Key: key, Rand: r,
		hold: hold, heeds: Chance(r, 0.5), turn: make(chan struct{}),
	}
}

// Between draws a hold of at least least and less than most.
func Between(least, most time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return least + upTo(r, most-least) }
}

// calmly is how long, at most, a worker rests before its turn when the faults
// are over.
const calmly = 20 * time.Millisecond

// Work goes on until ctx ends.
func (w *Worker) Work(ctx context.Context, use Use) {
	w.ctx = ctx
	for ctx.Err() == nil {
		calm := w.isCalm()
		c := w.Client(ctx)
		if c == nil {
			return
		}
		if use(w, c) && calm && !w.served() {
			close(w.turn)
		}
		rest := upTo(w.Rand, w.Pace.Pause)
		switch {
		case !w.isCalm():
			Pause(ctx, rest, w.Calm)
		case w.served():
			Pause(ctx, rest/5, nil)
		default:
			Pause(ctx, min(rest, calmly), nil)
		}
	}
}

// Served is closed when the worker has had a turn after the last fault.
func (w *Worker) Served() <-chan struct{} { return w.turn }

func (w *Worker) served() bool { return isClosed(w.turn) }

func (w *Worker) isCalm() bool { return isClosed(w.Calm) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// share draws a share of the session timeout, between lo and hi of it.
func (w *Worker) share(lo, hi float64) time.Duration {
	return time.Duration((lo + (hi-lo)*w.Rand.Float64()) * float64(w.Pace.Timeout))
}

// Chance returns true with probability p.
func Chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Float64() * float64(most))
}

// Times counts a fault that happened, or did not.
func Times(happened bool) int {
	if happened {
		return 1
	}
	return 0
}

// Pick chooses by weight.
func Pick[F any](r *rand.Rand, all []F, weight func(F) int) F {
	sum := 0
	for _, f := range all {
		sum += weight(f)
	}
	n := r.IntN(sum)
	for _, f := range all {
		n -= weight(f)
		if n < 0 {
			return f
		}
	}
	return all[0]
}

// Pause waits, and reports whether it was not ended early.
func Pause(ctx context.Context, d time.Duration, end <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
	case <-ctx.Done():
	}
	return false
}

// perClient has an object of a recipe for each client, which all its workers
// share.
type perClient[T any] struct {
	mu  sync.Mutex
	all map[*coord.Client]T
}

// of returns the client's object, which open makes for the first that asks.
func (p *perClient[T]) of(c *coord.Client, open func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.all[c]
	if !ok {
		if p.all == nil {
			p.all = map[*coord.Client]T{}
		}
		one = open()
		p.all[c] = one
	}
	return one
}

// must is for constructors that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// call is a call of a recipe.
type call struct {
	w    *Worker
	ctx  context.Context
	stop context.CancelFunc
	ends time.Time // ctx's deadline; zero if it has none
	must bool      // ctx ends only if the call is stuck
}

// call begins a call. As long as there are faults, it often has a deadline or
// is cancelled.
func (w *Worker) call() *call {
	c, now := &call{w: w}, time.Now()
	early := upTo(w.Rand, w.Pace.Early)
	switch how := w.Rand.Float64(); {
	case !w.isCalm() && how < w.Pace.Deadlines:
		w.Count("deadline")
		if Chance(w.Rand, 0.1) {
			early = 0
		}
		c.ends = now.Add(early)
	case !w.isCalm() && how < w.Pace.Deadlines+w.Pace.Cancels:
		early /= 2
		if Chance(w.Rand, 0.3) {
			early = time.Duration(w.Rand.IntN(5)) * time.Millisecond
		}
		return c.cancelled(early)
	case w.Pace.Patience > 0:
		c.ends = now.Add(w.Pace.Patience)
	default:
		c.ctx, c.stop = context.WithCancel(w.ctx)
		return c
	}
	c.ctx, c.stop = context.WithDeadline(w.ctx, c.ends)
	return c
}

func (c *call) cancelled(after time.Duration) *call {
	ctx, cancel := context.WithCancel(c.w.ctx)
	c.ends = time.Now().Add(after)
	timer := time.AfterFunc(after, func() {
		c.w.Count("cancellation")
		cancel()
	})
	c.ctx, c.stop = ctx, func() {
		timer.Stop()
		cancel()
	}
	return c
}

// certain begins a call that is not given up half-way.
func (w *Worker) certain() *call {
	c := w.within(context.WithoutCancel(w.ctx), w.Pace.Certain)
	c.must = true
	return c
}

// mostlyCertain begins a call whose outcome is to be known in most cases.
func (w *Worker) mostlyCertain() *call {
	if Chance(w.Rand, 0.3) {
		return w.call()
	}
	return w.certain()
}

// untilCalm has the call end with the last fault, too.
func (c *call) untilCalm() *call {
	ctx, cancel := context.WithCancel(c.ctx)
	stop := c.stop
	c.ctx, c.stop = ctx, func() {
		cancel()
		stop()
	}
	if !c.w.isCalm() {
		go func() {
			select {
			case <-c.w.Calm:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return c
}

// within begins a call that is given up after d, or with ctx.
func (w *Worker) within(ctx context.Context, d time.Duration) *call {
	c := &call{w: w}
	c.ctx, c.stop = context.WithTimeout(ctx, d)
	return c
}

// held notes that the call has acquired, and has no deadline from then on.
func (c *call) held() { c.ends = time.Time{} }

// end judges a call that has just returned, with an error or without.
func (c *call) end(what string, err error, allowed ...error) {
	defer c.stop()
	w := c.w
	if late := time.Since(c.ends); !c.ends.IsZero() && late > 0 {
		w.Late(w, what, late, err)
	}
	switch {
	case err == nil, slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(err, e) }), w.Expected(w, err):
	case c.must && c.ctx.Err() != nil:
		w.Violated("%s: %s has not ended for %v: %v", w.Name, what, w.Pace.Certain, err)
	case c.ctx.Err() == nil || !errors.Is(err, c.ctx.Err()):
		w.Violated("%s: %s failed: %v", w.Name, what, err)
	}
	if err != nil && c.ctx.Err() != nil {
		w.Count("calls ended by their context")
	}
}

// release releases, sometimes with a context that has ended or soon does, and
// judges the call.
func (w *Worker) release(what string, release func(context.Context) error) {
	limit := time.Hour
	switch how := w.Rand.Float64(); {
	case how < w.Pace.Rushed:
		limit = 0
	case how < 2*w.Pace.Rushed:
		limit = w.share(0, 0.2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	err := release(ctx)
	if over := time.Since(begun) - w.Pace.Timeout; over > 0 {
		w.Late(w, "release of "+what, over, err)
	}
	if err != nil && !errors.Is(err, coord.ErrUnconfirmed) {
		w.Violated("%s: release of %s: %v", w.Name, what, err)
	}
	w.Count("releases")
	if err != nil {
		w.Count("releases not confirmed")
	}
}
