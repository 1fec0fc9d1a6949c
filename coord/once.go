package coord

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/go-multierror"
)

// ExactlyOnce carries out transactions that must not be carried out twice,
// also when replies are lost. Each one also sets the data of an own ephemeral
// node at the version it is known to have; a repeat whose predecessor took
// effect finds another version. It is safe for concurrent use: there are as
// many nodes as there were transactions at the same time.
type ExactlyOnce struct {
	client *Client
	dir    string

	mu     sync.Mutex
	idle   []*witness
	closed bool
}

// witness is an own node whose version counts the transactions that used it.
type witness struct {
	claim   *Claim
	version int32
}

// ExactlyOnce returns an empty set of witnesses, whose nodes will be in dir.
func (c *Client) ExactlyOnce(dir string) (*ExactlyOnce, error) {
	if err := CheckPath(dir); err != nil {
		return nil, err
	}
	return &ExactlyOnce{client: c, dir: dir}, nil
}

// Txn carries out all the operations or none, once: one request, and one more
// to make a witness when none is idle. It repeats it over lost connections. It
// fails as [Client.Txn] does; [ErrUnconfirmed] is left for two cases: ctx ended
// before a reply came, or the session did, and the witness with it.
func (o *ExactlyOnce) Txn(ctx context.Context, ops ...Op) error {
	for {
		w, err := o.take(ctx)
		if err != nil {
			return err
		}
		unknown, err := w.txn(ctx, o.client, ops)
		var refused *TxnError
		switch {
		case unknown:
			w.claim.leave()
			return err
		case w.isGone(err):
			w.claim.leave() // its session had ended before: take another
		case err == nil || errors.As(err, &refused):
			o.giveBack(w)
			return err
		default:
			w.claim.leave()
			return err
		}
	}
}

// txn returns unknown when the outcome cannot be found out.
func (w *witness) txn(ctx context.Context, c *Client, ops []Op) (unknown bool, err error) {
	all := append([]Op{SetOp(w.claim.Node(), nil, w.version)}, ops...)
	for {
		_, err := c.Txn(ctx, all...)
		var refused *TxnError
		switch {
		case err == nil:
			w.version++
			return false, nil
		case errors.Is(err, ErrUnconfirmed):
			if ctx.Err() != nil {
				return true, err
			}
			unknown = true
		case errors.Is(err, ErrThrottled) && ctx.Err() == nil:
			c.pause(ctx)
		case unknown && errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, ErrBadVersion):
			w.version++ // the first one took effect
			return false, nil
		case unknown && w.isGone(err):
			return true, opError("transaction", w.claim.Node(), multierror.Append(ErrUnconfirmed, err))
		default:
			return false, w.shift(err)
		}
	}
}

// isGone tells whether a transaction failed because the witness has no node.
func (w *witness) isGone(err error) bool {
	var refused *TxnError
	return errors.As(err, &refused) && refused.Index <= 0 && refused.Path == w.claim.Node() && errors.Is(err, ErrNoNode)
}

// shift counts the operations from the caller's first.
func (w *witness) shift(err error) error {
	var refused *TxnError
	if errors.As(err, &refused) && refused.Path != w.claim.Node() {
		refused.Index--
	}
	return err
}

func (o *ExactlyOnce) take(ctx context.Context) (*witness, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, opError("transaction", o.dir, ErrReleased)
	}
	if n := len(o.idle); n > 0 {
		w := o.idle[n-1]
		o.idle = o.idle[:n-1]
		o.mu.Unlock()
		return w, nil
	}
	o.mu.Unlock()
	claim, err := o.client.Join(ctx, Spec{Line: Line{Dir: o.dir}, Name: o.client.opts.dialect.newGUID()})
	if err != nil {
		return nil, err
	}
	return &witness{claim: claim}, nil
}

func (o *ExactlyOnce) giveBack(w *witness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		w.claim.leave()
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
	var failed *multierror.Error
	for _, w := range idle {
		if err := w.claim.Leave(ctx); err != nil {
			failed = multierror.Append(failed, err)
		}
	}
	return failed.ErrorOrNil()
}
