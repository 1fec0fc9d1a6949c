package recipe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Record is the data of a node that clients agree on. Each of them changes it
// in one way only: it reads, decides, and writes for the version that it has
// read. When several decide at the same time, one succeeds, and the others read
// again. It is configuration, not state, and safe for concurrent use.
type Record struct {
	client *coord.Client
	path   string
}

// NewRecord returns the record at path, which need not exist.
func NewRecord(c *coord.Client, path string) Record { return Record{c, path} }

// Look reads the record for a look of [coord.Client.Wait], which is called
// again when the record changes. A missing record is made with the initial
// data, along with its parents. If initial is nil, Look returns no data and a
// zero Stat instead, and the look is called again when somebody makes the
// record. A record that this client may not read fails with [coord.ErrNoAuth].
// One request, two more for a missing record.
func (r Record) Look(v *coord.View, initial []byte) ([]byte, coord.Stat, error) {
	for {
		if initial == nil {
			if _, there, err := v.Exists(r.path); !there {
				return nil, coord.Stat{}, err
			}
		}
		data, stat, err := v.Get(r.path)
		if err == nil && isHidden(data, stat) {
			return nil, coord.Stat{}, Failure(r.client, "get", r.path, coord.ErrNoAuth)
		}
		if !errors.Is(err, coord.ErrNoNode) {
			return data, stat, err
		}
		if initial != nil {
			err = Retry(v.Context(), r.client, func(ctx context.Context) error { return r.client.Create(ctx, r.path, initial) })
			if err != nil && !errors.Is(err, coord.ErrNodeExists) {
				return nil, coord.Stat{}, err
			}
		}
	}
}

// Change replaces the data by the result of decide. decide is given a copy of
// the data as they are (the Stat is zero while there is no record, which is
// made then, with its parents), and is asked again when another client was
// faster. When decide fails, it is asked once more about the latest data, for a
// server that lags behind may have answered the read; when it fails again,
// nothing is written. When it returns the data that it was given, write only
// checks that they are still the latest. Two requests, one less if this process
// watches the record, and two more for each time that another was faster, or
// that decide failed.
//
// Nobody starves: a caller that has lost to others five times takes a place in
// a line, an ephemeral node below the record, and so does every caller that
// reads the record while there is a line. The first in line changes the record.
// That costs seven requests for each change, and one more where the record has
// other nodes below it. A caller that does nothing holds up the others for half
// a session timeout at most. When ctx ends, the error says how often others
// were faster.
//
// write is [coord.Client.Txn], or [coord.Hold.Txn] for a change that only the
// holder makes, or [Transactor.Txn]. The first two answer
// [coord.ErrUnconfirmed] when the connection fails before the reply: where
// deciding again after one's own change does no harm, call Change by
// [Retry]. Where it does harm, as in a counter, take the third. A
// hold that is lost answers [coord.ErrLost].
func (r Record) Change(
	ctx context.Context, write func(ctx context.Context, ops ...coord.Op) ([]coord.Result, error),
	decide func(data []byte, stat coord.Stat) ([]byte, error),
) (err error) {
	if write == nil || decide == nil {
		return Failure(r.client, "change", r.path, wire.Invalid("the function is nil"))
	}
	from, turn := r, turn{record: r}
	defer func() {
		turn.leave()
		err = turn.told(ctx, err)
	}()
	for first := true; ; first = false {
		data, stat, err := from.read(ctx, first)
		missing := errors.Is(err, coord.ErrNoNode)
		if err != nil && !missing {
			return err
		}
		if waited, err := turn.take(ctx, stat); waited || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		next, err := decide(bytes.Clone(data), stat)
		switch {
		case err != nil && from == r:
			from.client = r.client.Synced() // the watch, or the server, may not know of a change yet
			continue
		case err != nil:
			return err
		}
		op := coord.SetOp(r.path, next, stat.Version)
		switch {
		case missing:
			op = coord.CreateOp(r.path, next)
		case bytes.Equal(next, data):
			op = coord.CheckOp(r.path, stat.Version)
		}
		_, err = write(ctx, op)
		if err == nil || errors.Is(err, coord.ErrLost) {
			return err
		}
		switch {
		case missing && errors.Is(err, coord.ErrNoNode):
			if err := r.client.EnsureDir(ctx, path.Dir(r.path)); err != nil {
				return err
			}
		case !errors.Is(err, coord.ErrBadVersion) && !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNodeExists):
			return err
		default:
			turn.lost++
		}
	}
}

// Set replaces the data, whatever they are, and makes a record that is missing,
// with its parents: write is as for [Record.Change]. One request; another one
// where the record is missing, and more for its parents.
func (r Record) Set(
	ctx context.Context, write func(ctx context.Context, ops ...coord.Op) ([]coord.Result, error), data []byte,
) error {
	if write == nil {
		return Failure(r.client, "set", r.path, wire.Invalid("the function is nil"))
	}
	for {
		_, err := write(ctx, coord.SetOp(r.path, data, -1))
		if !isMissing(err) {
			return err
		}
		_, err = write(ctx, coord.CreateOp(r.path, data))
		if isMissing(err) {
			err = cmp.Or(r.client.EnsureDir(ctx, path.Dir(r.path)), coord.ErrNodeExists)
		}
		if !errors.Is(err, coord.ErrNodeExists) {
			return err
		}
	}
}

func isMissing(err error) bool {
	return errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrLost)
}

// read reads the record: from the watch that this process has on it, if that is
// wanted and there is one, which costs no request.
func (r Record) read(ctx context.Context, watched bool) (data []byte, stat coord.Stat, err error) {
	known := false
	if watched {
		err = r.client.Wait(ctx, func(v *coord.View) (bool, error) {
			data, stat, known = v.Peek(r.path)
			known = known && !isHidden(data, stat)
			return true, nil
		})
	}
	if !known && err == nil {
		data, stat, err = r.client.Get(ctx, r.path)
	}
	return data, stat, err
}

// isHidden reports whether a look sees that there are data, and may not read
// them.
func isHidden(data []byte, stat coord.Stat) bool { return len(data) == 0 && stat.DataLength > 0 }
