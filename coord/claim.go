package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// claim is our ephemeral node and its meaning: a place in a line, a name, or a
// part of a hold. It belongs to the session in which it was made, and to no
// other.
type claim struct {
	client *Client
	sess   *session.Session
	spec   *Spec
	named  *NameSpec // of a name and of a part, or nil
	part   *Hold     // of which the node is a part, or nil
	node   znode.Node
	joined time.Duration    // when, since the client began
	view   *session.Listing // the directory as listed along with the create, or nil

	mu       sync.Mutex
	waker    session.Waker  // of the one who waits for its turn, or nil
	revoked  session.Signal // that it was asked
	gone     error          // why the node is no longer ours, or nil
	holds    []*Hold        // granted and not ended; the last one's Release deletes the node
	rare     *rareState     // or nil
	removal  *removal       // once the node is to be deleted
	asked    bool           // for the hold, by a revocation
	retained bool           // its hold is lost, and the node is to be taken back; see [NameSpec]
	unsure   bool           // the outcome of a transaction of the holds is not known
	deleting bool           // whether a transaction that deletes the node is under way
	opens    bool           // it needs an open trust window; registry.mu guards this field and the next
	index    int32          // in the registry
	// under are transactions that the deletion of the node must not overtake:
	// all of a name's, and deleting ones.
	under calls.Running
}

// rareState is what few claims have, and none of the thousands that wait.
type rareState struct {
	parts   []*claim // what was made for it; see recipe.Attach
	along   []Op     // to be carried out by a removal that the owner wants; constant once there is one
	foreign string   // the contender that was reported last as one that cannot be honoured
}

// attached returns the claim's parts, and what is carried out along with its
// removal; cl.mu is held.
func (cl *claim) attached() (parts []*claim, along []Op) {
	if cl.rare == nil {
		return nil, nil
	}
	return cl.rare.parts, cl.rare.along
}

// rareState returns the state to change; cl.mu is held.
func (cl *claim) rareState() *rareState {
	if cl.rare == nil {
		cl.rare = &rareState{}
	}
	return cl.rare
}

// newClaim prepares a claim whose node's name begins with stem.
func (c *Client) newClaim(spec *Spec, stem string) *claim {
	cl := &claim{client: c, spec: spec, joined: time.Since(c.began)}
	cl.node.Dir, cl.node.Stem = c.full(spec.Line.Dir), stem
	return cl
}

// joinedAt returns when the claim was prepared, or taken back.
func (cl *claim) joinedAt() time.Time { return cl.client.began.Add(cl.joined) }

// proof are the checks that are true only while the claim owns its name.
func (cl *claim) proof() []Op {
	if cl.named == nil {
		return nil
	}
	return cl.named.Proof
}

// enter registers the claim in its session.
func (cl *claim) enter(s *session.Session) {
	cl.sess = s
	cl.node.Init(&cl.client.nodes, s, (*owner)(cl))
	cl.client.claims.add(cl)
}

// join makes a claim's node and its directory. When the connection fails before
// the reply comes, it finds out whether the node exists, by its GUID and after
// a write that the ensemble agreed on. If ctx ends first, join returns
// immediately, and the node, if it is created after all, is deleted in the
// background. Two requests, create and list, which travel together: one round
// trip; or the create alone, if [Spec.Unlisted], or if 16 claims of the session
// wait already, and few others. A lost listing is made again where needed.
//
// It returns the claim also when it fails, once a node may have been made.
func (c *Client) join(ctx context.Context, spec *Spec) (*claim, error) {
	s, err := c.keeper.Session(ctx)
	if err != nil {
		return nil, err
	}
	stem, nameless := spec.Line.layout(c.opts.dialect).Stem(spec.Kind, s.ID())
	cl := c.newClaim(spec, stem)
	cl.node.Nameless = nameless
	cl.enter(s)
	if err := cl.node.AwaitTurn(ctx); err != nil {
		c.claims.remove(cl)
		return nil, err
	}
	begun := s.BeginCreate(cl.wanted(), spec.Data, zk.FlagEphemeralSequential, c.opts.acl)
	if begun != nil {
		if !cl.spec.Unlisted && cl.sess.Listings.SharersBefore(cl.node.Dir, math.MaxInt32, frontPlaces) == nil {
			cl.view, _ = cl.sess.Listings.Get(ctx, cl.node.Dir)
		}
		select {
		case <-begun.Done():
			if cl.made(begun.Outcome()) == nil {
				cl.hasJoined()
				return cl, nil
			}
		case <-ctx.Done():
		}
	}
	return cl, cl.joinAfter(ctx, begun)
}

// joinAfter makes the node, unless the request that has begun does.
func (cl *claim) joinAfter(ctx context.Context, begun *session.Creation) error {
	return batch{cl}.join(ctx, func() error {
		if first := begun; first != nil {
			begun = nil
			return cl.made(first.Outcome())
		}
		return cl.made(cl.sess.Create(cl.wanted(), cl.spec.Data, zk.FlagEphemeralSequential, cl.client.opts.acl))
	}, func(error) error { return cl.ensureDir(ctx) })
}

