package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/dispatch"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// MaxReason is the most bytes that the reason of a dead letter has.
const MaxReason = 1000

// DeadLetter is an item of the queue at PATH/dead, with its history.
// Deliveries, Item, By and Reason are 0 and "" for one that another program or
// an earlier version of this package put there, or that was removed while they
// were read. Acknowledged and AcknowledgedBy are zero until
// [Queue.Acknowledge].
type DeadLetter struct {
	Name       string // of its node among the dead letters
	Data       []byte
	Priority   int
	Died       time.Time // by the server's clock
	Deliveries int       // before it died
	Item       string    // the name of its node in the queue
	By         string    // the client that moved it ([coord.Info.Identity]): see [Queue.DeadLetters]
	Reason     string

	Acknowledged   time.Time // by the server's clock
	AcknowledgedBy string    // the client that did ([coord.Info.Identity])
}

// deathRecord is what a dead letter's second node has. One transaction makes
// both nodes, so they have one czxid. The letter itself is an item like any
// other, which Kazoo and earlier versions can read.
type deathRecord struct {
	Item       string `json:"item"`
	Deliveries int    `json:"deliveries"`
	By         string `json:"by"`
	Reason     string `json:"reason"`
}

func (l nodes) dead() nodes { return nodesOf(l.Client, l.Dead) }

// Bury moves an item that no consumer has to the dead letters, as [Item.Bury]
// does. name is its node's ([Peeked.Name]). [coord.ErrBusy] when a consumer has
// the item, [coord.ErrNoNode] when the item is gone. Five requests.
func (q *Queue) Bury(ctx context.Context, name, reason string) error {
	err := checkReason(reason)
	if err == nil {
		err = q.at.withFree(ctx, name, func(e store.Entry) error {
			return q.bury(ctx, e, deathRecord{name, e.Deliveries(), q.owner, reason}, func(made ...coord.Op) error {
				return q.remove(ctx, q.at, e, made...)
			})
		})
	}
	return q.explain("bury", err)
}

// Drop removes an item that no consumer has, for good. It fails as [Queue.Bury]
// does. Three requests.
func (q *Queue) Drop(ctx context.Context, name string) error {
	return q.explain("drop", q.at.withFree(ctx, name, func(e store.Entry) error { return q.remove(ctx, q.at, e) }))
}

func checkReason(reason string) error {
	if len(reason) > MaxReason {
		return fmt.Errorf("%w: a reason of %d bytes; %d at most", coord.ErrInvalid, len(reason), MaxReason)
	}
	return nil
}

// withFree reads an item and calls remove with it, again if the item has
// changed meanwhile. It fails with [coord.ErrBusy] if a consumer has the item.
func (l nodes) withFree(ctx context.Context, name string, remove func(e store.Entry) error) error {
	if !store.IsItem(name) {
		return fmt.Errorf("%w: %q is no item's name", coord.ErrInvalid, name)
	}
	for {
		e, err := l.Get(ctx, name)
		if err == nil {
			e.Acknowledged, err = l.acknowledgedBy(ctx, name)
		}
		if err == nil {
			err = remove(e)
		}
		var refused *coord.TxnError
		if errors.As(err, &refused) && refused.Path == e.Acknowledged { // swept meanwhile
			continue
		}
		switch {
		case errors.Is(err, coord.ErrUnconfirmed) ||
			!errors.Is(err, coord.ErrBadVersion) && !errors.Is(err, coord.ErrNodeExists):
			return err
		case errors.Is(err, coord.ErrNodeExists):
			return fmt.Errorf("%w: a consumer has %s", coord.ErrBusy, name)
		}
	}
}

// remove removes an item from this queue, or its dead letters, and carries out
// further operations. The transaction makes the item's claim, to be sure that
// nobody has it.
func (q *Queue) remove(ctx context.Context, from nodes, e store.Entry, ops ...coord.Op) error {
	all := append([]coord.Op{
		coord.CreateOp(from.Claim(e.Name), nil),
		coord.DeleteOp(from.Claim(e.Name), -1),
		coord.DeleteOp(from.Entry(e.Name), e.Stat.Version),
	}, ops...)
	if e.Acknowledged != "" {
		all = append(all, coord.DeleteOp(e.Acknowledged, -1))
	}
	_, err := q.sends.Txn(ctx, all...)
	return err
}

// bury removes an item by a transaction that makes its dead letter.
func (q *Queue) bury(ctx context.Context, e store.Entry, r deathRecord, remove func(made ...coord.Op) error) error {
	dead := q.at.dead()
	about, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = dead.moveInto(ctx, func() error {
		return remove(
			coord.AppendOp(dead.Entry(store.Prefix(store.Priority(e.Name))), e.Data),
			coord.AppendOp(dead.Records+"/", about))
	}, dead.Records)
	if err == nil {
		q.sweep(ctx)
	}
	return err
}

