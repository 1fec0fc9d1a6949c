package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// obtain claims an item, and up to n-1 that follow it. If one of them cannot be
// claimed, obtain claims only the first of the others. This is what the queue
// needs beyond a line and a rule: claims of names that other consumers want,
// too, made in one transaction with changes of other nodes. For each item:
//
//	create taken/<name>, ephemeral       fails if another consumer has the item
//	set    taken/<name>                  its version is 1, where a claim by Kazoo has 0
//	set    entries/<name>, version v     fails if it was delivered since it was read; counts
//
// So no two deliveries have the same pair of versions. An Ack or a Nack names
// both, in one transaction with the deletion of the claim; and the claim of a
// Receive that was given up is deleted only while the entry has its version.
func (q *Queue) obtain(ctx context.Context, first entry, n int) (items []*Item, err error) {
	d, all := &q.dispatcher, []entry{first}
	defer func() { d.report(err, all...) }()
	if all = d.trimToPacket(append(all, first.with...)); len(all) == 1 && n > 1 {
		all = d.trimToPacket(append(all, d.takeMore(ctx, n-1)...))
	}
	join := d.readAhead(ctx, n)
	defer func() {
		join()
		if err == nil {
			items, err = d.left(items) // the replies to the reads may have taken long
		}
	}()
	items, refused, err := q.claimAll(ctx, all, true)
	if err != nil && len(all) > 1 {
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err == errMissed || err == errDenied:
			d.report(err, all[refused])
			all = slices.Delete(all, refused, refused+1)
		case errors.Is(err, coord.ErrTooLarge):
			d.shrink()
		default:
			return nil, err
		}
		d.report(errNotTried, all[1:]...)
		all = all[:1]
		items, _, err = q.claimAll(ctx, all, true)
	}
	if errors.Is(err, coord.ErrTooLarge) { // with the data; their delivery is not counted
		items, _, err = q.claimAll(ctx, all, false)
	}
	return items, err
}

// claimAll claims all the items or none, by one request, and says which of them
// was refused.
func (q *Queue) claimAll(ctx context.Context, es []entry, count bool) (items []*Item, at int, err error) {
	specs := make([]coord.NameSpec, len(es))
	for i, e := range es {
		item := &Item{
			Data: e.data, Priority: priority(e.name), Deliveries: deliveries(e.stat.Version) + 1,
			queue: q, name: e.name, version: e.stat.Version, counted: count,
		}
		with := []coord.Op{coord.CheckOp(q.entry(e.name), e.stat.Version)}
		if count {
			with, item.version = q.countDelivery(e)
		}
		items = append(items, item)
		specs[i] = coord.NameSpec{
			Path: q.claim(e.name), Data: []byte(q.owner + "\n" + rand.Text()), // like no other claim's
			Recipe: q.path, With: with, Proof: []coord.Op{coord.CheckOp(q.entry(item.name), item.version)},
		}
	}
	holds, err := recipe.AcquireNames(ctx, q.client, specs...)
	var refused *coord.TxnError
	isRefused := errors.As(err, &refused)
	if isRefused {
		at = slices.IndexFunc(es, func(e entry) bool { return e.name == path.Base(refused.Path) })
	}
	switch {
	case isLostRace(err):
		return nil, at, errMissed
	case ctx.Err() == nil && errors.Is(err, coord.ErrUnconfirmed) && errors.Is(err, coord.ErrSessionExpired):
		return nil, at, errMissed // perhaps a session that is over here has it, until the servers end it
	case errors.Is(err, coord.ErrNoAuth) && isRefused && path.Dir(refused.Path) == q.at.Entries:
		return nil, at, errDenied // the entry; not our node
	case err != nil:
		return nil, at, err
	}
	for i, h := range holds {
		items[i].Held, items[i].hold = h, h
		if err = q.dispatcher.keep(items[i]); err != nil {
			for _, h := range holds {
				h.Abandon() // Receive ends with ctx, also when no server answers
			}
			for _, kept := range items[:i] {
				q.dispatcher.settled(kept, false)
			}
			return nil, i, err
		}
	}
	return items, 0, nil
}
