package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/history"
)

// worker uses one recipe again and again.
type worker struct {
	*world
	st        *station
	name      string
	recipe    string
	key       string
	r         *rand.Rand
	heeds     bool      // stops when somebody asks for its hold
	unsettled string    // node of a hold by which an increment may be carried out yet
	ends      time.Time // when the present call's context ends by itself; zero if it does not
	called    time.Time // when the present call of the recipe began
}

// hire adds a worker to a station. Each call of once is one use of the recipe,
// with a context that may end early; it tells whether it got its turn. After
// the last fault the worker goes on until it has.
func (w *world) hire(st *station, recipe, key string, once func(k *worker, ctx context.Context, c *coord.Client) bool) {
	n := 0
	for _, s := range w.stations {
		n += len(s.workers)
	}
	k := &worker{world: w, st: st, recipe: recipe, key: key, r: w.stream(100 + n)}
	k.heeds = chance(k.r, 0.5)
	k.name = fmt.Sprintf("%s/%d %s", st.name, n, recipe)
	st.workers = append(st.workers, k.name)
	w.working.Go(func() { k.loop(once) })
}

func (k *worker) loop(once func(k *worker, ctx context.Context, c *coord.Client) bool) {
	for {
		last := k.isCalm()
		c := k.st.get(k.base)
		if c == nil {
			k.violated("%s: no client within the limit after the last fault", k.name)
			return
		}
		ctx, cancel := k.context(last)
		done := once(k, ctx, c)
		cancel()
		if k.base.Err() != nil && !done {
			k.violated("%s: no turn within the limit after the last fault", k.name)
			return
		}
		if last && done {
			return
		}
		pause(time.Duration(float64(k.part(k.r, 0, 0.9))/k.haste), k.calm)
	}
}

