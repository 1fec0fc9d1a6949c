package simulate

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// pace sets the workers' pace: deadlines that are often shorter than a fault,
// and holds that outlast the session time-out.
func (w *world) pace() workload.Pace {
	return workload.Pace{
		Timeout: w.timeout, Deadlines: 0.3, Cancels: 0.2, Early: 2 * w.timeout, Rushed: 0.1, Certain: time.Hour,
		Hold: w.hold, Step: w.timeout * 3 / 10, Writes: 0.5, Pause: time.Duration(0.9 / w.haste * float64(w.timeout)),
	}
}

// hold draws how long a hold is used: mostly short, sometimes longer than the
// session time-out, rarely longer than a holder may take to learn of its loss
// (see excused).
func (w *world) hold(r *rand.Rand) time.Duration {
	switch how := r.Float64(); {
	case how < 0.15:
		return 0
	case how < 0.85:
		return w.part(r, 0, 0.15)
	case how < 0.92:
		return w.part(r, 0.1, 0.6)
	}
	w.count(w.faults, "long hold", 1)
	if chance(r, 0.2) {
		return w.part(r, 5, 7)
	}
	return w.part(r, 1, 3)
}

// Granted counts a grant, and times the first on each path after the last
// fault.
func (s *station) Granted(k *workload.Worker, _ history.Holder) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.grants[k.Recipe]++
	if _, had := s.w.first[k.Key]; !had && !s.w.repaired.IsZero() {
		s.w.first[k.Key] = time.Since(s.w.repaired)
	}
}

// Look compares what a hold says with the server's tree: a hold that is trusted
// now had its node a moment ago.
func (s *station) Look(k *workload.Worker, h *coord.Hold) {
	there := false
	for _, n := range s.w.srv.Nodes() {
		there = there || n.Path == h.Node() && n.Stat.EphemeralOwner == h.Session() && (h.Token() == 0 || h.Token() == n.Stat.Czxid)
	}
	if !there && h.Err() == nil && !s.w.excused(h.Node(), h.Token(), h.Session()) {
		s.w.violated("%s: trusts %s, but the server has given it up", k.Name, h.Node())
	}
	s.Count("holds compared with the server")
}

// late is how long after its context's end a call may return.
const late = 50 * time.Millisecond

// Late judges calls that return after their context's end.
func (s *station) Late(k *workload.Worker, what string, by time.Duration, err error) {
	if by > late {
		s.w.violated("%s: %s returned %v after its context had ended: %v", k.Name, what, by, err)
	}
}

// Expected reports whether a foreign contender or a closed client explains an
// error.
func (s *station) Expected(_ *workload.Worker, err error) bool {
	return errors.Is(err, coord.ErrForeign) && s.w.hadForeigners(err) || errors.Is(err, coord.ErrClosed) && !s.steady
}

// Accept takes a write with a token, unless a newer one was seen.
func (s *station) Accept(key string, token int64) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if token < s.w.newest[key] {
		return false
	}
	s.w.newest[key] = token
	return true
}

// Wrote records what a transaction of a holder wrote.
func (s *station) Wrote(key string, written history.Write) { s.w.fence.Wrote(key, written) }

// Flush returns immediately: records of this process are never lost.
func (s *station) Flush() {}

// Count counts an event: what happened to a worker, or what it did wrong on
// purpose.
func (s *station) Count(what string) {
	switch what {
	case "deadline", "cancellation", "use after the loss":
		s.w.count(s.w.faults, what, 1)
	default:
		s.w.count(s.w.counts, what, 1)
	}
}

// Violated notes that a promise was broken.
func (s *station) Violated(format string, args ...any) { s.w.violated(format, args...) }
