package workload

import (
	"context"
	"errors"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Counter is the path of the node that exclusive holders at a key write to by
// transactions. The test makes it.
func Counter(key string) string { return path.Join(path.Dir(key), "counter-"+path.Base(key)) }

// acquire records an acquisition.
func acquire[H history.Holder](
	w *Worker, kind history.Kind, what string, f func(context.Context) (H, error), details ...history.Detail,
) (*history.Grant[H], bool) {
	c := w.call()
	g, err := history.Acquire(w.Rec, w.Name, w.Key, kind, func() (H, error) { return f(c.ctx) }, details...)
	c.end(what, err, coord.ErrBusy)
	if err != nil {
		return nil, false
	}
	w.Granted(w, g.Hold)
	return g, true
}

// occupy acquires, uses the hold for a while, and releases it.
func occupy[H history.Holder](
	w *Worker, c *coord.Client, kind history.Kind, what string, f func(context.Context) (H, error),
	details ...history.Detail,
) bool {
	g, ok := acquire(w, kind, what, f, details...)
	if ok {
		stay(w, c, g)
		w.release(what, g.Release)
	}
	return ok
}

// given records the end of a grant that is given up by another call.
func given[H history.Holder](g *history.Grant[H]) {
	_ = g.End(history.Release, nil, func() error { return nil })
}

// stay uses a hold for a while. Each step uses the fenced resource before it
// looks at the hold, as a careless program would: after a pause in between, the
// resource must refuse.
func stay[H history.Holder](w *Worker, c *coord.Client, g *history.Grant[H]) {
	end := time.Now().Add(w.hold(w.Rand))
	h, one := any(g.Hold).(coord.Held)
	writes := one && g.Of.Kind == history.Exclusive && h.Token() != 0 &&
		Chance(w.Rand, 0.8) // a holder that does not write learns of a loss only by its watch
	if one && Chance(w.Rand, 0.3) {
		defer w.readAllTheTime(c, h)()
	}
	for {
		if writes {
			if _, uncertain := w.uncertain.Load(h.Node()); !uncertain && Chance(w.Rand, w.Pace.Writes) {
				w.increment(c, g.Of.Key, h)
			}
			w.touch(g.Of.Key, h)
		}
		w.look(g.Hold)
		left := time.Until(end)
		if !g.Trusted() || left <= 0 || w.isCalm() || !w.rest(min(left, upTo(w.Rand, w.Pace.Step)+time.Millisecond), g.Hold) {
			break
		}
	}
	w.look(g.Hold)
	if writes && h.Err() != nil && Chance(w.Rand, 0.3) {
		// A careless holder: only the token protects the resource.
		w.Count("use after the loss")
		Pause(w.ctx, w.share(0, 1), w.Calm)
		w.touch(g.Of.Key, h)
	}
}

// linger keeps an item or a place in a round for a while, and looks at it now
// and then.
func linger[H history.Holder](w *Worker, g *history.Grant[H]) {
	for end := time.Now().Add(w.hold(w.Rand)); g.Trusted() && !w.isCalm(); {
		if left := time.Until(end); left <= 0 || !w.rest(min(left, w.Pace.Step), g.Hold) {
			break
		}
	}
}

// look compares what holds say with their window, and has the test check them.
func (w *Worker) look(held any) {
	var holds []coord.Held
	switch held := held.(type) {
	case coord.Held:
		holds = []coord.Held{held}
	case *hold.Set:
		for _, h := range held.Holds() {
			holds = append(holds, h)
		}
	}
	for _, h := range holds {
		if now := time.Now(); h.Err() == nil && !now.Before(h.Deadline()) {
			w.Violated("%s: trusts %s after the end of its window", w.Name, h.Node())
		}
		w.Look(w, h)
	}
}

// rest waits; it returns false when the holder is to stop.
func (w *Worker) rest(d time.Duration, h history.Holder) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var revoked <-chan struct{}
	if r, ok := h.(interface{ Revoked() <-chan struct{} }); ok && w.heeds {
		revoked = r.Revoked()
	}
	select {
	case <-timer.C:
		return true
	case <-h.Done():
		if err := h.Err(); !errors.Is(err, coord.ErrLost) && !errors.Is(err, coord.ErrReleased) {
			w.Violated("%s: a hold ended with %v", w.Name, err)
		}
		w.Count("lost holds")
	case <-revoked:
		w.Count("revocations obeyed")
	case <-w.Calm:
	}
	return false
}

// readAllTheTime has a holder's client read without a pause until stop, and
// looks at the hold after each reply, and when none comes.
func (w *Worker) readAllTheTime(c *coord.Client, h coord.Held) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ; ctx.Err() == nil; w.look(h) {
			one, end := context.WithTimeout(ctx, w.Pace.Timeout/50)
			_, _, _ = c.Get(one, h.Node())
			Pause(ctx, w.Pace.Timeout/100, nil)
			end()
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}

// touch uses the fenced resource.
func (w *Worker) touch(key string, h coord.Held) {
	before := time.Now()
	if w.Accept(key, h.Token()) {
		w.Count("fenced writes")
		return
	}
	w.Rec.Refused(w.Name, key, h.Token(), before)
	w.Count("uses refused by the resource")
}

// increment adds one to the counter by a transaction of the hold. It reads the
// value and waits for a moment before it writes, without naming a version. That
// is safe only while the hold excludes others, which the check in the
// transaction ensures, and if the value is not older than the grant, which a
// lagging server's can be after a reconnect. The context is not the hold's: the
// outcome is learnt even if the hold is lost meanwhile. After a transaction
// that may be carried out late, nothing else may be written under the same
// node: the late transaction would undo it.
func (w *Worker) increment(c *coord.Client, key string, h coord.Held) {
	ctx, cancel := context.WithTimeout(context.Background(), w.Pace.Timeout)
	defer cancel()
	data, _, err := c.Synced().Get(ctx, Counter(key))
	if err != nil {
		return
	}
	value, _ := strconv.ParseInt(string(data), 10, 64)
	value++
	if Chance(w.Rand, 0.4) {
		w.rest(upTo(w.Rand, w.Pace.Step*3/2), h)
	}
	w.Flush()
	results, err := h.Txn(ctx, coord.SetOp(Counter(key), []byte(strconv.FormatInt(value, 10)), -1))
	switch {
	case err == nil:
		w.Count("transactions")
		w.Wrote(key, history.Write{Zxid: results[0].Stat.Mzxid, Token: h.Token(), Value: value})
	case errors.Is(err, coord.ErrUnconfirmed):
		w.uncertain.Store(h.Node(), nil)
	case !errors.Is(err, coord.ErrLost) && !errors.Is(err, coord.ErrReleased) && !errors.Is(err, coord.ErrThrottled) &&
		ctx.Err() == nil:
		w.Violated("%s: a transaction failed: %v", w.Name, err)
	}
}
