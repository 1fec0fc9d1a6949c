package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// LocalQueue lets the goroutines that share the [Mutex] queue in memory: the
// process has one node in the line, however many of them wait, and a release
// hands the lock to the one that came first, without a request. When the node
// has had that many turns or is that old, whichever comes first, the process
// gives it up and joins the line again, at the end, unless no other contender
// has come since the node was granted. After a request to give up
// ([coord/inspect.Revoke]) the node is given up at the end of the turn under
// way. No turn is cut short.
//
// All turns of a node share its [coord.Hold.Token], so a resource cannot tell a
// late request of an earlier turn from a current one; it refuses late requests
// of an earlier node. If that matters, leave the option out: a token of its own
// needs a node of its own.
//
// A turn lasts until the last handle made inside of it ([Reentrant],
// [recipe.Dup]) is released and its transactions ([coord.Hold.Txn]) are
// answered; when the outcome of one is unknown, the node is given up after the
// turn. The node is not the turn's: [recipe.Attach],
// [recipe.Transactor.Release] and rwlock.Downgrade fail with
// [coord.ErrInvalid].
//
// [coord.Hold.Release] returns immediately: a node that is given up is deleted
// in the background, so close the client before the process ends.
//
// The node waits for all turns, so its data do not name the hold under which a
// caller waits for its turn ([coord.Hold.Context]).
func LocalQueue(turns int, most time.Duration) Option {
	return func(m *Mutex) error {
		if turns < 1 || most <= 0 {
			return fmt.Errorf("%w: a local queue of %d turns and %v; both must be above 0", coord.ErrInvalid, turns, most)
		}
		q := m.localQueue()
		q.turns, q.most = turns, most
		return nil
	}
}

// Linger keeps the node of a released lock for d. The goroutines that share the
// [Mutex] get the lock again without a request, as long as no other contender
// has come to the line, of either dialect, and [coord/inspect.Revoke] has not
// asked for the node. A watch reports both, and a node without a current turn
// is given up immediately. It brings a [LocalQueue], of one turn if there is no
// such option; its rules for tokens and for the release apply here, too.
func Linger(d time.Duration) Option {
	return func(m *Mutex) error {
		if d <= 0 {
			return fmt.Errorf("%w: lingering for %v; it must be above 0", coord.ErrInvalid, d)
		}
		m.localQueue().linger = d
		return nil
	}
}

// localQueue returns the mutex's local queue, which it makes if there is none.
func (m *Mutex) localQueue() *local {
	if m.local == nil {
		m.local = &local{mutex: m, turns: 1, most: time.Hour}
		m.local.ended = m.local.next
	}
	return m.local
}

// local is the queue of the goroutines that share a mutex. One hold stands for
// all of them, and a turn is a nest in it: a turn is not granted when the
// hold's window is over, and ends when the hold is lost.
type local struct {
	mutex  *Mutex
	turns  int
	most   time.Duration
	linger time.Duration
	ended  func() // is called when a turn has ended

	mu      sync.Mutex
	waiting []*waiter
	asking  bool               // a request to the line is under way
	stop    context.CancelFunc // ends that when nobody waits any more
	hold    *coord.Hold        // the hold of the turns, or nil
	former  *coord.Hold        // the one given up last, or nil
	since   time.Time          // when the hold was granted
	taken   int                // turns of the hold
	taking  bool               // a turn is under way, perhaps of a hold before
	freed   time.Time          // when the newest ended, or since
	revoked <-chan struct{}    // reports a request for the hold; nil while the line is not watched
	known   bool               // whether there are others is known
	others  bool               // others wait for the hold
	idle    *time.Timer        // looks whether the hold has lingered for long enough, or nil
}

// waiter is an acquire that waits for its turn.
type waiter struct {
	done chan struct{} // closed when turn and err are set; nil if they were set immediately
	turn *coord.Hold
	err  error

	patient bool // its call has waited before; see [recipe.Patient]
}

// acquire waits for a turn. A turn that is granted when ctx has ended already
// is released.
func (q *local) acquire(ctx context.Context) (*coord.Hold, error) {
	if ctx.Err() != nil {
		return nil, recipe.Ended(ctx)
	}
	w := &waiter{patient: recipe.IsPatient(ctx)}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.advance()
	if w.turn != nil {
		q.mu.Unlock()
		return w.turn, nil
	}
	w.done = make(chan struct{})
	q.mu.Unlock()
	select {
	case <-w.done:
		return w.turn, w.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter) bool { return other == w })
	q.advance()
	q.mu.Unlock()
	if w.turn != nil { // set under mu: not set any more
		w.turn.Abandon()
	}
	return nil, recipe.Ended(ctx)
}

