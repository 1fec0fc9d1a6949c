package lock

import (
	"context"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// watch looks out for others that wait for the hold, and for a request to give
// it up; q.mu is held.
func (q *local) watch() {
	if q.revoked != nil {
		return
	}
	h, revoked := q.hold, q.hold.Revoked()
	q.revoked = revoked
	go func() {
		others := false
		err := q.mutex.client.Wait(h.Context(context.Background()), func(v *coord.View) (bool, error) {
			v.RecheckOn(revoked)
			if !others {
				names, _, err := v.Children(q.mutex.Path())
				if err != nil {
					return false, err
				}
				others = q.contended(names, path.Base(h.Node()))
			}
			q.learn(h, others)
			return isClosed(revoked), nil
		})
		if err != nil { // nothing would report others any more
			q.learn(h, true)
		}
	}()
}

// learn notes what a look at the line has shown.
func (q *local) learn(h *coord.Hold, others bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hold == h {
		q.known, q.others = true, others
		q.advance()
	}
}

// contended reports whether a node besides ours is a contender's.
func (q *local) contended(names []string, own string) bool {
	line, d := q.mutex.spec.Line, q.mutex.client.Info().Dialect
	return len(line.Foreign(names, d)) > 0 ||
		slices.ContainsFunc(line.Order(names, d), func(c coord.Contender) bool { return c.Name != own })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
