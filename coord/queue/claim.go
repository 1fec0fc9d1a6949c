package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/dispatch"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// delivery is a Receive under way.
type delivery struct {
	q     *Queue
	items []*Item
}

// Claim claims all these items or none. This is what the queue needs beyond a
// line and a rule: claims of names that other consumers want, too, made in one
// transaction with changes of other nodes. For each item:
//
//	create taken/<name>, ephemeral       fails if another consumer has the item
//	set    taken/<name>                  its version is 1, where a claim by Kazoo has 0
//	set    entries/<name>, version v     fails if it was delivered since it was read; counts
//
// So no two deliveries have the same pair of versions. An Ack or a Nack names
// both, in one transaction with the deletion of the claim; and the claim of a
// Receive that was given up is deleted only while the entry has its version.
func (d *delivery) Claim(ctx context.Context, es []store.Entry) (refused int, err error) {
	d.items, refused, err = d.q.claimAll(ctx, es, true)
	if len(es) == 1 && errors.Is(err, coord.ErrTooLarge) { // with the data; its delivery is not counted
		d.items, refused, err = d.q.claimAll(ctx, es, false)
	}
	return refused, err
}

// Confirm fails if no claim is left.
func (d *delivery) Confirm() (err error) {
	d.items, err = d.q.hand.left(d.items)
	return err
}

func (d *delivery) Bury(ctx context.Context, e store.Entry) error { return d.q.deadLetter(ctx, e) }

// claimAll claims all the items or none, by one request, and says which of them
// was refused.
func (q *Queue) claimAll(ctx context.Context, es []store.Entry, count bool) (items []*Item, at int, err error) {
	specs := make([]coord.NameSpec, len(es))
	for i, e := range es {
		item := &Item{
			Data: e.Data, Priority: store.Priority(e.Name), Deliveries: e.Deliveries() + 1,
			queue: q, name: e.Name, version: e.Stat.Version, counted: count,
		}
		with := []coord.Op{coord.CheckOp(q.at.Entry(e.Name), e.Stat.Version)}
		if count {
			with, item.version = q.countDelivery(e)
		}
		items = append(items, item)
		specs[i] = coord.NameSpec{
			Path: q.at.Claim(e.Name), Data: []byte(q.owner + "\n" + rand.Text()), // like no other claim's
			Recipe: q.path, With: with, Proof: []coord.Op{coord.CheckOp(q.at.Entry(item.name), item.version)},
		}
	}
	holds, err := recipe.AcquireNames(ctx, q.client, specs...)
	var refused *coord.TxnError
	isRefused := errors.As(err, &refused)
	if isRefused {
		at = slices.IndexFunc(es, func(e store.Entry) bool { return e.Name == path.Base(refused.Path) })
	}
	switch {
	case isLostRace(err):
		return nil, at, dispatch.ErrMissed
	case ctx.Err() == nil && errors.Is(err, coord.ErrUnconfirmed) && errors.Is(err, coord.ErrSessionExpired):
		return nil, at, dispatch.ErrMissed // perhaps a session that is over here has it, until the servers end it
	case errors.Is(err, coord.ErrNoAuth) && isRefused && path.Dir(refused.Path) == q.at.Entries:
		return nil, at, dispatch.ErrDenied // the entry; not our node
	case err != nil:
		return nil, at, err
	}
	for i, h := range holds {
		items[i].Held, items[i].hold = h, h
		if err = q.hand.keep(items[i]); err != nil {
			for _, h := range holds {
				h.Abandon() // Receive ends with ctx, also when no server answers
			}
			for _, kept := range items[:i] {
				q.settled(kept, false)
			}
			return nil, i, err
		}
	}
	return items, 0, nil
}

// countDelivery returns the operations that count one more delivery in the
// entry's version, and the version since then. They leave the data as they are.
func (q *Queue) countDelivery(e store.Entry) (ops []coord.Op, version int32) {
	at, version := q.at.Entry(e.Name), e.Stat.Version
	if version%2 == 1 { // its last consumer ended without an answer
		ops = append(ops, coord.SetOp(at, []byte{}, version))
		version++
	}
	return append(ops, coord.SetOp(at, e.Data, version)), version + 1
}
