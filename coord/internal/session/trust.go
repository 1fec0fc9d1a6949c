package session

import (
	"sync"
	"time"
)

// trust computes until when no server can have given the session up.
//
// Two facts make it subtle (both measured, see docs/design.md). An answer
// proves too little: a follower cut off from its leader goes on answering
// pings and reads, and a superseded leader even acknowledges a sync; only a
// write is acknowledged by a quorum. And a request does not touch the session
// at the leader when it arrives: a follower reports touches with its answer to
// the leader's next ping, every half tick. So what counts is the send time of
// the newest request that was answered at least half a tick before an
// acknowledged write was sent. (That it was sent so long before would not do:
// when the connection stalls, both reach the follower at the same moment, the
// end of the stall.) Two kinds of request touch the session at the leader
// directly and need no half tick: the handshake that created the session
// (itself a write), and the handshake of a reconnect, once a write was
// acknowledged on the same connection.
type trust struct {
	mu       sync.Mutex
	timeout  time.Duration // negotiated
	lag      time.Duration // half a tick
	acked    []answer      // ascending, thinned out
	attached time.Time     // send time of the current connection's handshake
	base     time.Time     // the session was alive at the leader at or after this
	wrote    time.Time     // send time of the newest acknowledged write
	seen     time.Time     // when the clocks were last compared
	wall     time.Time     // what the wall clock showed then
}

// answer is when a request was sent, and when its answer came: the follower
// heard of the session in between.
type answer struct{ sent, came time.Time }

// margin is taken off the window for clocks that run at different speeds (2 %
// is far beyond what quartz does) and for the time it takes to act.
func (t *trust) margin() time.Duration { return t.timeout / 50 }

// created begins a session whose handshake was sent at sent.
func (t *trust) created(sent time.Time, timeout, lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timeout, t.lag = timeout, lag
	t.base, t.wrote, t.attached = sent, sent, sent
	t.seen, t.wall = sent, sent.Round(0)
	t.acked = append(t.acked[:0], answer{sent, sent})
}

// reattached notes an accepted reconnect whose handshake was sent at sent.
func (t *trust) reattached(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attached = sent
}

// ack notes that a request sent at sent was answered now.
func (t *trust) ack(sent, now time.Time, write bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slept := asleep(sent, sent.Round(0), now, now.Round(0)); slept > t.margin() {
		sent = sent.Add(-slept)
	}
	// What is older than a window opens none. Without writes nobody else would
	// drop it.
	for len(t.acked) > 1 && sent.Sub(t.acked[0].sent) > t.timeout {
		t.acked = t.acked[1:]
	}
	if n := len(t.acked); n == 0 || sent.Sub(t.acked[n-1].sent) >= t.timeout/100 {
		t.acked = append(t.acked, answer{sent, now})
	}
	if !write {
		return
	}
	if sent.After(t.wrote) {
		t.wrote = sent
	}
	if t.attached.After(t.base) && !t.attached.After(sent) {
		t.base = t.attached
	}
	limit, keep := sent.Add(-t.lag), 0
	for i, a := range t.acked {
		if a.came.After(limit) {
			break
		}
		keep = i
		if a.sent.After(t.base) {
			t.base = a.sent
		}
	}
	t.acked = t.acked[keep:]
}

// deadline returns the end of the window as of now, which the wall clock calls
// wall. Time that passed on the wall but not on the monotonic clock was a
// suspend of the machine (or a step of the wall clock, which cannot be told
// apart): it counts as passed.
func (t *trust) deadline(now, wall time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timeout == 0 {
		return time.Time{}
	}
	if slept := asleep(t.seen, t.wall, now, wall); slept > t.margin() {
		t.shift(-slept)
	}
	t.seen, t.wall = now, wall
	return t.base.Add(t.timeout - t.margin())
}

// asleep is the time between two moments that only the wall clock saw.
func asleep(from, fromWall, to, toWall time.Time) time.Duration {
	return toWall.Sub(fromWall) - to.Sub(from)
}

// shift moves the send times. When the answers came stays: too late is safe.
func (t *trust) shift(d time.Duration) {
	t.base, t.wrote, t.attached = t.base.Add(d), t.wrote.Add(d), t.attached.Add(d)
	for i := range t.acked {
		t.acked[i].sent = t.acked[i].sent.Add(d)
	}
}

// lastWrite returns the send time of the newest acknowledged write.
func (t *trust) lastWrite() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote
}