func (cl *claim) made(path string, czxid int64, err error) error {
	if err == nil {
		cl.node.Made(path, czxid)
	}
	return err
}

func (cl *claim) ensureDir(ctx context.Context) error {
	return cl.sess.EnsurePath(ctx, cl.node.Dir, cl.client.opts.acl)
}

func (cl *claim) hasJoined() {
	cl.node.WatchSoon()
	if cl.part == nil {
		cl.emit(event.Joined, cl.joinedAt(), nil)
	}
}

// wanted is the server's path that the create asks for.
func (cl *claim) wanted() string { return znode.Join(cl.node.Dir, cl.node.Stem) }

// batch is the claims that one request makes.
type batch []*claim

// join makes the nodes of the claims, which are of one session, by once and
// ensure; see [znode.Create]. If ctx ends first, the claims leave the nodes
// that are made.
func (t batch) join(ctx context.Context, once func() error, ensure func(error) error) error {
	err := znode.Certain(ctx, t[0].sess, func() error {
		nodes := make([]*znode.Node, len(t))
		for i, cl := range t {
			nodes[i] = &cl.node
		}
		return znode.Create(ctx, once, ensure, nodes...)
	}, func(err error, left bool) {
		for _, cl := range t {
			cl.node.EndTurn()
			switch {
			case err != nil:
				cl.client.claims.remove(cl)
			case left:
				cl.leave(cl.atOnce) // no caller waits for it any more
			}
		}
	})
	if err != nil {
		return err
	}
	for _, cl := range t {
		cl.hasJoined()
	}
	return nil
}

// path returns the path of the claim's node.
func (cl *claim) path() string { return cl.client.relative(cl.node.Path()) }

// own reads the claim's place from its node's name. A sequence number that
// cannot be read is past the end of the counter.
func (cl *claim) own() Contender {
	self, ok := cl.spec.Line.layout(cl.client.opts.dialect).Self(cl.node.Name())
	if !ok {
		return Contender{Name: cl.node.Name(), Sequence: -1}
	}
	return Contender(self)
}

// owner is a claim as the owner of its node.
type owner claim

func (o *owner) Deleted() { (*claim)(o).lose(ErrNodeDeleted, true) }

func (o *owner) Replaced(by int64) {
	(*claim)(o).lose(fmt.Errorf("%w: another node of session %s has its name now", ErrNodeDeleted, sessionName(by)), true)
}

// Written notes that another client asked for the hold, if the data say so.
func (o *owner) Written(data []byte) {
	cl := (*claim)(o)
	if h := cl.part; h != nil {
		(*owner)(h.claim).Written(data)
		return
	}
	if !dialect.Asks(cl.spec.Line.Dialect, data) {
		return
	}
	cl.mu.Lock()
	before, joined := cl.asked, cl.joinedAt()
	cl.asked = true
	if !before {
		cl.revoked.Close()
	}
	cl.mu.Unlock()
	if !before {
		cl.emit(event.Revoked, joined, nil)
	}
}

func (o *owner) Leaving() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone != nil || o.removal != nil
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

// mayRetain reports whether the node outlives a loss by that cause: the session
// is out of touch, and may live; cl.mu is held.
func (cl *claim) mayRetain(cause error) bool {
	return cl.named != nil && cl.named.Retain && cl.gone == nil && cl.removal == nil &&
		(cause == ErrWindowOver || cause == ErrDisconnected)
}

// losing ends the holds as lost. It does not block. It returns the steps to
// take, in this order, once all holds of the session have ended: leave deletes
// the node, then tell informs the log and the observer, which may take their
// time. A node that the claim deleted itself is not reported.
func (cl *claim) losing(cause error, gone bool) (leave, tell func()) {
	select {
	case <-cl.client.closed:
		if gone {
			cause = ErrClosed // whose goodbye deletes the node; its event may come first
		}
	default:
	}
	cl.mu.Lock()
	if cause == ErrWindowOver && time.Now().Before(cl.sess.Deadline()) {
		cl.mu.Unlock()
		return nil, nil // opened again since, perhaps for the very hold that there is now
	}
	if gone {
		if cl.removal != nil && len(cl.holds) == 0 || cl.deleting && errors.Is(cause, ErrNodeDeleted) {
			cl.mu.Unlock()
			return nil, nil
		}
		cl.gone = cmp.Or(cl.gone, cause)
	}
	ended := cl.endAll(loss{cause})
	if len(ended) > 0 {
		cl.rareState().along = nil
	}
	retained := len(ended) > 0 && cl.mayRetain(cause)
	cl.retained = cl.retained && !gone || retained
	cl.mu.Unlock()
	if len(ended) == 0 && !gone {
		return nil, nil
	}
	for _, h := range ended {
		h.tellEnded()
	}
	return func() {
			if !retained {
				cl.leave(cl.sess.Enqueue)
			}
		}, func() {
			for _, h := range ended {
				cl.client.opts.Log.Log(context.Background(), unlessClosed(cause), "hold lost", "node", cl.path(), "cause", cause)
				cl.emit(event.Ended, h.granted, loss{cause})
			}
		}
}