// context is what a call gets: often a deadline or a cancellation, and after
// the last fault neither.
func (k *worker) context(last bool) (context.Context, context.CancelFunc) {
	how := k.r.Float64()
	k.ends, k.called = time.Time{}, time.Now()
	switch {
	case last || how < 0.5:
		return context.WithCancel(k.base)
	case how < 0.8:
		k.count(k.faults, "deadline", 1)
		k.ends = time.Now().Add(k.part(k.r, 0, 2))
		return context.WithDeadline(k.base, k.ends)
	}
	ctx, cancel := context.WithCancel(k.base)
	after := k.part(k.r, 0, 1)
	if chance(k.r, 0.3) {
		after = time.Duration(k.r.IntN(5)) * time.Millisecond
	}
	k.ends = time.Now().Add(after)
	timer := time.AfterFunc(after, func() {
		k.count(k.faults, "cancellation", 1)
		cancel()
	})
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// untilCalm is a context that ends with the last fault, too.
func (k *worker) untilCalm(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	k.working.Go(func() {
		select {
		case <-k.calm:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// late is how long after its context's end a call may return.
const late = 50 * time.Millisecond

// waited checks a call that has just returned, with an error or without.
func (k *worker) waited(ctx context.Context, what string, err error, allowed ...error) {
	defer func() { k.called = time.Now() }()
	if !k.ends.IsZero() {
		begun := k.ends
		if k.called.After(begun) {
			begun = k.called
		}
		if took := time.Since(begun); took > late {
			k.violated("%s: %s returned %v after its context had ended: %v", k.name, what, took, err)
		}
	}
	if err == nil {
		return
	}
	for _, e := range allowed {
		if errors.Is(err, e) {
			return
		}
	}
	if errors.Is(err, coord.ErrForeign) && k.hadForeigners(err) {
		return
	}
	if ctx.Err() != nil && errors.Is(err, coord.ErrSessionExpired) {
		return // came at the same time, and a repetition was not worth while
	}
	if errors.Is(err, coord.ErrClosed) && !k.st.steady {
		return
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		k.violated("%s: %s failed: %v", k.name, what, err)
	}
}

// untimed is for calls that end by another context than the one given.
func (k *worker) untimed() { k.ends = time.Time{} }

// duration is how long to use a hold: mostly short, sometimes longer than the
// session time-out, rarely longer than a holder may take to learn of its loss
// (see excused).
func (k *worker) duration() time.Duration {
	switch how := k.r.Float64(); {
	case how < 0.15:
		return 0
	case how < 0.85:
		return k.part(k.r, 0, 0.15)
	case how < 0.92:
		return k.part(k.r, 0.1, 0.6)
	}
	k.count(k.faults, "long hold", 1)
	if chance(k.r, 0.2) {
		return k.part(k.r, 5, 7)
	}
	return k.part(k.r, 1, 3)
}

// use uses a hold for some time, as carefully as its holder should, and looks
// now and then whether the server agrees that it holds.
func (k *worker) use(c *coord.Client, h *coord.Hold, res *resource) {
	defer func() { k.called = time.Now() }()
	end := time.Now().Add(k.duration())
	if chance(k.r, 0.2) { // a holder that writes nothing learns of a loss by its watch only
		res = nil
	}
	if chance(k.r, 0.3) {
		defer k.readAllTheTime(c, h)()
	}
	for {
		k.inspect(h)
		if res != nil && h.Token() != 0 {
			if k.unsettled != h.Node() && chance(k.r, 0.5) {
				settled := res.increment(c, h, k.name, func() {
					if chance(k.r, 0.4) {
						k.rest(k.part(k.r, 0, 0.5), h)
					}
				})
				if !settled {
					k.unsettled = h.Node()
				}
			}
			res.use(h, k.name)
		}
		left := time.Until(end)
		if left <= 0 || k.isCalm() || !k.rest(min(left, k.part(k.r, 0, 0.3)), h) {
			break
		}
	}
	k.inspect(h)
	if res != nil && h.Err() != nil && chance(k.r, 0.3) {
		// One that does not care: only the token protects the resource.
		k.count(k.faults, "use after the loss", 1)
		pause(k.part(k.r, 0, 1), k.calm)
		res.use(h, k.name)
	}
}

// readAllTheTime has a holder's client hear from its server as often as can be,
// and looks at the hold after each answer, and without one, until stop.
func (k *worker) readAllTheTime(c *coord.Client, h *coord.Hold) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ; ctx.Err() == nil; k.inspect(h) {
			one, end := context.WithTimeout(ctx, k.timeout/50)
			_, _, _ = c.Get(one, h.Node())
			pause(k.timeout/100, ctx.Done())
			end()
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}

// rest waits; it returns false when the holder is to stop.
func (k *worker) rest(d time.Duration, h *coord.Hold) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var revoked <-chan struct{}
	if k.heeds {
		revoked = h.Revoked()
	}
	select {
	case <-timer.C:
		return true
	case <-h.Done():
		if !errors.Is(h.Err(), coord.ErrLost) && !errors.Is(h.Err(), coord.ErrReleased) {
			k.violated("%s: %s ended with %v", k.name, h.Node(), h.Err())
		}
		k.count(k.counts, "lost holds", 1)
		return false
	case <-revoked:
		k.count(k.counts, "revocations obeyed", 1)
		return false
	case <-k.calm:
		return false
	}
}

// inspect compares what a hold says with its own window, and with the server's
// tree: a hold that is trusted now had its node a moment ago.
func (k *worker) inspect(h *coord.Hold) {
	if now := time.Now(); h.Err() == nil && !now.Before(h.Deadline()) {
		k.violated("%s: trusts %s after the end of its window", k.name, h.Node())
	}
	there := false
	for _, n := range k.srv.Nodes() {
		there = there || n.Path == h.Node() && n.Stat.EphemeralOwner == h.Session()
	}
	if !there && h.Err() == nil && !k.excused(h.Node(), h.Session()) {
		k.violated("%s: trusts %s, but the server has given it up", k.name, h.Node())
	}
	k.count(k.counts, "holds compared with the server", 1)
}

// ending is the context for a release: usually plain, sometimes dead or short.
func (k *worker) ending() (context.Context, context.CancelFunc) {
	limit := time.Hour
	switch how := k.r.Float64(); {
	case how < 0.1:
		limit = 0
	case how < 0.2:
		limit = k.part(k.r, 0, 0.2)
	}
	return context.WithTimeout(context.Background(), limit)
}

// release gives a grant up.
func (k *worker) release(g *history.Grant[*coord.Hold]) {
	ctx, cancel := k.ending()
	defer cancel()
	k.released(g.Hold.Node(), func() error { return g.Release(ctx) })
}

// released checks a release.
func (k *worker) released(node string, release func() error) {
	begun := time.Now()
	err := release()
	if took := time.Since(begun); took > k.timeout+late {
		k.violated("%s: release of %s took %v", k.name, node, took)
	}
	if err != nil && !errors.Is(err, coord.ErrUnconfirmed) {
		k.violated("%s: release of %s: %v", k.name, node, err)
	}
	k.count(k.counts, "releases", 1)
	k.called = time.Now()
}
