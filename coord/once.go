package coord

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// witnesses bounds the transactions of one [ExactlyOnce] that are under way at
// the same time, and so its nodes. More would not go faster: a server answers
// a session's requests in order.
const witnesses = 32

// ExactlyOnce carries out transactions that must not be carried out twice, also
// when replies are lost. Each one also sets the data of an own ephemeral node
// at the version it is known to have; a repeat whose predecessor took effect
// finds another version. It is safe for concurrent use: there are as many nodes
// as there were transactions at the same time, at most 32, beyond which they
// wait for each other. The nodes last until Close, or as long as the session.
type ExactlyOnce struct {
	client *Client
	dir    string
	owner  []byte
	places chan struct{} // one for each transaction under way

	mu     sync.Mutex
	idle   []*witness
	closed bool
}

// witness is an own node whose version counts the transactions that used it. It
// belongs to one session, and so do the transactions. A transaction that is
// carried out late finds another version, or no node.
type witness struct {
	client  *Client
	sess    *session.Session
	node    znode.Node
	version int32
}

func (w *witness) path() string { return w.client.relative(w.node.Path()) }

// ExactlyOnce returns an empty set of witnesses, whose nodes will be in dir.
func (c *Client) ExactlyOnce(dir string) (*ExactlyOnce, error) {
	if err := Check(c, dir); err != nil {
		return nil, err
	}
	return &ExactlyOnce{client: c, dir: dir, owner: c.opts.identity, places: make(chan struct{}, witnesses)}, nil
}

// Txn carries out all the operations or none, once: one request, and one more
// to make a witness when none is idle. It repeats it over lost connections. It
// fails as [Client.Txn] does; [ErrUnconfirmed] is left for these cases: ctx
// ended before a reply came, or the session did, and the witness with it, or
// another client deleted or forbade the witness. Any other error means that
// nothing was, nor will be, carried out, for which a repeat that is refused
// costs one request more. There are no results when the transaction took effect
// and its reply was lost.
func (o *ExactlyOnce) Txn(ctx context.Context, ops ...Op) ([]Result, error) {
	results, err := o.txn(ctx, nil, ops)
	return results, o.client.Failure("transaction", o.dir, err)
}

// txn carries out the operations in session s, or if that is nil, in the
// current one.
func (o *ExactlyOnce) txn(ctx context.Context, s *session.Session, ops []Op) ([]Result, error) {
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
		w, err := o.take(ctx, s)
		if err != nil {
			return nil, err
		}
		results, spent, err := w.try(ctx, ops)
		if !spent {
			o.giveBack(w)
		} else {
			w.drop()
		}
		if !errors.Is(err, errNoWitness) {
			return results, err
		}
	}
}

// errNoWitness: nothing was carried out, for want of the witness.
var errNoWitness = errors.New("the witness is gone")

// try carries out a transaction with a witness. It reports whether the witness
// is of no more use.
func (w *witness) try(ctx context.Context, ops []Op) (results []Result, spent bool, err error) {
	all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)
	spent = true
	err = znode.Send(ctx, w.sess, func() error {
		results, err = w.client.txn(ctx, w.sess, all)
		return err
	}, func(err error, lost bool) error {
		var refused *TxnError
		switch errors.As(err, &refused); {
		case refused == nil && znode.IsLost(err):
			return znode.ErrAgain
		case refused != nil && refused.Index > 0:
			spent = false
			verdict := callersOwn(err, 1)
			if lost {
				spent, verdict = w.fence(ctx, verdict)
			}
			return verdict
		case refused != nil && lost && errors.Is(err, ErrBadVersion):
			spent = false
			w.version++ // the first one took effect
			return nil
		case lost:
			return znode.Unconfirmed(err)
		case refused != nil && (errors.Is(err, ErrNoNode) || errors.Is(err, ErrBadVersion)):
			return errNoWitness
		}
		return callersOwn(err, 1)
	})
	if err != nil || len(results) == 0 {
		return nil, spent, err
	}
	w.version++
	return results[1:], false, nil
}

// fence sees to it that a transaction whose repeat was refused is not carried
// out late either. It returns the verdict, or nil when the transaction was
// carried out after all.
func (w *witness) fence(ctx context.Context, verdict error) (spent bool, err error) {
	err = znode.Send(ctx, w.sess, func() error {
		_, err := w.client.txn(ctx, w.sess, []Op{SetOp(w.path(), fenced, w.version)})
		return err
	}, func(err error, _ bool) error {
		switch {
		case znode.IsLost(err):
			return znode.ErrAgain
		case !errors.Is(err, ErrBadVersion):
			return znode.Unconfirmed(err)
		}
		// By an earlier fence, or the transaction after all.
		node, err := znode.Read(ctx, w.sess, func() (session.Node, error) { return w.sess.Get(ctx, w.node.Path()) })
		switch {
		case err != nil:
			return znode.Unconfirmed(err)
		case string(node.Data) == string(fenced):
			return nil
		}
		verdict = nil
		return nil
	})
	if err != nil {
		return true, znode.Unconfirmed(err)
	}
	w.version++
	return false, verdict
}

// fenced are the data that a fence leaves, where transactions leave none.
var fenced = []byte("refused")

// take returns a witness of session s, or if that is nil, of the one that is
// up, which it waits for.
func (o *ExactlyOnce) take(ctx context.Context, s *session.Session) (*witness, error) {
	if s != nil {
		return o.takeIn(ctx, s)
	}
	for {
		s, err := o.client.keeper.Session(ctx)
		if err != nil {
			return nil, err
		}
		w, err := o.takeIn(ctx, s)
		if err == nil || ctx.Err() != nil || s.Err() == nil {
			return w, err
		}
	}
}

func (o *ExactlyOnce) takeIn(ctx context.Context, s *session.Session) (*witness, error) {
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

// make creates a witness's node. A caller who gives up waiting leaves no node:
// the node is deleted only after the create was answered, for a delete could
// overtake the create.
func (o *ExactlyOnce) make(ctx context.Context, s *session.Session) (*witness, error) {
	c := o.client
	w := &witness{client: c, sess: s}
	w.node.Dir, w.node.Stem = c.full(o.dir), dialect.GUID(c.opts.dialect)
	w.node.Init(&c.nodes, s, nil)
	path, acl := znode.Join(w.node.Dir, w.node.Stem), c.opts.acl
	err := znode.Certain(ctx, s, func() error {
		return znode.Create(ctx, func() error {
			path, czxid, err := s.Create(path, o.owner, wire.Ephemeral, acl)
			if err == nil {
				w.node.Made(path, czxid)
			}
			return err
		}, func(error) error { return s.EnsurePath(ctx, w.node.Dir, acl) }, &w.node)
	}, func(err error, left bool) {
		if err == nil && left {
			_ = w.node.Delete(nil) // reports what fails
		}
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// drop deletes a witness's node in the background.
func (w *witness) drop() {
	_ = w.sess.Go(func() { _ = w.node.Delete(nil) }) // refused when the session is over, and the node with it; reports what fails
}

func (o *ExactlyOnce) giveBack(w *witness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		w.drop()
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
			err := w.sess.Delete(ctx, w.node.Path(), -1)
			if err != nil && !errors.Is(err, ErrNoNode) && w.sess.Err() == nil {
				w.drop()
				failures[i] = znode.Unconfirmed(err)
				return
			}
			w.node.Forget()
		})
	}
	deleting.Wait()
	return opError("close", o.dir, Joined(failures...))
}
