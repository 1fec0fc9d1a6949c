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

// record is what a dead letter's second node has, which is made in the same
// transaction as the letter: both have one czxid. The letter itself is an item
// like any other, which Kazoo and earlier versions can read.
type deathRecord struct {
	Item       string `json:"item"`
	Deliveries int    `json:"deliveries"`
	By         string `json:"by"`
	Reason     string `json:"reason"`
}

func (l nodes) dead() nodes { return nodesOf(l.client, l.at.Dead) }

// Bury moves an item that no consumer has to the dead letters, as [Item.Bury]
// does. name is its node's ([Peeked.Name]). [coord.ErrBusy] when a consumer has
// the item, [coord.ErrNoNode] when the item is gone. Five requests.
func (q *Queue) Bury(ctx context.Context, name, reason string) error {
	err := checkReason(reason)
	if err == nil {
		err = q.withFree(ctx, name, func(e entry) error {
			return q.bury(ctx, e, deathRecord{name, deliveries(e.stat.Version), q.owner, reason}, func(made ...coord.Op) error {
				return q.remove(ctx, q.nodes, e, made...)
			})
		})
	}
	return q.explain("bury", err)
}

// Drop removes an item that no consumer has, for good. It fails as [Queue.Bury]
// does. Three requests.
func (q *Queue) Drop(ctx context.Context, name string) error {
	return q.explain("drop", q.withFree(ctx, name, func(e entry) error { return q.remove(ctx, q.nodes, e) }))
}

func checkReason(reason string) error {
	if len(reason) > MaxReason {
		return fmt.Errorf("%w: a reason of %d bytes; %d at most", coord.ErrInvalid, len(reason), MaxReason)
	}
	return nil
}

// withFree reads an item and calls remove with it, again if the item has
// changed meanwhile. It fails with [coord.ErrBusy] if a consumer has the item.
func (l nodes) withFree(ctx context.Context, name string, remove func(e entry) error) error {
	if !isEntry(name) {
		return fmt.Errorf("%w: %q is no item's name", coord.ErrInvalid, name)
	}
	for {
		e, err := l.get(ctx, name)
		if err == nil {
			e.acknowledged, err = l.acknowledgedBy(ctx, name)
		}
		if err == nil {
			err = remove(e)
		}
		var refused *coord.TxnError
		if errors.As(err, &refused) && refused.Path == e.acknowledged { // swept meanwhile
			continue
		}
		switch {
		case errors.Is(err, coord.ErrUnconfirmed) || !errors.Is(err, coord.ErrBadVersion) && !errors.Is(err, coord.ErrNodeExists):
			return err
		case errors.Is(err, coord.ErrNodeExists):
			return fmt.Errorf("%w: a consumer has %s", coord.ErrBusy, name)
		}
	}
}

// remove removes an item from this queue, or its dead letters, and carries out
// further operations. The transaction makes the item's claim, to be sure that
// nobody has it.
func (q *Queue) remove(ctx context.Context, from nodes, e entry, ops ...coord.Op) error {
	all := append([]coord.Op{
		coord.CreateOp(from.claim(e.name), nil),
		coord.DeleteOp(from.claim(e.name), -1),
		coord.DeleteOp(from.entry(e.name), e.stat.Version),
	}, ops...)
	if e.acknowledged != "" {
		all = append(all, coord.DeleteOp(e.acknowledged, -1))
	}
	_, err := q.sends.Txn(ctx, all...)
	return err
}

