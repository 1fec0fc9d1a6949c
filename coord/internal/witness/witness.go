// Package witness carries out transactions that must not be carried out twice,
// also when replies are lost. Each one also sets the data of an own ephemeral
// node, its witness, at the version that the node is known to have: a repeat
// whose predecessor took effect finds another version.
package witness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// most bounds the transactions of one [Set] that are under way at the same
// time, and so its nodes. More would not go faster: a server answers a
// session's requests in order.
const most = 32

// Config says where the witnesses are and what their nodes are.
type Config struct {
	Host   *znode.Host
	Keeper *session.Keeper
	Dir    string        // the server's path
	Name   func() string // of a new node, unlike any other
	Data   []byte
	ACL    []wire.ACL
}

// Set is the witnesses in one directory: as many as there were transactions at
// the same time. It is safe for concurrent use.
type Set struct {
	Config
	places chan struct{} // one for each transaction under way

	mu     sync.Mutex
	idle   []*witness
	closed bool
}

// New returns an empty set.
func New(cfg Config) *Set { return &Set{Config: cfg, places: make(chan struct{}, most)} }

// witness is an own node whose version counts the transactions that used it. It
// belongs to one session, and so do the transactions. A transaction that is
// carried out late finds another version, or no node.
type witness struct {
	sess    *session.Session
	node    znode.Node
	version int32
}

// Txn carries out all the operations or none, once, in session s, or if that is
// nil, in the current one: one request, and one more to make a witness when
// none is idle. The request is repeated over lost connections. If the ensemble
// refused it, the results say which operation failed. [znode.ErrUnconfirmed] is
// left for these cases: ctx ended before a reply came, or the session did, and
// the witness with it, or another client deleted or forbade the witness. Any
// other error means that nothing was carried out, nor will be; to make sure, a
// repeat that is refused costs one more request. There are no results when the
// transaction took effect and its reply was lost.
func (o *Set) Txn(ctx context.Context, s *session.Session, ops []wire.Op) ([]wire.Result, error) {
	select {
	case o.places <- struct{}{}:
	case <-ctx.Done():
		return nil, calls.Ended(ctx)
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
func (w *witness) try(ctx context.Context, ops []wire.Op) (results []wire.Result, spent bool, err error) {
	all := append([]wire.Op{w.set(nil)}, ops...)
	spent = true
	err = znode.Send(ctx, w.sess, func() error {
		results, err = znode.Txn(ctx, w.sess, all)
		return err
	}, func(err error, lost bool) error {
		refused := session.Refused(results)
		switch {
		case refused < 0 && znode.IsLost(err):
			return znode.ErrAgain
		case refused > 0:
			spent = false
			verdict := err
			if lost {
				spent, verdict = w.fence(ctx, verdict)
			}
			return verdict
		case refused == 0 && lost && errors.Is(err, wire.ErrBadVersion):
			spent = false
			w.version++ // the first one took effect
			return nil
		case lost:
			return znode.Unconfirmed(err)
		case refused == 0 && (errors.Is(err, wire.ErrNoNode) || errors.Is(err, wire.ErrBadVersion)):
			return errNoWitness
		case refused == 0:
			return fmt.Errorf("own node: set %s: %w", w.node.Path(), err)
		}
		return err
	})
	switch refused := session.Refused(results); {
	case err == nil && refused < 0 && len(results) > 0:
		w.version++
		return results[1:], false, nil
	case err != nil && refused > 0:
		return results[1:], spent, err
	}
	return nil, spent, err
}

// set is the operation that raises the witness's version, if that is as known.
func (w *witness) set(data []byte) wire.Op {
	return wire.Op{Kind: wire.OpSet, Path: w.node.Path(), Data: data, Version: w.version}
}

// fence sees to it that a transaction whose repeat was refused is not carried
// out late either. It returns the verdict, or nil when the transaction was
// carried out after all.
func (w *witness) fence(ctx context.Context, verdict error) (spent bool, err error) {
	err = znode.Send(ctx, w.sess, func() error {
		_, err := znode.Txn(ctx, w.sess, []wire.Op{w.set(fenced)})
		return err
	}, func(err error, _ bool) error {
		switch {
		case znode.IsLost(err):
			return znode.ErrAgain
		case !errors.Is(err, wire.ErrBadVersion):
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
func (o *Set) take(ctx context.Context, s *session.Session) (*witness, error) {
	if s != nil {
		return o.takeIn(ctx, s)
	}
	for {
		s, err := o.Keeper.Session(ctx)
		if err != nil {
			return nil, err
		}
		w, err := o.takeIn(ctx, s)
		if err == nil || ctx.Err() != nil || s.Err() == nil {
			return w, err
		}
	}
}

func (o *Set) takeIn(ctx context.Context, s *session.Session) (*witness, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, znode.ErrReleased
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
func (o *Set) make(ctx context.Context, s *session.Session) (*witness, error) {
	w := &witness{sess: s}
	w.node.Dir, w.node.Stem = o.Dir, o.Name()
	w.node.Init(o.Host, s, nil)
	err := znode.Certain(ctx, s, func() error {
		return znode.Create(ctx, func() error {
			path, czxid, err := s.Create(znode.Join(w.node.Dir, w.node.Stem), o.Data, wire.Ephemeral, o.ACL)
			if err == nil {
				w.node.Made(path, czxid)
			}
			return err
		}, func(error) error { return s.EnsurePath(ctx, w.node.Dir, o.ACL) }, &w.node)
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

func (o *Set) giveBack(w *witness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		w.drop()
		return
	}
	o.idle = append(o.idle, w)
}

// Close deletes the witnesses, and returns an error if it cannot. Transactions
// under way are not disturbed; later ones fail with [znode.ErrReleased].
func (o *Set) Close(ctx context.Context) error {
	o.mu.Lock()
	idle := o.idle
	o.idle, o.closed = nil, true
	o.mu.Unlock()
	failures := make([]error, len(idle))
	var deleting sync.WaitGroup
	for i, w := range idle {
		deleting.Go(func() {
			err := w.sess.Delete(ctx, w.node.Path(), -1)
			if err != nil && !errors.Is(err, wire.ErrNoNode) && w.sess.Err() == nil {
				w.drop()
				failures[i] = znode.Unconfirmed(err)
				return
			}
			w.node.Forget()
		})
	}
	deleting.Wait()
	return cmp.Or(failures...)
}
