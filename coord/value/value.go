package value

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Value is a value at a path. It is configuration, not state, and safe for
// concurrent use.
type Value struct {
	client *coord.Client
	path   string
	record recipe.Record
	guard  *recipe.Transactor
}

// New returns the value at path, which need not exist. It does no I/O. An
// invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Value, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	// Beside the value and not below it: whoever makes a directory makes a
	// container, which goes with its last child.
	guard, err := recipe.NewTransactor(client, guards(path))
	if err != nil {
		return nil, err
	}
	return &Value{client, path, recipe.NewRecord(client, path), guard}, nil
}

func guards(path string) string { return path + "-guards" }

// State is a value as it was at a moment. Without a value, it is zero.
type State struct {
	Data     []byte
	Version  int64 // grows from change to change; see [coord.Stat], Mzxid
	Modified time.Time
}

func state(data []byte, stat coord.Stat) State { return State{data, stat.Mzxid, stat.Modified} }

// Get reads the value; the state is zero if there is none. One request.
func (v *Value) Get(ctx context.Context) (State, error) {
	data, stat, err := v.client.Get(ctx, v.path)
	if errors.Is(err, coord.ErrNoNode) {
		return State{}, nil
	}
	return state(data, stat), err
}

// Change replaces the value by what decide returns, once. decide is given a
// copy of the value as it is, and is called again when another client was
// faster. When it fails, it is asked once more about the latest value, and
// Change returns its error if it fails again. When it returns the value as it
// is, nothing is changed, but a missing one is made, empty.
func (v *Value) Change(ctx context.Context, decide func(now State) ([]byte, error)) error {
	if decide == nil {
		return recipe.Failure(v.client, "change", v.path, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	var undecided *verdict
	err := v.write(ctx, func(ctx context.Context) error {
		err := v.record.Change(ctx, v.guard.Txn, func(data []byte, stat coord.Stat) (next []byte, err error) {
			if next, err = decide(state(data, stat)); err != nil {
				undecided = &verdict{err}
				err = undecided
			}
			return next, err
		})
		if undecided != nil && err == error(undecided) {
			return nil
		}
		undecided = nil // it was about a value that may have changed since
		return err
	})
	if undecided != nil {
		return undecided.error
	}
	return recipe.Failure(v.client, "change", v.path, err)
}

// write calls f until its outcome is known, or cannot be known any more.
func (v *Value) write(ctx context.Context, f func(ctx context.Context) error) error {
	var unconfirmed error
	err := recipe.Retry(ctx, v.client, func(ctx context.Context) error {
		err := f(ctx)
		if errors.Is(err, coord.ErrUnconfirmed) {
			unconfirmed = err // to do it again could change it twice
			return nil
		}
		return err
	})
	return cmp.Or(unconfirmed, err)
}

// verdict is an error of the function that decides.
type verdict struct{ error }

// Set replaces the value, whatever it is: by the same, too, which is a change.
// It waits for nobody.
func (v *Value) Set(ctx context.Context, data []byte) error {
	err := v.write(ctx, func(ctx context.Context) error { return v.record.Set(ctx, v.guard.Txn, data) })
	return recipe.Failure(v.client, "set", v.path, err)
}

// TrySet replaces the value if it is still the one that was read, and fails
// with [coord.ErrBadVersion] otherwise.
func (v *Value) TrySet(ctx context.Context, read State, data []byte) error {
	return v.Change(ctx, func(now State) ([]byte, error) {
		if now.Version != read.Version {
			return nil, recipe.Failure(v.client, "set", v.path,
				fmt.Errorf("%w: it was changed at %v", coord.ErrBadVersion, now.Modified))
		}
		return data, nil
	})
}

// Remove deletes the value, whatever it is; one that does not exist stays so.
// Whoever changes it after that makes it anew. A node that belongs to a
// session, or that has children, such as the turn of a client that changes it,
// is not deleted ([coord.ErrBusy]): see [recipe.Remove].
func (v *Value) Remove(ctx context.Context) error {
	return recipe.Remove(ctx, v.client, recipe.Tree{Root: v.path, Parts: []recipe.Part{recipe.Turns}},
		recipe.Tree{Root: guards(v.path), Parts: []recipe.Part{{Nodes: "*"}}})
}

// Observe yields the value: now, and again at each change. The state is zero
// while there is none. Only the last pair has an error: ctx has ended, for
// instance. See [recipe.Observe].
func (v *Value) Observe(ctx context.Context) iter.Seq2[State, error] {
	return recipe.Observe(ctx, v.client.Synced(), v.path, func(view *coord.View) (State, error) {
		data, stat, err := v.record.Look(view, nil)
		return state(data, stat), err
	}, func(a, b State) bool { return a.Version == b.Version })
}
