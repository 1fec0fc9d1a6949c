// Package witness carries out transactions that must not be carried out twice,
// also when replies are lost. Each one also sets the data of an ephemeral node
// of this client, its witness, at the version that the node is known to have: a
// repeat whose predecessor took effect finds another version.
package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// most bounds the transactions of one directory that are under way at the same
// time, and so its nodes. More would not go faster: a server answers a
// session's requests in order.
const most = 32

// maxIdle bounds the idle witnesses of a client, in all directories together.
const maxIdle = 128

// Config says what the witnesses' nodes are.
type Config struct {
	Host   *znode.Host
	Keeper *session.Keeper
	Name   func() string // of a new node, unlike any other
	Data   []byte
	ACL    []zk.ACL
}

// Pool is the witnesses of a client: in each directory as many as there were
// transactions at the same time. A witness that has been idle for the session's
// timeout, or for longer than maxIdle others, is deleted. Nothing is kept of a
// directory without witnesses and transactions. A Pool is safe for concurrent
// use.
type Pool struct {
	Config

	mu     sync.Mutex
	places map[string]*places // by directory
	idle   []*witness         // the one that has been idle for longest first
	reaper *time.Timer        // nil while none is idle
}

// New returns an empty pool.
func New(cfg Config) *Pool { return &Pool{Config: cfg, places: map[string]*places{}} }

// places are those of one directory, one for each transaction under way.
type places struct {
	taken chan struct{}
	users int // that have, or wait for, a place
}

// witness is a node of ours whose version counts the transactions that used it.
// It belongs to one session, and so do the transactions. A transaction that is
// carried out late finds another version, or no node.
type witness struct {
	sess    *session.Session
	node    znode.Node
	version int32
	since   time.Time // it has been idle
}

// Txn carries out all the operations or none, once, by a witness in dir (the
// server's path), in session s, or if that is nil, in the current one: one
// request, and one more to make a witness when none is idle. The request is
// repeated over lost connections. If the ensemble refused it, the results say
// which operation failed. [znode.ErrUnconfirmed] is left for these cases: ctx
// ended before a reply came, or the session did, and the witness with it, or
// another client deleted or forbade the witness. Any other error means that
// nothing was carried out, nor will be; to make sure, a repeat that is refused
// costs one more request. There are no results when the transaction took effect
// and its reply was lost.
func (p *Pool) Txn(ctx context.Context, dir string, s *session.Session, ops []wire.Op) ([]wire.Result, error) {
	leave, err := p.enter(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer leave()
	for {
		w, err := p.take(ctx, dir, s)
		if err != nil {
			return nil, err
		}
		results, spent, err := w.try(ctx, ops)
		if !spent {
			p.giveBack(w)
		} else {
			w.drop()
		}
		if !errors.Is(err, errNoWitness) {
			return results, err
		}
	}
}

// enter waits for a place of a directory.
func (p *Pool) enter(ctx context.Context, dir string) (leave func(), err error) {
	p.mu.Lock()
	at := p.places[dir]
	if at == nil {
		at = &places{taken: make(chan struct{}, most)}
		p.places[dir] = at
	}
	at.users++
	p.mu.Unlock()
	left := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		at.users--
		if at.users == 0 {
			delete(p.places, dir)
		}
	}
	select {
	case at.taken <- struct{}{}:
		return func() { <-at.taken; left() }, nil
	case <-ctx.Done():
		left()
		return nil, calls.Ended(ctx)
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
		case refused == 0 && lost && errors.Is(err, zk.ErrBadVersion):
			spent = false
			w.version++ // the first one took effect
			return nil
		case lost:
			return znode.Unconfirmed(err)
		case refused == 0 && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion)):
			return errNoWitness
		case refused == 0:
			return fmt.Errorf("our node: set %s: %w", w.node.Path(), err)
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
		case !errors.Is(err, zk.ErrBadVersion):
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

// take returns a witness in dir of session s, or if that is nil, of the one
// that is up, which it waits for.
func (p *Pool) take(ctx context.Context, dir string, s *session.Session) (*witness, error) {
	if s != nil {
		return p.takeIn(ctx, dir, s)
	}
	for {
		s, err := p.Keeper.Session(ctx)
		if err != nil {
			return nil, err
		}
		w, err := p.takeIn(ctx, dir, s)
		if err == nil || ctx.Err() != nil || s.Err() == nil {
			return w, err
		}
	}
}

func (p *Pool) takeIn(ctx context.Context, dir string, s *session.Session) (*witness, error) {
	p.mu.Lock()
	for i, w := range slices.Backward(p.idle) {
		if w.sess == s && w.node.Dir == dir {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.mu.Unlock()
			return w, nil
		}
	}
	p.mu.Unlock()
	return p.make(ctx, dir, s)
}

// make creates a witness's node. A caller who gives up waiting leaves no node:
// the node is deleted only after the create was answered, for a delete could
// overtake the create.
func (p *Pool) make(ctx context.Context, dir string, s *session.Session) (*witness, error) {
	w := &witness{sess: s}
	w.node.Dir, w.node.Stem = dir, p.Name()
	w.node.Init(p.Host, s, nil)
	err := znode.Certain(ctx, s, func() error {
		return znode.Create(ctx, func() error {
			path, czxid, err := s.Create(znode.Join(w.node.Dir, w.node.Stem), p.Data, zk.FlagEphemeral, p.ACL)
			if err == nil {
				w.node.Made(path, czxid)
			}
			return err
		}, func(error) error { return s.EnsurePath(ctx, w.node.Dir, p.ACL) }, &w.node)
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
	_ = w.sess.Go(
		func() { _ = w.node.Delete(nil) }) // refused when the session is over, and the node with it; reports what fails
}

// giveBack keeps a witness for the next transaction in its directory.
func (p *Pool) giveBack(w *witness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.since = time.Now()
	p.idle = append(p.idle, w)
	p.prune()
}

// prune deletes the witnesses that have been idle for too long, and comes back
// for the others; p.mu is held.
func (p *Pool) prune() {
	p.idle = slices.DeleteFunc(p.idle, func(w *witness) bool { return w.sess.Err() != nil })
	for len(p.idle) > maxIdle || len(p.idle) > 0 && p.idle[0].left() <= 0 {
		p.idle[0].drop()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if p.reaper == nil && len(p.idle) > 0 {
		p.reaper = time.AfterFunc(p.idle[0].left(), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reaper = nil
			p.prune()
		})
	}
}

// left is how much longer an idle witness is kept.
func (w *witness) left() time.Duration { return w.sess.Timeout() - time.Since(w.since) }
