package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// witnesses bounds the transactions of one [ExactlyOnce] that are under way at
// the same time, and so its nodes. More would not go faster: a server answers
// a session's requests in order.
const witnesses = 32

// ExactlyOnce carries out transactions that must not be carried out twice,
// also when replies are lost. Each one also sets the data of an own ephemeral
// node at the version it is known to have; a repeat whose predecessor took
// effect finds another version. It is safe for concurrent use: there are as
// many nodes as there were transactions at the same time, at most 32, beyond
// which they wait for each other. They last until Close, or as long as the
// session.
type ExactlyOnce struct {
	client *Client
	dir    string
	owner  []byte
	places chan struct{} // one for each transaction under way

	mu     sync.Mutex
	idle   []*witness
	closed bool
}

// witness is an own node whose version counts the transactions that used it.
// It belongs to one session, and so do the transactions. One that is carried
// out late (see [doubt]) finds another version, or no node.
type witness struct {
	sess    *session.Session
	node    string
	version int32
	doubted bool // an attempt to make the node may be carried out late
}

// ExactlyOnce returns an empty set of witnesses, whose nodes will be in dir.
func (c *Client) ExactlyOnce(dir string) (*ExactlyOnce, error) {
	if err := Check(c, dir); err != nil {
		return nil, err
	}
	return &ExactlyOnce{client: c, dir: dir, owner: []byte(c.opts.owner()), places: make(chan struct{}, witnesses)}, nil
}

// Txn carries out all the operations or none, once: one request, and one more
// to make a witness when none is idle. It repeats it over lost connections. It
// fails as [Client.Txn] does; [ErrUnconfirmed] is left for these cases: ctx ended
// before a reply came, or the session did, and the witness with it, or somebody
// deleted or forbade the witness. Any other error means that nothing was, nor
// will be, carried out, for which a repeat that is refused costs one request more.
// There are no results when the transaction took effect and its reply was lost.
func (o *ExactlyOnce) Txn(ctx context.Context, ops ...Op) ([]Result, error) {
	results, err := o.txn(ctx, ops)
	return results, o.client.Failure("transaction", o.dir, err)
}

func (o *ExactlyOnce) txn(ctx context.Context, ops []Op) ([]Result, error) {
	if _, err := o.client.requests(ops); err != nil {
		return nil, err
	}
	select {
	case o.places <- struct{}{}:
	case <-ctx.Done():
		return nil, Ended(ctx)
	}
	defer func() { <-o.places }()
	for {
		w, err := o.take(ctx)
		if err != nil {
			return nil, err
		}
		results, spent, err := o.client.try(ctx, w, ops)
		if !spent {
			o.giveBack(w)
		} else {
			o.client.drop(w)
		}
		if !errors.Is(err, errNoWitness) {
			return results, err
		}
	}
}

// errNoWitness: nothing was carried out, for want of the witness.
var errNoWitness = errors.New("the witness is gone")

// try carries out a transaction with a witness. It tells whether the witness
// is of no more use.
func (c *Client) try(ctx context.Context, w *witness, ops []Op) (results []Result, spent bool, err error) {
	all := append([]Op{SetOp(w.node, nil, w.version)}, ops...)
	for unknown := false; ; {
		results, err := c.txn(ctx, w.sess, all)
		var refused *TxnError
		errors.As(err, &refused)
		switch {
		case err == nil:
			w.version++
			return results[1:], false, nil
		case refused != nil && refused.Index > 0 && unknown:
			return c.fence(ctx, w, callersOwn(err, 1))
		case refused != nil && refused.Index > 0:
			return nil, false, callersOwn(err, 1)
		case refused != nil && unknown && errors.Is(err, ErrBadVersion):
			w.version++ // the first one took effect
			return nil, false, nil
		case refused != nil && unknown:
			return nil, true, fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		case refused != nil && (errors.Is(err, ErrNoNode) || errors.Is(err, ErrBadVersion)):
			return nil, true, errNoWitness
		case errors.Is(err, ErrThrottled) && ctx.Err() == nil:
			c.pause(ctx)
		case errors.Is(err, ErrDisconnected) && ctx.Err() == nil && w.sess.Err() == nil:
			unknown = true
		case errors.Is(err, ErrDisconnected) && w.sess.Err() != nil && !errors.Is(err, w.sess.Err()):
			return nil, true, fmt.Errorf("%w: %w", err, w.sess.Err()) // it ended since
		case unknown && !errors.Is(err, ErrUnconfirmed):
			return nil, true, fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		default:
			return nil, true, callersOwn(err, 1)
		}
	}
}

