package coord

import (
	"context"
	"errors"
	"maps"
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
	idle   bool        // no further attempt is under way
	due    bool        // strays are to be looked for
	over   *time.Timer // ends the doubt
}

// doubted are the doubts of one session.
type doubted struct {
	doubts    map[*Claim]*doubt
	searching bool // a goroutine looks for strays until none are due
}

// doubts notes that a create may be carried out late. The session probes as long
// as there is a doubt.
func (cl *Claim) doubts(prefix string) {
	c := cl.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl.sess.Err() != nil {
		return
	}
	all := c.doubted[cl.sess]
	if all == nil {
		all = &doubted{doubts: map[*Claim]*doubt{}}
		c.doubted[cl.sess] = all
	}
	if d := all.doubts[cl]; d != nil {
		d.over.Stop() // one that is too late for that finds another doubt
	} else {
		cl.sess.AddClaim()
	}
	d := &doubt{prefix: prefix}
	d.over = time.AfterFunc(doubtLasts*cl.sess.Timeout(), func() { c.undoubted(cl, d) })
	all.doubts[cl] = d
}

// doubtDeleted notes that a node which has been deleted may be made late.
func (c *Client) doubtDeleted(s *session.Session, node string) {
	gone := c.claimFor(s, node)
	close(gone.removal.done)
	gone.doubts(gone.name)
	gone.attempted()
}

// claimFor returns a claim, for its deletion, of an own node which was made
// without one.
func (c *Client) claimFor(s *session.Session, node string) *Claim {
	cl := &Claim{client: c, sess: s, dir: path.Dir(node)}
	cl.setNode(node, 0)
	cl.beginRemoval()
	return cl
}

// disown notes that the claim has no node, whatever its name says.
func (cl *Claim) disown() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	close(cl.beginRemoval().done)
}

// undoubted ends a doubt about a claim's create, unless it has ended before.
func (c *Client) undoubted(cl *Claim, d *doubt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.doubted[cl.sess]
	if all == nil || all.doubts[cl] != d {
		return
	}
	d.over.Stop()
	delete(all.doubts, cl)
	if len(all.doubts) == 0 {
		delete(c.doubted, cl.sess)
	}
	cl.sess.RemoveClaim()
}

// trustAll ends all doubts of a session, which is over.
func (c *Client) trustAll(s *session.Session) {
	c.mu.Lock()
	var doubts map[*Claim]*doubt
	if all := c.doubted[s]; all != nil {
		doubts = maps.Clone(all.doubts)
	}
	c.mu.Unlock()
	for cl, d := range doubts {
		c.undoubted(cl, d)
	}
}

// attempted tells that no further attempt to make the claim's node is under way.
// What was carried out late until now is looked for.
func (cl *Claim) attempted() {
	c := cl.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.doubted[cl.sess]; all != nil && all.doubts[cl] != nil {
		all.doubts[cl].idle, all.doubts[cl].due = true, true
		c.search(cl.sess, all)
	}
}

// lookForStrays looks for the strays of a session that is connected again.
func (c *Client) lookForStrays(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.doubted[s]; all != nil {
		for _, d := range all.doubts {
			d.due = true
		}
		c.search(s, all)
	}
}

// search looks for the strays that are due, in the background; c.mu is held.
func (c *Client) search(s *session.Session, all *doubted) {
	if all.searching {
		return
	}
	// Refused when the session is over, and the nodes with it.
	all.searching = s.Go(func() {
		for claims := c.takeDue(all); len(claims) > 0; claims = c.takeDue(all) {
			if left := c.removeStrays(s, claims); len(left) > 0 && s.Err() == nil {
				c.postpone(all, left)
				c.pause(context.Background())
			}
		}
	}) == nil
}

// takeDue takes the claims whose strays are to be looked for now, with what the
// names of their nodes begin with. When there are none, the search is over.
func (c *Client) takeDue(all *doubted) map[*Claim]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	claims := map[*Claim]string{}
	for cl, d := range all.doubts {
		if d.due && d.idle { // the others find out by themselves, and come back to this
			d.due, claims[cl] = false, d.prefix
		}
	}
	all.searching = len(claims) > 0
	return claims
}

func (c *Client) postpone(all *doubted, claims map[*Claim]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cl := range claims {
		if d := all.doubts[cl]; d != nil {
			d.due = true
		}
	}
}

// removeStrays deletes the strays of some claims. It returns those for which a
// request failed in passing.
func (c *Client) removeStrays(s *session.Session, claims map[*Claim]string) (left map[*Claim]string) {
	ctx := context.Background() // ends with the session
	if s.Flush(ctx) != nil {
		return claims
	}
	left = map[*Claim]string{}
	listed := map[string][]string{}
	for cl, prefix := range claims {
		if _, known := listed[cl.dir]; !known {
			names, err := s.Children(ctx, cl.dir)
			if err != nil && transient(err) {
				left[cl] = prefix
				continue
			}
			listed[cl.dir] = names
		}
		for _, name := range listed[cl.dir] {
			if !cl.isOwn(name, prefix) {
				continue
			}
			if stray, err := cl.isStray(ctx, name); err != nil || stray && !cl.removeStray(name) {
				left[cl] = prefix
			}
		}
	}
	return left
}

// isStray tells whether a node of the claim's name is one that nobody knows of.
// It fails when it cannot tell now.
func (cl *Claim) isStray(ctx context.Context, name string) (bool, error) {
	if name == cl.name && !cl.isRemoved() {
		return false, nil
	}
	node, as, err := cl.examine(ctx, name)
	if err != nil && transient(err) {
		return false, err
	}
	if err != nil || !node.Exists || node.Stat.Owner != cl.sess.ID() {
		return false, nil
	}
	// Claims of one name are told by their data.
	return cl.spec.Name == "" || as != anothers && !cl.isWanted(as), nil
}

// isWanted tells whether another claim of this session may have made a node of
// the same name, and of the same data if these are as made.
func (cl *Claim) isWanted(as likeness) bool {
	for _, other := range cl.client.claimsOf(cl.sess) {
		if other != cl && other.dir == cl.dir && other.spec.Name == cl.spec.Name &&
			(as == perhaps || string(other.spec.Data) == string(cl.spec.Data)) {
			return true
		}
	}
	return false
}

// removeStray deletes a stray as the node of a claim that was never told of. It
// returns false when that must be tried again.
func (cl *Claim) removeStray(name string) bool {
	stray := &Claim{client: cl.client, sess: cl.sess, spec: cl.spec, dir: cl.dir, guid: cl.guid}
	stray.setNode(join(cl.dir, name), 0)
	switch err := stray.removeOnce(); {
	case err == nil:
		cl.client.opts.log.Warn("a server made an own node long after it was asked to; deleted", "node", stray.Node(), "session", sessionName(cl.sess.ID()))
		cl.client.emit(Event{Kind: StrayRemoved, Session: cl.sess.ID(), Path: stray.Node()})
	case errors.Is(err, ErrNoNode):
	case errors.Is(err, ErrNoAuth):
		stray.stranded(err)
	default:
		return false
	}
	return true
}
