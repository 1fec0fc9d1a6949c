package fence

import (
	"context"
	"sync"
)

// gate admits the requests with the newest token of a name, once all with older
// tokens have left.
type gate struct {
	mu     sync.Mutex
	newest map[string]*party // by name, while any are inside or wait
}

// party is the requests with one token of a name.
type party struct {
	token   int64
	alone   chan struct{}   // closed when all parties before have left
	over    context.Context // ends with ErrStale when a newer token comes
	cancel  context.CancelCauseFunc
	members int    // requests, and 1 for the parties before, if any are inside
	next    *party // the party with the next newer token
}

func newParty(token int64) *party {
	p := &party{token: token, alone: make(chan struct{})}
	p.over, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// enter makes the caller a member of the party with the token. It fails with
// [ErrStale] if a newer one is there.
func (g *gate) enter(name string, token int64) (*party, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.newest[name]
	switch {
	case last == nil:
		last = newParty(token)
		close(last.alone)
		g.newest[name] = last
	case token < last.token:
		return nil, accepts(name, last.token, token)
	case token > last.token:
		p := newParty(token)
		p.members = 1
		last.next = p
		last.cancel(accepts(name, token, last.token))
		last = p
		g.newest[name] = p
	}
	last.members++
	return last, nil
}

// leave ends a membership. The last member lets the next party in.
func (g *gate) leave(name string, p *party) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ; p != nil; p = p.next {
		p.members--
		if p.members > 0 {
			return
		}
		p.cancel(nil)
		if p.next == nil {
			delete(g.newest, name)
			return
		}
		close(p.next.alone)
	}
}
