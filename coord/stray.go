package coord

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// doubtLasts is for how many session time-outs a create that was found not to
// have been carried out stays in doubt. A server that is cut off keeps what it
// has for its leader until it notices, after syncLimit ticks; time-outs are two
// ticks at least.
const doubtLasts = 10

// doubt is a create that was found not to have been carried out, and may be yet:
// a server that was cut off from its leader passes on, when it is back, what
// clients had sent it, and right behind it their attempts to return to it, which
// make the old requests pass as their session's. So a node may come to be that
// nobody waits for and that all behind it in the line wait for. As the session
// has moved then, its connection ends at the next write: nodes of that kind,
// strays, are looked for whenever the session is connected again.
type doubt struct {
	prefix string      // what the names of the claim's nodes begin with
	made   bool        // no further attempt is under way
	over   *time.Timer // ends the doubt
}

// doubts notes that a create may be carried out late. The session probes as long
// as there is a doubt.
func (cl *Claim) doubts(prefix string) {
	c := cl.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubted[cl.sess] == nil {
		c.doubted[cl.sess] = map[*Claim]*doubt{}
	}
	if c.doubted[cl.sess][cl] != nil {
		return
	}
	c.doubted[cl.sess][cl] = &doubt{
		prefix: prefix, over: time.AfterFunc(doubtLasts*cl.sess.Timeout(), func() { c.undoubted(cl) }),
	}
	cl.sess.AddClaim()
}

// doubts notes that a node which has been deleted may be made late.
func (c *Client) doubts(s *session.Session, node string) {
	gone := &Claim{client: c, sess: s, dir: path.Dir(node), removal: &removal{done: make(chan struct{})}}
	close(gone.removal.done)
	gone.setNode(node, 0)
	gone.doubts(gone.name)
	gone.attempted()
}

// undoubted ends the doubt about a claim's create.
func (c *Client) undoubted(cl *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doubted[cl.sess][cl]
	if d == nil {
		return
	}
	d.over.Stop()
	delete(c.doubted[cl.sess], cl)
	if len(c.doubted[cl.sess]) == 0 {
		delete(c.doubted, cl.sess)
	}
	cl.sess.RemoveClaim()
}

// trustAll ends all doubts of a session, which is over.
func (c *Client) trustAll(s *session.Session) {
	for cl := range c.doubtedOf(s) {
		c.undoubted(cl)
	}
}

func (c *Client) doubtedOf(s *session.Session) map[*Claim]doubt {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[*Claim]doubt{}
	for cl, d := range c.doubted[s] {
		all[cl] = *d
	}
	return all
}

// attempted tells that no further attempt to make the claim's node is under way.
// What was carried out late until now is looked for.
func (cl *Claim) attempted() {
	c := cl.client
	c.mu.Lock()
	d := c.doubted[cl.sess][cl]
	if d != nil {
		d.made = true
	}
	c.mu.Unlock()
	if d != nil {
		c.removeStrays(cl.sess)
	}
}

// removeStrays looks for strays in the background, and deletes them. It gives up
// when the connection fails: it begins anew with the next one.
func (c *Client) removeStrays(s *session.Session) {
	if len(c.doubtedOf(s)) == 0 {
		return
	}
	_ = s.Go(func() { // refused when the session is over, and the nodes with it
		ctx := context.Background() // ends with the session
		for s.Flush(ctx) != nil {
			if s.Err() != nil || !s.Connected() {
				return
			}
			c.pause(ctx)
		}
		listed := map[string][]string{}
		for cl, d := range c.doubtedOf(s) {
			if !d.made {
				continue // it finds out by itself, and comes back to this
			}
			if _, known := listed[cl.dir]; !known {
				names, err := s.Children(ctx, cl.dir)
				if err != nil && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrNoAuth) {
					return
				}
				listed[cl.dir] = names
			}
			for _, name := range listed[cl.dir] {
				if cl.isOwn(name, d.prefix) && cl.isStray(ctx, name) {
					cl.removeStray(name)
				}
			}
		}
	})
}

// isStray tells whether a node of the claim's name is one that nobody knows of.
func (cl *Claim) isStray(ctx context.Context, name string) bool {
	if name == cl.name && !cl.isRemoved() {
		return false
	}
	for _, other := range cl.client.claimsOf(cl.sess) {
		if other != cl && other.dir == cl.dir && cl.spec.Name != "" && other.spec.Name == cl.spec.Name {
			return false // another of this client wants the same name, and comes to be as this one did not
		}
	}
	node, err := cl.sess.Exists(ctx, join(cl.dir, name))
	return err == nil && node.Exists && node.Stat.Owner == cl.sess.ID()
}

// removeStray deletes a stray as the node of a claim that was never told of.
func (cl *Claim) removeStray(name string) {
	stray := &Claim{client: cl.client, sess: cl.sess, spec: cl.spec, dir: cl.dir, guid: cl.guid}
	stray.setNode(join(cl.dir, name), 0)
	if err := stray.removeOnce(); err != nil {
		return // the next connection, or the session's end
	}
	cl.client.opts.log.Warn("a server made an own node long after it was asked to; deleted", "node", stray.Node(), "session", sessionName(cl.sess.ID()))
	cl.client.emit(Event{Kind: StrayRemoved, Session: cl.sess.ID(), Path: stray.Node()})
}
