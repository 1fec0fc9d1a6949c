package simulate

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
)

// resource is what an exclusive recipe protects: a store that checks fencing
// tokens, and a counter in ZooKeeper that is written by transactions of the
// hold.
type resource struct {
	w       *world
	key     string
	counter string // path

	mu      sync.Mutex
	highest int64            // token
	written map[int64]string // confirmed values of the counter
}

func (w *world) newResource(key string) *resource {
	res := &resource{w: w, key: key, counter: "/counter-" + key[1:], written: map[int64]string{}}
	w.resources[key] = res
	return res
}

// accept takes a write with a token, unless a newer one was seen.
func (res *resource) accept(token int64) bool {
	res.mu.Lock()
	defer res.mu.Unlock()
	if token < res.highest {
		return false
	}
	res.highest = token
	return true
}

// use writes with the hold's token. A hold that is trusted is never refused.
func (res *resource) use(h *coord.Hold, worker string) {
	if res.accept(h.Token()) {
		res.w.count(res.w.counts, "fenced writes", 1)
		return
	}
	res.w.count(res.w.counts, "stale tokens refused", 1)
	if h.Err() == nil && !res.w.excused(h.Node(), h.Session()) {
		res.w.violated("%s: %s holds %s with token %d, but the resource has seen a newer one", res.key, worker, h.Node(), h.Token())
	}
}

// increment adds one to the counter by a transaction of the hold, after some
// thinking. That the value is read first and written blindly is safe only while
// the hold excludes others, which the check in the transaction must see to, and
// if the value is not older than the grant, which a lagging server's can be after
// a reconnect.
// The context is not the hold's, so that the outcome is learnt even when the
// hold is lost meanwhile. It returns false when a transaction may yet be carried
// out: another before it would be undone.
func (res *resource) increment(c *coord.Client, h *coord.Hold, worker string, think func()) (settled bool) {
	ctx, cancel := context.WithTimeout(context.Background(), res.w.timeout)
	defer cancel()
	var data []byte
	err := c.Fresh().Read(ctx, func(ctx context.Context) (err error) {
		data, _, err = c.Get(ctx, res.counter)
		return err
	})
	if err != nil {
		return true
	}
	value, _ := strconv.ParseInt(string(data), 10, 64)
	value++
	think()
	results, err := h.Txn(ctx, coord.SetOp(res.counter, []byte(strconv.FormatInt(value, 10)), -1))
	if err != nil {
		if !errors.Is(err, coord.ErrLost) && !errors.Is(err, coord.ErrUnconfirmed) && !errors.Is(err, coord.ErrReleased) && !errors.Is(err, coord.ErrThrottled) && ctx.Err() == nil {
			res.w.violated("%s: %s: a transaction failed: %v", res.key, worker, err)
		}
		return !errors.Is(err, coord.ErrUnconfirmed)
	}
	res.w.count(res.w.counts, "transactions", 1)
	res.w.fence.Wrote(res.key, results[0].Stat.Mzxid, h.Token())
	res.mu.Lock()
	other, twice := res.written[value]
	res.written[value] = worker
	res.mu.Unlock()
	if twice {
		res.w.violated("%s: %s and %s both wrote %d into the counter", res.key, other, worker, value)
	}
	return true
}
