package queue

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
)

// claimItem claims an item for its receiver. This is what the queue needs
// beyond a line and a rule: a claim of a name that others want, too, made along
// with a change of another node, in one transaction.
//
//	create taken/<name>, ephemeral       fails if another consumer has the item
//	set    taken/<name>                  its version is 1, where that of a claim by Kazoo is 0
//	set    entries/<name>, version v     fails if it was delivered since it was read; counts
//
// So no two deliveries have the same pair of versions. An Ack or a Nack names
// both, in one transaction with the deletion of the claim; and the claim of a
// Receive that was given up is deleted only while the entry has its version.
func (q *Queue) claimItem(ctx context.Context, e entry) (*Item, error) {
	item := &Item{
		Data: e.data, Priority: priority(e.name), Deliveries: int(e.stat.Version) + 1,
		queue: q, name: e.name, version: e.stat.Version + 1,
	}
	claim, err := q.join(ctx, item, coord.SetOp(q.entry(e.name), e.data, e.stat.Version))
	if errors.Is(err, coord.ErrTooLarge) { // with the data; their delivery is not counted
		item.version = e.stat.Version
		claim, err = q.join(ctx, item, coord.CheckOp(q.entry(e.name), e.stat.Version))
	}
	var refused *coord.TxnError
	switch {
	case isLostRace(err):
		return nil, errMissed
	case ctx.Err() == nil && errors.Is(err, coord.ErrUnconfirmed) && errors.Is(err, coord.ErrSessionExpired):
		return nil, errMissed // perhaps a session that is over here has it, until the servers end it
	case errors.Is(err, coord.ErrNoAuth) && errors.As(err, &refused):
		return nil, errDenied // the entry; not the own node
	case err != nil:
		return nil, err
	}
	item.hold, err = claim.Turn(ctx, nil)
	if err != nil {
		claim.Abandon() // Receive ends with ctx, also when no server answers
		return nil, err
	}
	return item, q.dispatcher.keep(item)
}

func (q *Queue) join(ctx context.Context, item *Item, with coord.Op) (*coord.Claim, error) {
	return q.client.JoinName(ctx, coord.NameSpec{
		Path: q.taken() + "/" + item.name, Data: []byte(q.owner + "\n" + rand.Text()), // like no other claim's
		With: []coord.Op{with}, Proof: []coord.Op{coord.CheckOp(q.entry(item.name), item.version)},
	})
}