// fence sees to it that a transaction whose repeat was refused is not carried
// out late either.
func (c *Client) fence(ctx context.Context, w *witness, verdict error) (results []Result, spent bool, err error) {
	for {
		_, err = c.txn(ctx, w.sess, []Op{SetOp(w.node, fenced, w.version)})
		switch {
		case err == nil:
			w.version++
			return nil, false, verdict
		case errors.Is(err, ErrBadVersion): // by an earlier fence, or the transaction after all
			var node session.Node
			if node, err = w.sess.Get(ctx, c.full(w.node)); err == nil {
				w.version++
				if string(node.Data) == string(fenced) {
					return nil, false, verdict
				}
				return nil, false, nil
			}
		}
		if ctx.Err() != nil || w.sess.Err() != nil || !transient(err) {
			return nil, true, fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		}
		if errors.Is(err, ErrThrottled) {
			c.pause(ctx)
		}
	}
}

// fenced are the data that a fence leaves, where transactions leave none.
var fenced = []byte("refused")

// take returns a witness of the session that is up, which it waits for.
func (o *ExactlyOnce) take(ctx context.Context) (*witness, error) {
	s, err := o.client.keeper.Session(ctx)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, ErrReleased
	}
	o.idle = slices.DeleteFunc(o.idle, func(w *witness) bool { return w.sess.Err() != nil })
	for i, w := range slices.Backward(o.idle) {
		if w.sess == s {
			o.idle = slices.Delete(o.idle, i, i+1)
			o.mu.Unlock()
			return w, nil
		}
	}
	o.mu.Unlock()
	return o.make(ctx, s)
}

// make creates a witness's node. Whoever gives up waiting for it leaves none:
// what was sent is deleted only after it was answered, for a delete could
// overtake it.
func (o *ExactlyOnce) make(ctx context.Context, s *session.Session) (*witness, error) {
	w := &witness{sess: s, node: join(o.dir, o.client.opts.dialect.newGUID())}
	made := make(chan error, 1)
	if err := s.Go(func() { made <- o.create(ctx, w) }); err != nil {
		return o.take(ctx) // of the next session
	}
	select {
	case err := <-made:
		if err == nil {
			return w, nil
		}
		o.client.noteGone(w)
		switch {
		case ctx.Err() != nil:
			return nil, Ended(ctx)
		case s.Err() != nil:
			return o.take(ctx)
		}
		return nil, err
	case <-ctx.Done():
		_ = s.Go(func() { // refused when the session is over, and the node with it
			if <-made == nil {
				o.client.drop(w)
			} else {
				o.client.noteGone(w)
			}
		})
		return nil, Ended(ctx)
	}
}

// create makes a witness's node and blocks until that is certain, or certain
// not to be, or the session is over. That its name is there already means that
// the reply to the first attempt was lost, since the name is a GUID.
func (o *ExactlyOnce) create(ctx context.Context, w *witness) error {
	c := o.client
	for {
		_, err := c.txn(context.Background(), w.sess, []Op{CreateOp(w.node, o.owner, Ephemeral)})
		switch {
		case err == nil || errors.Is(err, ErrNodeExists):
			return nil
		case w.sess.Err() != nil:
			return err
		case errors.Is(err, ErrNoNode):
			if err := w.sess.EnsurePath(ctx, c.full(o.dir), c.opts.acl); err != nil && !transient(err) {
				return err
			}
		case errors.Is(err, ErrThrottled):
			c.pause(context.Background())
		case !errors.Is(err, ErrUnconfirmed):
			return err
		default:
			w.doubted = true
		}
	}
}

// drop deletes a witness's node in the background.
func (c *Client) drop(w *witness) {
	_ = w.sess.Go(func() { // refused when the session is over, and the node with it
		_ = c.claimFor(w.sess, c.full(w.node)).remove() // reports what fails
		c.noteGone(w)
	})
}

// noteGone notes that a witness's node was deleted, or never made.
func (c *Client) noteGone(w *witness) {
	if w.doubted {
		c.doubtDeleted(w.sess, c.full(w.node))
	}
}

func (o *ExactlyOnce) giveBack(w *witness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.client.drop(w)
		return
	}
	o.idle = append(o.idle, w)
}

// Close deletes the witnesses. Transactions under way are not disturbed; later
// ones fail with [ErrReleased].
func (o *ExactlyOnce) Close(ctx context.Context) error {
	o.mu.Lock()
	idle := o.idle
	o.idle, o.closed = nil, true
	o.mu.Unlock()
	failures := make([]error, len(idle))
	var deleting sync.WaitGroup
	for i, w := range idle {
		deleting.Go(func() {
			err := w.sess.Delete(ctx, o.client.full(w.node))
			if err != nil && !errors.Is(err, ErrNoNode) && w.sess.Err() == nil {
				o.client.drop(w)
				failures[i] = fmt.Errorf("%w: %w", ErrUnconfirmed, err)
				return
			}
			o.client.noteGone(w)
		})
	}
	deleting.Wait()
	return opError("close", o.dir, joined(failures...))
}