// moveInto carries out a transaction that appends nodes to this queue, whose
// directories it makes where they are missing.
func (l nodes) moveInto(ctx context.Context, move func() error, others ...string) error {
	for {
		err := move()
		var refused *coord.TxnError
		if !errors.As(err, &refused) || !slices.Contains([]string{l.Entries, l.Records}, path.Dir(refused.Path)) {
			return err
		}
		switch {
		case errors.Is(err, coord.ErrNoNode):
			if err := l.Ensure(ctx, others...); err != nil {
				return err
			}
		case errors.Is(err, coord.ErrNodeExists): // the counter sticks
			return fmt.Errorf("%w: %s", coord.ErrSequenceExhausted, path.Dir(refused.Path))
		default:
			return err
		}
	}
}

// deadLetter moves an item that was delivered too often to the dead letters,
// unless another consumer has it, and fails with [dispatch.ErrMissed]. One too
// large to be moved is delivered again.
func (q *Queue) deadLetter(ctx context.Context, e store.Entry) error {
	n := e.Deliveries()
	reason := fmt.Sprintf("delivered %d times, and its last consumer ended without an answer", n)
	err := q.bury(ctx, e, deathRecord{e.Name, n, q.owner, reason}, func(made ...coord.Op) error {
		return q.remove(ctx, q.at, e, made...)
	})
	switch {
	case errors.Is(err, coord.ErrTooLarge):
		return nil
	case err == nil, isLostRace(err), errors.Is(err, coord.ErrUnconfirmed) && ctx.Err() == nil:
		return dispatch.ErrMissed // whoever tries the item next finds out
	}
	return err
}

// DeadLetters returns the items of the queue at PATH/dead, in order, including
// items that a consumer of that queue has. Three requests, and up to three for
// each item, all together.
//
// With Nack and Item.Bury, By is the consumer that had the item last. An item
// whose last consumer died is moved by the consumer that finds it next, which
// By names then: the dead consumer's claim, with its name, went with its
// session.
func (q *Queue) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	dead := q.at.dead()
	// The letters first: one that comes meanwhile has its record by then.
	letters, err := q.at.readAll(ctx, dead.Entries, store.IsItem, q.client.Get)
	var records, acknowledged []store.Entry
	if err == nil {
		records, err = q.at.readAll(ctx, dead.Records, anyName, q.client.Get)
	}
	if err == nil {
		acknowledged, err = q.at.readAll(ctx, dead.Acknowledged, anyName, q.client.Get)
	}
	var dir coord.Stat
	if err == nil && len(acknowledged) > 0 {
		dir, _, err = q.client.Exists(ctx, dead.Entries)
	}
	if err != nil {
		return nil, q.explain("list the dead letters", err)
	}
	about := map[int64]deathRecord{} // by czxid
	for _, e := range records {
		var r deathRecord
		if json.Unmarshal(e.Data, &r) == nil {
			about[e.Stat.Czxid] = r
		}
	}
	nodes := map[string]store.Entry{}
	for _, e := range acknowledged {
		nodes[dead.Acknowledged+"/"+e.Name] = e
	}
	all := make([]DeadLetter, len(letters))
	for i, e := range letters {
		r, seen := about[e.Stat.Czxid], nodes[dead.acknowledgement(e.Name, dir)]
		all[i] = DeadLetter{
			Name: e.Name, Data: e.Data, Priority: store.Priority(e.Name), Died: e.Stat.Created,
			Deliveries: r.Deliveries, Item: r.Item, By: r.By, Reason: r.Reason,
			Acknowledged: seen.Stat.Created, AcknowledgedBy: string(seen.Data),
		}
	}
	return all, nil
}

// sweep deletes the records of letters that are gone, and what acknowledges
// them, when there are more records than letters. Failed deletions are left to
// the next sweep.
func (q *Queue) sweep(ctx context.Context) {
	dead := q.at.dead()
	var records, letters coord.Stat
	err := store.Concurrently(
		func() (err error) { records, _, err = q.client.Exists(ctx, dead.Records); return err },
		func() (err error) { letters, _, err = q.client.Exists(ctx, dead.Entries); return err },
	)
	if err != nil || records.Children <= letters.Children {
		return
	}
	// The records first: one whose letter is not there then has outlived it.
	all, err := q.at.readAll(ctx, dead.Records, anyName, q.at.stat)
	if err != nil {
		return
	}
	left, err := q.at.readAll(ctx, dead.Entries, store.IsItem, q.at.stat)
	if err != nil {
		return
	}
	_, orphans, err := dead.acknowledged(ctx)
	if err != nil {
		return
	}
	var deletes []func() error
	for _, node := range orphans {
		deletes = append(deletes, func() error { return q.client.Delete(ctx, dead.Acknowledged+"/"+node, -1) })
	}
	for _, r := range all {
		if !slices.ContainsFunc(left, func(e store.Entry) bool { return e.Stat.Czxid == r.Stat.Czxid }) {
			deletes = append(deletes, func() error { return q.client.Delete(ctx, dead.Records+"/"+r.Name, -1) })
		}
	}
	_ = store.Concurrently(deletes...)
}
