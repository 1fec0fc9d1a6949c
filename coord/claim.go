package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// claim is an own ephemeral node and what it stands for. It belongs to the
// session in which it was made, and to no other: its name carries a GUID.
type claim struct {
	client *Client
	sess   *session.Session
	shape  *shape
	node   znode.Node
	joined time.Time
	view   *session.Listing // the directory as listed along with the create, or nil

	mu       sync.Mutex
	left     session.Signal // that there is a removal
	asked    bool           // for the hold, by a revocation
	revoked  session.Signal // that it was asked
	gone     error          // why the node is not ours any more, or nil
	parts    []*claim       // what was made for it; see [Hold.Attach]
	holds    []*Hold        // granted and not ended; the last one's Release deletes the node
	removal  *removal       // once the node is to be deleted
	unsure   bool           // the outcome of a transaction of the holds is not known
	deleting chan struct{}  // while a transaction that deletes the node is under way; closed at its end
}

// join makes a claim's node and its directory. When the connection fails before
// the reply comes, it finds out whether the node exists, by its GUID and after
// a write that the ensemble agreed on. If ctx ends first, join returns
// immediately, and the node, if it is created after all, is deleted in the
// background. Two requests, create and list, which travel together: one round
// trip; or the create alone, where 16 claims of the session wait already, and
// few others.
//
// It returns the claim also when it fails, once a node may have been made.
func (c *Client) join(ctx context.Context, shape *shape) (cl *claim, err error) {
	var s *session.Session
	if shape.part != nil {
		s, err = shape.part.claim.sess, shape.part.Err()
	} else {
		s, err = c.keeper.Session(ctx)
	}
	if err != nil {
		return nil, err
	}
	node, err := shape.node(c)
	if err != nil {
		return nil, err
	}
	cl = c.newClaim(s, shape, node)
	c.register(cl)
	if err := cl.makeNode(ctx); err != nil {
		return cl, err
	}
	cl.node.WatchSoon()
	if shape.part != nil {
		return cl, shape.part.adopt(cl)
	}
	cl.emit(ClaimJoined, cl.joined, nil)
	return cl, nil
}

func (c *Client) newClaim(s *session.Session, shape *shape, node znode.Spec) *claim {
	cl := &claim{client: c, sess: s, shape: shape, joined: time.Now()}
	cl.node.Init(&c.nodes, s, node, (*owner)(cl))
	return cl
}

// makeNode makes the node, and lists the directory right behind it, unless many
// of its session wait there; a listing that fails is made again where it is
// needed. What is left when the create has
// failed, or ctx has ended, is done in a goroutine.
func (cl *claim) makeNode(ctx context.Context) error {
	begun := cl.shape.begin(cl)
	if begun != nil {
		if !cl.shape.Unlisted && cl.sess.Listings.SharersBefore(cl.node.Spec.Dir, math.MaxInt32, near) == nil {
			cl.view, _ = cl.sess.Listings.Get(ctx, cl.node.Spec.Dir)
		}
		select {
		case <-begun.Done():
			if path, czxid, err := begun.Outcome(); err == nil {
				cl.node.Made(path, czxid)
				return nil
			}
		case <-ctx.Done():
		}
	}
	made := make(chan error)
	err := cl.sess.Go(func() {
		err := cl.create(ctx, begun)
		if err != nil {
			cl.client.unregister(cl)
		}
		select {
		case made <- err:
		case <-ctx.Done():
			if err == nil {
				cl.leave(cl.atOnce) // no caller waits for it any more
			}
		}
	})
	if err != nil {
		cl.client.unregister(cl)
		return err
	}
	select {
	case err := <-made:
		return err
	case <-ctx.Done():
		return Ended(ctx)
	}
}

// create makes the node and blocks until that is certain, or certain not to be.
// The first attempt may be under way. It starts no further one when ctx has
// ended.
func (cl *claim) create(ctx context.Context, first *session.Creation) error {
	ensure := func() error {
		return cl.sess.EnsurePath(ctx, cl.node.Spec.Dir, cl.client.opts.acl)
	}
	if cl.shape.isShared() {
		ensure = nil
	}
	return cl.node.Create(ctx, func() (string, int64, error) {
		if begun := first; begun != nil {
			first = nil
			return begun.Outcome()
		}
		return cl.shape.create(cl)
	}, ensure)
}

