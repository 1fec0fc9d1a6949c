package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// next hands out an item to try. It fails with [ErrEmpty] if there is none;
// then v has read what can change that.
func (d *Dispatcher) next(ctx context.Context, v *coord.View) (e store.Entry, err error) {
	open, err := d.enter(ctx)
	if err != nil {
		return e, err
	}
	defer open()
	e = d.pick(false)
	for free := 1; e.Name == "" && free > 0; { // unless the listing was discarded immediately
		if free, err = d.list(ctx, v); err != nil {
			return e, err
		}
		e = d.pick(true)
	}
	if e.Name == "" {
		err = d.empty()
	}
	return e, err
}

func (d *Dispatcher) enter(ctx context.Context) (open func(), err error) {
	select {
	case d.gate <- struct{}{}:
		return func() { <-d.gate }, nil
	case <-ctx.Done():
		return nil, recipe.Ended(ctx)
	}
}

// list looks at the queue; the gate is held. It asks for the claims and the
// other consumers only if they are needed to find the free items and their
// number: a consumer alone knows its own claims.
func (d *Dispatcher) list(ctx context.Context, v *coord.View) (free int, err error) {
	d.mu.Lock()
	contended := d.contended > 0
	v.RecheckOn(d.returned)
	d.mu.Unlock()
	begun := time.Now()
	var entries, claims dir
	listClaims := func() (err error) { claims, err = d.children(ctx, v, d.at.Taken); return err }
	parts := []func() error{func() (err error) { entries, err = d.children(ctx, v, d.at.Entries); return err }}
	if contended {
		parts = append(parts, listClaims, func() error { return d.countConsumers(ctx) })
	}
	if err := store.Concurrently(parts...); err != nil {
		return 0, err
	}
	free = d.show(entries, claims, time.Since(begun))
	if free > 0 || contended || len(entries.names) == 0 {
		return free, nil
	}
	err = listClaims()
	return d.show(entries, claims, time.Since(begun)), err
}

// dir is a directory as it was listed.
type dir struct {
	names   []string
	version int64 // the change that made the list what it was; 0: not listed
}

// children lists one of the queue's directories, which it makes if need be.
func (d *Dispatcher) children(ctx context.Context, v *coord.View, path string) (dir, error) {
	for {
		names, stat, err := v.Children(path)
		if !errors.Is(err, coord.ErrNoNode) {
			return dir{names, stat.Pzxid}, err
		}
		if err := d.at.Ensure(ctx); err != nil {
			return dir{}, err
		}
	}
}

// show makes candidates of the entries that nobody has, as far as that is
// known, and returns how many there are. If nothing has changed, the candidates
// stay as they are.
func (d *Dispatcher) show(entries, claims dir, took time.Duration) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	version := [2]int64{entries.version, claims.version}
	d.misses = 0
	if version == d.version && len(d.names) > 0 {
		return len(d.names)
	}
	if version != d.version {
		d.version, d.took, d.credit = version, took, max(0, d.credit-1)
	}
	for _, name := range claims.names {
		if _, out := d.out[name]; !out && !d.has(name) {
			d.contended = contendedFor
		}
	}
	d.names = slices.DeleteFunc(store.Unclaimed(entries.names, claims.names), func(name string) bool {
		_, out := d.out[name]
		return out || claims.version == 0 && d.has(name) // if claims were listed, one that is not there has ended
	})
	d.length = len(d.names)
	return d.length
}

// empty returns why there is no candidate.
func (d *Dispatcher) empty() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := ErrEmpty
	for _, why := range d.out {
		switch why {
		case ErrDenied:
			return ErrAllDenied
		case errLater:
			err = errAllLater
		}
	}
	return err
}