// bury removes an item by a transaction that makes its dead letter.
func (q *Queue) bury(ctx context.Context, e entry, r deathRecord, remove func(made ...coord.Op) error) error {
	dead := q.dead()
	about, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = dead.moveInto(ctx, func() error {
		return remove(
			coord.AppendOp(dead.entry(e.name[:dash+1]), e.data),
			coord.AppendOp(dead.at.Records+"/", about))
	}, dead.at.Records)
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
		if !errors.As(err, &refused) || !slices.Contains([]string{l.at.Entries, l.at.Records}, path.Dir(refused.Path)) {
			return err
		}
		switch {
		case errors.Is(err, coord.ErrNoNode):
			if err := l.ensure(ctx, others...); err != nil {
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
// unless another consumer has it, and fails with errMissed. One too large to be
// moved is delivered again.
func (q *Queue) deadLetter(ctx context.Context, e entry) error {
	n := deliveries(e.stat.Version)
	reason := fmt.Sprintf("delivered %d times, and its last consumer ended without an answer", n)
	err := q.bury(ctx, e, deathRecord{e.name, n, q.owner, reason}, func(made ...coord.Op) error {
		return q.remove(ctx, q.nodes, e, made...)
	})
	switch {
	case errors.Is(err, coord.ErrTooLarge):
		return nil
	case err == nil, isLostRace(err), errors.Is(err, coord.ErrUnconfirmed) && ctx.Err() == nil:
		return errMissed // whoever tries the item next finds out
	}
	return err
}

// DeadLetters returns the items of the queue at PATH/dead, in order, including
// items that a consumer of that queue has. Three requests, and up to three for
// each item, all together.
//
// With Nack and Item.Bury, By is the consumer that had the item last. An item
// whose last consumer died is moved by the one that finds it next, and By is
// that one: the claim, which named the dead consumer, went with its session.
func (q *Queue) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	dead := q.dead()
	// The letters first: one that comes meanwhile has its record by then.
	letters, err := q.readAll(ctx, dead.at.Entries, isEntry, q.client.Get)
	var records, acknowledged []entry
	if err == nil {
		records, err = q.readAll(ctx, dead.at.Records, anyName, q.client.Get)
	}
	if err == nil {
		acknowledged, err = q.readAll(ctx, dead.at.Acknowledged, anyName, q.client.Get)
	}
	var dir coord.Stat
	if err == nil && len(acknowledged) > 0 {
		dir, _, err = q.client.Exists(ctx, dead.at.Entries)
	}
	if err != nil {
		return nil, q.explain("list the dead letters", err)
	}
	about := map[int64]deathRecord{} // by czxid
	for _, e := range records {
		var r deathRecord
		if json.Unmarshal(e.data, &r) == nil {
			about[e.stat.Czxid] = r
		}
	}
	nodes := map[string]entry{}
	for _, e := range acknowledged {
		nodes[dead.at.Acknowledged+"/"+e.name] = e
	}
	all := make([]DeadLetter, len(letters))
	for i, e := range letters {
		r, seen := about[e.stat.Czxid], nodes[dead.acknowledgement(e.name, dir)]
		all[i] = DeadLetter{
			Name: e.name, Data: e.data, Priority: priority(e.name), Died: e.stat.Created,
			Deliveries: r.Deliveries, Item: r.Item, By: r.By, Reason: r.Reason,
			Acknowledged: seen.stat.Created, AcknowledgedBy: string(seen.data),
		}
	}
	return all, nil
}

// sweep deletes the records of letters that are gone, and what acknowledges
// them, when there are more records than letters. Failed deletions are left to
// the next sweep.
func (q *Queue) sweep(ctx context.Context) {
	dead := q.dead()
	var records, letters coord.Stat
	err := concurrently(
		func() (err error) { records, _, err = q.client.Exists(ctx, dead.at.Records); return err },
		func() (err error) { letters, _, err = q.client.Exists(ctx, dead.at.Entries); return err },
	)
	if err != nil || records.Children <= letters.Children {
		return
	}
	// The records first: one whose letter is not there then has outlived it.
	all, err := q.readAll(ctx, dead.at.Records, anyName, q.stat)
	if err != nil {
		return
	}
	left, err := q.readAll(ctx, dead.at.Entries, isEntry, q.stat)
	if err != nil {
		return
	}
	_, orphans, err := dead.acknowledged(ctx)
	if err != nil {
		return
	}
	var deletes []func() error
	for _, node := range orphans {
		deletes = append(deletes, func() error { return q.client.Delete(ctx, dead.at.Acknowledged+"/"+node, -1) })
	}
	for _, r := range all {
		if !slices.ContainsFunc(left, func(e entry) bool { return e.stat.Czxid == r.stat.Czxid }) {
			deletes = append(deletes, func() error { return q.client.Delete(ctx, dead.at.Records+"/"+r.name, -1) })
		}
	}
	_ = concurrently(deletes...)
}