// keepOpen says whether the claim needs an open trust window: it does until it
// has to wait, when its turn may have come, and as long as it is held. A claim
// that only waits has its session write nothing.
func (cl *claim) keepOpen(needed bool) {
	c := cl.client
	c.mu.Lock()
	opens, known := c.claims[cl]
	if known {
		c.claims[cl] = needed
	}
	c.mu.Unlock()
	switch {
	case !known || needed == opens:
	case needed:
		cl.sess.KeepOpen()
	default:
		cl.sess.LetClose()
	}
}

// path returns the path of the claim's node.
func (cl *claim) path() string { return cl.client.relative(cl.node.Path()) }

// own reads the claim's place from its node's name. A sequence number that
// cannot be read is past the end of the counter.
func (cl *claim) own() Contender {
	self, ok := dialect.Parse(cl.node.Name(), cl.shape.Line.Kinds)
	if !ok {
		return Contender{Name: cl.node.Name(), Sequence: -1}
	}
	return Contender(self)
}

// owner is a claim as the owner of its node.
type owner claim

func (o *owner) Deleted() { (*claim)(o).lose(ErrNodeDeleted, true) }

func (o *owner) Replaced(by int64) {
	(*claim)(o).lose(fmt.Errorf("%w: it belongs to session %s now", ErrNodeDeleted, sessionName(by)), true)
}

// Asked notes that another client asked for the hold.
func (o *owner) Asked() {
	cl := (*claim)(o)
	if h := cl.shape.part; h != nil {
		(*owner)(h.claim).Asked()
		return
	}
	cl.mu.Lock()
	before := cl.asked
	cl.asked = true
	if !before {
		cl.revoked.Close()
	}
	cl.mu.Unlock()
	if !before {
		cl.emit(ClaimRevoked, cl.joined, nil)
	}
}

func (o *owner) Leaving() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone != nil || o.removal != nil
}

// lossBy returns why a change of the session ends the holds, if it does, and
// whether their nodes are gone with it.
func (c *Client) lossBy(change session.Change, s *session.Session) (cause error, gone bool) {
	switch {
	case change == session.Over:
		return s.Err(), true
	case change == session.Down && c.opts.dropping:
		return ErrDisconnected, false
	case change == session.WindowClosed:
		return ErrWindowOver, false
	}
	return nil, false
}

// lose ends the holds that can no longer be trusted and deletes the node,
// should it still be there. A claim that only waits is not affected unless its
// node is gone.
func (cl *claim) lose(cause error, gone bool) {
	if leave, tell := cl.losing(cause, gone); leave != nil {
		leave()
		tell()
	}
}

// losing ends the holds as lost. It does not block. It returns what is left to
// do, in this order, once all holds of the session have ended: first the node
// is deleted, then the log and the observer hear of it, which may take their
// time. That the claim deleted its node itself is no news.
func (cl *claim) losing(cause error, gone bool) (leave, tell func()) {
	select {
	case <-cl.client.closed:
		if gone {
			cause = ErrClosed // whose goodbye deletes the node; its event may come first
		}
	default:
	}
	cl.mu.Lock()
	if errors.Is(cause, ErrWindowOver) && time.Now().Before(cl.sess.Deadline()) {
		cl.mu.Unlock()
		return nil, nil // opened again since, perhaps for the very hold that there is now
	}
	if gone {
		if cl.removal != nil && len(cl.holds) == 0 || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted) {
			cl.mu.Unlock()
			return nil, nil
		}
		cl.gone = cmp.Or(cl.gone, cause)
	}
	ended := cl.endAll(loss{cause})
	cl.mu.Unlock()
	if len(ended) == 0 && !gone {
		return nil, nil
	}
	for _, h := range ended {
		h.tellEnded()
	}
	return func() {
			cl.leave(cl.sess.Enqueue)
		}, func() {
			for _, h := range ended {
				cl.client.opts.Log.Log(context.Background(), unlessClosed(cause), "hold lost", "node", cl.path(), "cause", cause)
				cl.emit(ClaimEnded, h.granted, loss{cause})
			}
		}
}
