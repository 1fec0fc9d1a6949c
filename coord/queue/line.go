package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// place is a place among the consumers that have nothing to do. They stand in
// a line, and only the first two watch the queue: so a put wakes those two, and
// not all. The second is there for the case that the first does not move: it
// looks some time after a change, or when the first has gone, which is the rule.
// The others wait for a place among the two. The line is about who is woken
// only; whoever comes back for another item takes one without standing in it.
type place struct {
	hold  *coord.Hold // nil for a consumer alone, who watches without a line
	first string      // the node of the first in line, unless that is this one
}

// patience is how long the second in line leaves a change to the first, or four
// times what a listing takes, whichever is more.
const patience = 30 * time.Millisecond

// waiting is the line's directory. Dialects do not mix in a line, but they may
// in a queue.
func (q *Queue) waiting() string {
	if q.client.Dialect() == coord.Kazoo {
		return q.path + "/waiting-kazoo"
	}
	return q.path + "/waiting"
}

// stand waits for a place from which the queue is watched.
func (q *Queue) stand(ctx context.Context) (*place, error) {
	leave, err := q.head.enter(ctx)
	if err != nil {
		return nil, err
	}
	err = q.census(ctx)
	number := q.head.peers.number
	leave()
	p := &place{}
	if err != nil || number < 2 {
		return p, err
	}
	spec := coord.Spec{Line: coord.Line{Dir: q.waiting()}, Kind: "wait"}
	p.hold, err = q.client.Acquire(ctx, spec, func(ahead []coord.Contender) (wait []int, granted bool) {
		n := len(ahead)
		if n > 1 {
			return []int{n - 1, n - 2}, false // when one of these goes, at most two are left before it
		}
		p.first = ""
		if n == 1 {
			p.first = ahead[0].Name
		}
		return nil, true
	})
	return p, err
}

// leave gives the place to the next. It does not wait until that is done.
func (p *place) leave() {
	if p != nil && p.hold != nil {
		p.hold.Abandon()
	}
}

// await waits until the queue may have a candidate. It tells whether the place
// is still held.
func (q *Queue) await(ctx context.Context, p *place) (held bool, err error) {
	changed, freed, back := q.head.signals()
	if changed == nil {
		return true, nil
	}
	var over <-chan struct{}
	if p.hold != nil {
		over = p.hold.Done()
	}
	var retry <-chan time.Time
	if at, ok := q.head.retry(); ok {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-changed:
	case <-freed:
	case <-back:
	case <-retry:
		q.head.returned()
		return true, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return true, coord.Ended(ctx)
	}
	return true, q.giveWay(ctx, p)
}

// giveWay lets the first in line be the first to look.
func (q *Queue) giveWay(ctx context.Context, p *place) error {
	if p.first == "" {
		return nil
	}
	_, _, gone, err := q.client.Watch(ctx, q.waiting()+"/"+p.first)
	if errors.Is(err, coord.ErrNoNode) {
		p.first = ""
		return nil
	}
	if err != nil {
		return err
	}
	q.head.mu.Lock()
	late := time.NewTimer(max(patience, 4*q.head.took))
	q.head.mu.Unlock()
	defer late.Stop()
	select {
	case <-gone:
	case <-late.C:
	case <-ctx.Done():
		return coord.Ended(ctx)
	}
	return nil
}

// census counts the objects that consume from the queue, which have a node each
// from the moment they have to share or to wait; the gate is held. Without a
// change since the last time it costs nothing.
func (q *Queue) census(ctx context.Context) error {
	h := &q.head
	for {
		if h.self == nil || h.self.Err() != nil {
			spec := coord.Spec{Line: coord.Line{Dir: q.path + "/consumers"}, Name: q.id + "-" + rand.Text()}
			self, err := q.client.Acquire(ctx, spec, coord.Alone)
			if errors.Is(err, coord.ErrNodeExists) {
				continue // made in a session that has ended here, but not yet at the servers
			}
			if err != nil {
				return err
			}
			if q.closing.Err() != nil {
				self.Abandon()
				return ErrClosed
			}
			h.self, h.peers.changed = self, nil
		}
		if h.peers.changed != nil && !isClosed(h.peers.changed) {
			return nil
		}
		names, _, changed, err := q.client.WatchChildren(ctx, q.path+"/consumers")
		if errors.Is(err, coord.ErrNoNode) {
			h.self.Abandon() // somebody deleted the own node, and the directory with it
			h.self = nil
			continue
		}
		if err != nil {
			return err
		}
		own := h.self.Node()[len(q.path+"/consumers/"):]
		// A node of a former session, which the servers have not ended yet, is no other consumer.
		names = slices.DeleteFunc(names, func(name string) bool { return name != own && strings.HasPrefix(name, q.id) })
		slices.Sort(names)
		rank, found := slices.BinarySearch(names, own)
		h.mu.Lock()
		h.peers = peers{rank: rank, number: max(1, len(names)), changed: changed}
		if !found {
			h.peers.number = len(names) + 1 // a server that lags behind
		}
		h.mu.Unlock()
		return nil
	}
}
