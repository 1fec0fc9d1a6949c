package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// ownWatchDelay is how long a claim goes without a watch on its own node, unless
// it waits in the line. What is over sooner saves the request; nothing is
// missed, since setting the watch reads the node.
const ownWatchDelay = 20 * time.Millisecond

// The requests to give up a hold that other programs write into its node.
const (
	revokeCurator = "__REVOKE__" // Curator
	revokePlain   = "unlock"     // ZooKeeper's recipe page
)

// watchOwn watches the own node.
func (cl *Claim) watchOwn(ctx context.Context) error {
	return cl.heedOwn(cl.sess.WatchData(ctx, cl.node.Path()))
}

// heedOwn learns from a watch on the own node, or from why there is none. From
// then on the node's deletion and a request for the hold are noticed.
func (cl *Claim) heedOwn(w *session.Watch, err error) error {
	switch {
	case errors.Is(err, ErrNoNode):
		cl.vanish(ErrNodeDeleted)
		return err
	case err != nil:
		return err
	case w.Stat.Owner != cl.sess.ID():
		cl.vanish(fmt.Errorf("%w: it belongs to session %s now", ErrNodeDeleted, sessionName(w.Stat.Owner)))
		return ErrNoNode
	}
	if IsRevocation(w.Data) {
		cl.revoke()
	}
	cl.mu.Lock()
	known := cl.watch == w
	cl.watch = w
	cl.mu.Unlock()
	if !known {
		cl.sess.OnFire(w, cl.ownFired)
	}
	return nil
}

// ownFired runs in the client library's goroutine and must not block.
func (cl *Claim) ownFired(fired session.Fired) {
	if fired == session.Deleted {
		cl.vanish(ErrNodeDeleted)
	}
	cl.mu.Lock()
	waiting := cl.waiting
	cl.mu.Unlock()
	switch {
	case waiting:
		cl.poke() // the waiter sets it along with its other watches
	case fired != session.Deleted:
		cl.watchOwnNow()
	}
}

// watchOwnNow sets the own watch in the background.
func (cl *Claim) watchOwnNow() {
	_ = cl.sess.Enqueue(func() { // fails only when the session is over
		for !cl.finished() {
			err := cl.watchOwn(context.Background())
			if err == nil || cl.sess.Err() != nil {
				break
			}
			if errors.Is(err, ErrNoAuth) {
				cl.blind.Do(func() {
					cl.client.opts.log.Warn("the own node may not be watched: its deletion by others will not be noticed", "node", cl.Node(), "err", err)
				})
				break
			}
			cl.client.pause(context.Background())
		}
		cl.poke()
	})
}

// watchOwnAtAll sets the own watch unless it was set before; from then on it is
// set anew whenever it fires.
func (cl *Claim) watchOwnAtAll() {
	cl.mu.Lock()
	set, parts := cl.watch != nil, cl.parts
	cl.mu.Unlock()
	if !set {
		cl.watchOwnNow()
	}
	for _, part := range parts {
		part.watchOwnAtAll()
	}
}

// watchOwnSoon sets the own watch of a claim that lasts.
func (cl *Claim) watchOwnSoon() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.lazy == nil && cl.removal == nil {
		cl.lazy = time.AfterFunc(ownWatchDelay, cl.watchOwnAtAll)
	}
}

// knowsOwn tells whether the claim has just seen its node, or watches it.
func (cl *Claim) knowsOwn() bool {
	if time.Since(cl.seen) < ownWatchDelay {
		return true
	}
	cl.mu.Lock()
	w := cl.watch
	cl.mu.Unlock()
	return w != nil && armed(w)
}

// armed tells whether a watch is still to fire.
func armed(w *session.Watch) bool {
	select {
	case <-w.Done():
		return false
	default:
		return true
	}
}

// lookAtOwn reads and watches the own node, unless that is known to be there,
// and fails when it is not.
func (cl *Claim) lookAtOwn(ctx context.Context) error {
	for !cl.knowsOwn() {
		switch err := cl.watchOwn(ctx); {
		case errors.Is(err, ErrNoNode):
			return cl.missed()
		case err == nil, errors.Is(err, ErrNoAuth): // or it may not be watched; see watchOwnNow
			cl.seen = time.Now()
		case !transient(err), cl.sess.Err() != nil:
			return err
		case ctx.Err() != nil:
			return Ended(ctx)
		case errors.Is(err, ErrThrottled):
			cl.client.pause(ctx)
		}
	}
	return nil
}

func (cl *Claim) finished() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.gone != nil || cl.removal != nil
}

// revoke notes that somebody asked for the hold.
func (cl *Claim) revoke() {
	if h := cl.spec.For; h != nil {
		h.claim.revoke()
		return
	}
	cl.mu.Lock()
	first := !cl.asked
	cl.asked = true
	if first {
		close(cl.revoked)
	}
	cl.mu.Unlock()
	if first {
		cl.client.emit(Event{Kind: ClaimRevoked, Session: cl.sess.ID(), Path: cl.Node()})
	}
}

func (cl *Claim) poke() {
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// sessionChanged runs in the goroutines of the session and must not block. It
// ends the holds that are lost, and returns what is left to do, in this order,
// once all have been told: first the nodes are deleted, then the log and the
// observer are told. Either may be nil.
func (cl *Claim) sessionChanged(change session.Change) (leave, tell func()) {
	switch {
	case change == session.Over:
		leave, tell = cl.vanished(cl.sess.Err())
	case change == session.Down && cl.client.opts.dropping:
		leave, tell = cl.lost(ErrDisconnected)
	case change == session.WindowClosed:
		leave, tell = cl.lost(ErrWindowOver)
	}
	return leave, tell
}

// vanish notes that the node is not ours any more, and ends the holds. That the
// claim deleted it itself is no news.
func (cl *Claim) vanish(cause error) {
	if leave, tell := cl.vanished(cause); leave != nil {
		leave()
		tell()
	}
}

func (cl *Claim) vanished(cause error) (leave, tell func()) {
	select {
	case <-cl.client.closed:
		cause = ErrClosed // whose goodbye deletes the node; its event may come first
	default:
	}
	cl.mu.Lock()
	if cl.removal != nil && len(cl.holds) == 0 || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted) {
		cl.mu.Unlock()
		return nil, nil
	}
	if cl.gone == nil {
		cl.gone = cause
	}
	ended := cl.endLost(cause)
	cl.mu.Unlock()
	tell = cl.finishLost(ended, cause)
	return func() {
		cl.leave()
		cl.poke()
	}, tell
}

// lose ends the holds that can no longer be trusted and deletes the node,
// should it still be there. A claim that only waits is not affected.
func (cl *Claim) lose(cause error) {
	if leave, tell := cl.lost(cause); leave != nil {
		leave()
		tell()
	}
}

func (cl *Claim) lost(cause error) (leave, tell func()) {
	cl.mu.Lock()
	ended := cl.endLost(cause)
	cl.mu.Unlock()
	if len(ended) == 0 {
		return nil, nil
	}
	tell = cl.finishLost(ended, cause)
	return func() { cl.leaveBy(cl.sess.Enqueue) }, tell
}
