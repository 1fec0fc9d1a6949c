package coord

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Record is the data of a node that clients agree on. Each of them changes it
// in one way only: it reads, decides, and writes for the version that it has
// read. When several decide at the same time, one succeeds, and the others read
// again. It is configuration, not state, and safe for concurrent use.
type Record struct {
	client *Client
	path   string
}

// Record returns the record at path, which need not exist.
func (c *Client) Record(path string) Record { return Record{c, path} }

// Look reads the record for a look of [Client.Wait], which is called again when
// the record changes. A missing record is made with the initial data, and so
// are its parents; without these, Look answers no data and a zero Stat, and the
// look is called again when somebody makes the record. One request, two more
// for a missing record.
func (r Record) Look(v *View, initial []byte) ([]byte, Stat, error) {
	for {
		if initial == nil {
			if _, there, err := v.Exists(r.path); !there {
				return nil, Stat{}, err
			}
		}
		data, stat, err := v.Get(r.path)
		if !errors.Is(err, ErrNoNode) {
			return data, stat, err
		}
		if initial != nil {
			err = r.client.Retry(v.ctx, func(ctx context.Context) error { return r.client.Create(ctx, r.path, initial) })
			if err != nil && !errors.Is(err, ErrNodeExists) {
				return nil, Stat{}, err
			}
		}
	}
}

// Change replaces the data by what decide makes of them. decide is given the
// data as they are (the Stat is zero while there is no record, which is made
// then, with its parents), and is asked again when another client was faster.
// When decide fails, or returns the data that it was given, nothing is written.
// Two requests, one less if this process watches the record, and two more for
// each time that another was faster.
//
// write is [Client.Txn], or [Hold.Txn] for a change that only the holder makes,
// or [ExactlyOnce.Txn]. The first two answer [ErrUnconfirmed] when the
// connection fails before the reply: where deciding again after one's own
// change does no harm, call Change by [Client.Retry]. Where it does harm, as in
// a counter, take the third. A hold that is lost answers [ErrLost].
func (r Record) Change(
	ctx context.Context, write func(ctx context.Context, ops ...Op) ([]Result, error),
	decide func(data []byte, stat Stat) ([]byte, error),
) error {
	for known := r.watched(); ; known = nil {
		data, stat, err := r.read(ctx, known)
		missing := errors.Is(err, ErrNoNode)
		if err != nil && !missing {
			return err
		}
		next, err := decide(data, stat)
		if err != nil || !missing && bytes.Equal(next, data) {
			if known != nil {
				continue // the watch may have yet to hear of a change
			}
			return err
		}
		op := SetOp(r.path, next, stat.Version)
		if missing {
			op = CreateOp(r.path, next)
		}
		_, err = write(ctx, op)
		if err == nil || errors.Is(err, ErrLost) {
			return err
		}
		switch {
		case missing && errors.Is(err, ErrNoNode):
			if err := r.client.EnsureDir(ctx, session.Parent(r.path)); err != nil {
				return err
			}
		case !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrNodeExists):
			return err
		}
	}
}

// watched returns the watch of the record that this process has, or nil.
func (r Record) watched() *session.Watch {
	s := r.client.keeper.Current()
	if s == nil {
		return nil
	}
	return s.Watches.Get(session.Data, r.client.full(r.path))
}

func (r Record) read(ctx context.Context, known *session.Watch) ([]byte, Stat, error) {
	if known != nil {
		return slices.Clone(known.Data), Stat(known.Stat), nil
	}
	return r.client.Get(ctx, r.path)
}
