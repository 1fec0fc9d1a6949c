package workload

import (
	"context"
	"path"
	"strconv"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// memberID is the ID that all members want: one at a time has it.
const memberID = "the-one"

// Join is a member for a while of the group at the key's child members. All
// want one ID, so the key is like a mutex, and members write as its holders do.
func Join(w *Worker, c *coord.Client) bool {
	g := must(group.New(c, w.Key+"/members"))
	w.items++
	data := w.Name + "-" + strconv.Itoa(w.items) // unlike that of the client's other workers
	grant, ok := acquire(w, history.Exclusive, "Join", func(ctx context.Context) (*group.Membership, error) {
		return g.Join(ctx, memberID, []byte(data))
	})
	if !ok {
		return false
	}
	m := grant.Hold
	if Chance(w.Rand, 0.3) {
		setting := w.within(m.Context(context.Background()), w.share(0, 1))
		setting.end("Set", m.Set(setting.ctx, []byte(data+", again")), coord.ErrLost, coord.ErrReleased, coord.ErrUnconfirmed)
	}
	stay(w, c, grant)
	w.release("a membership", func(ctx context.Context) error { return grant.ReleaseBy(ctx, m.Leave) })
	return true
}

// See follows the members of a group, who never go back in time.
func See(w *Worker, c *coord.Client) bool {
	g := must(group.New(c, w.Key+"/members"))
	return follow(w, "groups observed", g.Observe, func(members []group.Member) (tokens []int64) {
		for _, m := range members {
			tokens = append(tokens, m.Token)
		}
		return tokens
	})
}

// Count adds one to a shared counter.
func Count(w *Worker, c *coord.Client) bool {
	n := must(counter.New(c, w.Key))
	op, adding := w.Rec.Call(w.Name, w.Key, history.Add), w.mostlyCertain()
	w.Flush()
	sum, err := n.Add(adding.ctx, 1)
	op.End(outcome(err), err, history.Sum(sum))
	adding.end("Add", err, coord.ErrUnconfirmed)
	if err == nil {
		w.Granted(w, nil)
	}
	return err == nil
}

// Owners are the names of the owners of [Number].
var Owners = []string{"owner0", "owner1"}

// Number has a number below n of its own for a while. Some workers are owners,
// by names that several of them go by.
func Number(n int) Use {
	return func(w *Worker, c *coord.Client) bool {
		owner, opts := "", []slots.Option(nil)
		if Chance(w.Rand, 0.5) {
			owner = Owners[w.Rand.IntN(len(Owners))]
			opts = append(opts, slots.Durable(owner, upTo(w.Rand, w.Pace.Timeout/2)))
		}
		s := must(slots.New(c, w.Key, n, opts...))
		what, take := "Acquire", s.Acquire
		if w.tries() {
			what, take = "TryAcquire", s.TryAcquire
		}
		op, taking := w.Rec.Call(w.Name, w.Key, history.Number, history.Verdict(owner)), w.call()
		w.Flush()
		slot, err := take(taking.ctx)
		taking.end(what, err, coord.ErrBusy)
		if err != nil {
			op.End(history.Failed, err)
			return false
		}
		g := history.Granted(op, slot, history.Item(strconv.Itoa(slot.Number)))
		w.Granted(w, slot)
		w.Count("numbers given")
		if path.Base(slot.Node()) != strconv.Itoa(slot.Number) || slot.Number >= n {
			w.Violated("%s: the number %d of %s, below %d", w.Name, slot.Number, slot.Node(), n)
		}
		linger(w, g)
		w.release("a number", g.Release)
		return true
	}
}

// Forget does an operator's work: it forgets an owner of [Number] now and then,
// and once when the faults are over: nobody is to wait for its cooldown then.
func Forget(owner string) Use {
	return func(w *Worker, c *coord.Client) bool {
		if w.served() || !w.isCalm() && !Chance(w.Rand, 0.2) {
			return false
		}
		s, forgetting := must(slots.New(c, w.Key, 1)), w.call()
		err := s.Forget(forgetting.ctx, owner)
		forgetting.end("Forget", err, coord.ErrBusy)
		if err == nil {
			w.Count("owners forgotten")
		}
		return err == nil
	}
}
