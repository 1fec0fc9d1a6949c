package coord

import (
	"bytes"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// registry is the claims of a client. Claims are told of changes of their
// session, and sessions keep their trust windows open for the claims that need
// it.
type registry struct {
	mu  sync.Mutex
	all []*claim // each at its index; a map takes four times the memory
}

// add keeps a claim informed, and the window open for it, until the claim is
// removed.
func (r *registry) add(cl *claim) {
	r.mu.Lock()
	cl.index = int32(len(r.all))
	r.all = append(r.all, cl)
	r.mu.Unlock()
	cl.keepOpen(true)
}

func (r *registry) remove(cl *claim) {
	r.mu.Lock()
	opens := cl.opens
	cl.opens = false
	if r.has(cl) {
		last := len(r.all) - 1
		r.all[cl.index], r.all[last].index = r.all[last], cl.index
		r.all[last] = nil
		r.all = r.all[:last]
	}
	r.mu.Unlock()
	if opens {
		cl.sess.LetClose()
	}
}

// has reports whether a claim is registered; r.mu is held.
func (r *registry) has(cl *claim) bool {
	return int(cl.index) < len(r.all) && r.all[cl.index] == cl
}

// keepOpen says whether the claim needs an open trust window: it does until it
// has to wait, when its turn may have come, and as long as it is held. A claim
// that only waits has its session write nothing.
func (cl *claim) keepOpen(needed bool) {
	r := &cl.client.claims
	r.mu.Lock()
	opens := cl.opens
	known := r.has(cl)
	if known {
		cl.opens = needed
	}
	r.mu.Unlock()
	switch {
	case !known || needed == opens:
	case needed:
		cl.sess.KeepOpen()
	default:
		cl.sess.LetClose()
	}
}

// of returns the claims of a session.
func (r *registry) of(s *session.Session) []*claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	claims := make([]*claim, 0, len(r.all))
	for _, cl := range r.all {
		if cl.sess == s {
			claims = append(claims, cl)
		}
	}
	return claims
}

// takeBack returns the claim of a name whose node is retained for the next who
// wants the name with the same data, or nil. It is returned once.
func (r *registry) takeBack(s *session.Session, path string, data []byte) *claim {
	for _, cl := range r.of(s) {
		if cl.named == nil || cl.named.Path != path || !bytes.Equal(cl.spec.Data, data) {
			continue
		}
		cl.mu.Lock()
		retained := cl.retained && cl.gone == nil && cl.removal == nil
		if retained {
			cl.retained, cl.joined = false, time.Since(cl.client.began)
		}
		cl.mu.Unlock()
		if retained {
			return cl
		}
	}
	return nil
}

// nodes returns the nodes of the claims of a session.
func (r *registry) nodes(s *session.Session) []*znode.Node {
	var nodes []*znode.Node
	for _, cl := range r.of(s) {
		nodes = append(nodes, &cl.node)
	}
	return nodes
}