// try takes a turn of a hold that lingers, or asks the line. A hold that has
// had its turns is given up unless it is known that nobody else waits.
func (q *local) try(ctx context.Context) (*coord.Hold, error) {
	if ctx.Err() != nil {
		return nil, recipe.Ended(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taking || len(q.waiting) > 0 {
		return nil, coord.ErrBusy
	}
	if q.hold != nil && !q.spent() && (q.known || !q.used()) {
		if turn, err := q.take(); err == nil {
			return turn, nil
		}
	}
	for {
		q.drop()
		former := q.former
		q.mu.Unlock()
		if former != nil && q.mutex.delay > 0 { // whose node is deleted in the background
			_ = release(ctx, []*coord.Hold{former}, nil)
		}
		h, err := q.mutex.inLine(ctx, true)
		q.mu.Lock()
		if err != nil {
			return nil, err
		}
		q.adopt(h)
		if q.taking { // it has not heard yet that its hold is lost
			return nil, coord.ErrBusy
		}
		turn, err := q.take()
		if errors.Is(err, coord.ErrUnconfirmed) {
			continue // a reply of the grant was lost: the node has no turns
		}
		q.advance()
		return turn, err
	}
}

// advance takes the steps that are due. It is called after every change; q.mu
// is held.
func (q *local) advance() {
	for !q.taking && q.hold != nil && len(q.waiting) > 0 && !q.spent() {
		if !q.known && q.used() {
			q.watch()
			return
		}
		turn, err := q.take()
		if err != nil {
			q.drop()
			break
		}
		w := q.waiting[0]
		q.waiting = q.waiting[1:]
		w.turn = turn
		if w.done != nil {
			close(w.done)
		}
	}
	if q.taking {
		if len(q.waiting) > 0 {
			q.watch()
		}
		return
	}
	if q.hold != nil && (len(q.waiting) > 0 || q.linger == 0 || q.others || isClosed(q.revoked)) {
		q.drop()
	}
	switch {
	case q.hold != nil:
		q.rest()
	case len(q.waiting) > 0 && !q.asking:
		q.ask()
	case q.asking && len(q.waiting) == 0:
		q.stop()
	}
}

// spent reports whether the hold has no more turns to give, though it may not
// be lost; q.mu is held.
func (q *local) spent() bool { return isClosed(q.revoked) || q.others && q.used() }

// used reports whether the hold has had its share while others wait; q.mu is
// held.
func (q *local) used() bool { return q.taken >= q.turns || time.Since(q.since) >= q.most }

// ask requests a hold from the line for the waiters; q.mu is held. If that
// fails, the waiters fail with it, except that patient ones are not refused:
// for them the line is asked again.
func (q *local) ask() {
	ctx, stop := context.WithCancel(context.Background())
	if q.waiting[0].done != nil { // it has waited for a turn
		ctx = recipe.Patient(ctx)
	}
	q.asking, q.stop = true, stop
	go func() {
		h, err := q.mutex.inLine(ctx, false)
		stopped := ctx.Err() != nil
		stop()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.asking = false
		switch {
		case err == nil:
			q.adopt(h)
		case !stopped:
			refused := errors.Is(err, coord.ErrForeign)
			q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
				if refused && w.patient {
					return false
				}
				w.err = err
				close(w.done)
				return true
			})
		}
		q.advance()
	}()
}

// adopt makes h the hold that the turns are of; one before it is lost, since
// the line has granted h, and no other is asked for. q.mu is held.
func (q *local) adopt(h *coord.Hold) {
	q.drop()
	if q.asking {
		q.stop()
	}
	q.hold, q.since, q.taken = h, time.Now(), 0
	q.freed = q.since
}

// drop gives the hold up, if there is one; q.mu is held.
func (q *local) drop() {
	if q.hold == nil {
		return
	}
	q.hold.Abandon()
	q.former = q.hold
	q.hold, q.revoked, q.known, q.others = nil, nil, false, false
	if q.idle != nil {
		q.idle.Stop()
		q.idle = nil
	}
}

// take begins a turn: a nest in the hold. It fails if the hold is lost, its
// window over, or an earlier turn's transaction may still be carried out; q.mu
// is held.
func (q *local) take() (*coord.Hold, error) {
	turn, err := recipe.Dup(q.hold, q.ended)
	if err == nil {
		q.taking, q.taken = true, q.taken+1
	}
	return turn, err
}

// next takes the steps that are due when the turn has ended.
func (q *local) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taking = false
	if q.linger > 0 {
		q.freed = time.Now()
	}
	q.advance()
}

// rest lets the hold linger. The timer runs on over the turns: a turn costs no
// timer. q.mu is held.
func (q *local) rest() {
	q.watch()
	if q.idle != nil {
		return
	}
	var idle *time.Timer
	idle = time.AfterFunc(q.linger, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		left := q.linger - time.Since(q.freed)
		switch {
		case q.idle != idle: // it was another hold's
		case q.taking:
			q.idle = nil
		case left > 0:
			idle.Reset(left)
		default:
			q.drop()
			q.advance()
		}
	})
	q.idle = idle
}
