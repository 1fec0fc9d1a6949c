package coord

import (
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// The requests to give up a hold that other programs write into its node.
const (
	revokeCurator = "__REVOKE__" // Curator
	revokePlain   = "unlock"     // ZooKeeper's recipe page
)

// owner is a claim as the owner of its node.
type owner Claim

func (o *owner) claim() *Claim { return (*Claim)(o) }

func (o *owner) Deleted() { o.claim().vanish(ErrNodeDeleted) }

func (o *owner) Replaced(by int64) {
	o.claim().vanish(fmt.Errorf("%w: it belongs to session %s now", ErrNodeDeleted, sessionName(by)))
}

func (o *owner) Asked() { o.claim().revoke() }

func (o *owner) Wake() { o.claim().poke() }

func (o *owner) Leaving() bool { return o.claim().finished() }

// watchOwnSoon sets the own watch of a claim that lasts.
func (cl *Claim) watchOwnSoon() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.removal == nil {
		cl.lazy = cl.node.WatchSoon()
	}
}

func (cl *Claim) finished() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.gone != nil || cl.removal != nil
}

// revoke notes that somebody asked for the hold.
func (cl *Claim) revoke() {
	if h := cl.shape.part; h != nil {
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
		cl.emit(ClaimRevoked, cl.joined, nil)
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
