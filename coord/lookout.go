package coord

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// lookouts watch the lines in which this client holds, for contenders that
// cannot be honoured and came after the grant. A hold that has lasted for a
// third of T lists its line once, which leaves a watch: a line to which nobody
// comes costs no further request. A watch that has fired is set again after
// some time only, so a busy line costs no more than a listing each time.
type lookouts struct {
	mu sync.Mutex
	at map[lineKey]*lookout
}

// lineKey names a line of a session.
type lineKey struct {
	sess                *session.Session
	dir, dialect, kinds string
}

// lookout is what is known of one line.
type lookout struct {
	watch   *session.Watch // the newest on the directory, or nil
	looking bool
	next    time.Time // the earliest time of the next look
}

// mostLookouts is how many lines are listed in each tenth of T: watching
// thousands of lines is spread over time.
const mostLookouts = 32

// lookOut looks at the lines in which a session holds, where a look is due. It
// does not block. It is called every tenth of T or so.
func (c *Client) lookOut(s *session.Session) {
	now, lines := time.Now(), map[lineKey]*claim{}
	for _, cl := range c.claims.of(s) {
		if cl.holdsSince(now.Add(-s.Timeout() / 3)) {
			lines[cl.lineKey()] = cl
		}
	}
	o := &c.lookouts
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.at {
		if lines[key] == nil {
			delete(o.at, key)
		}
	}
	begun := 0
	for key, cl := range lines {
		l := o.at[key]
		if l == nil {
			l = &lookout{}
			o.at[key] = l
		}
		if begun < mostLookouts && l.isDue(now) && s.Enqueue(func() { o.look(l, cl) }) == nil {
			l.looking = true
			begun++
		}
	}
}

func (cl *claim) lineKey() lineKey {
	return lineKey{cl.sess, cl.node.Dir, string(cl.spec.Line.Dialect), strings.Join(cl.spec.Line.Kinds, " ")}
}

// holdsSince reports whether the claim has held since a time, in a line in
// which there can be contenders that it does not honour.
func (cl *claim) holdsSince(t time.Time) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.named != nil || cl.part != nil || cl.spec.Unlisted || cl.spec.Line.AnyDialect {
		return false
	}
	return len(cl.holds) > 0 && cl.holds[0].granted.Before(t)
}

func (l *lookout) isDue(now time.Time) bool {
	return !l.looking && now.After(l.next) && (l.watch == nil || l.watch.Fired() != session.Pending)
}

// look looks at the line in which the claim holds. The farther back the claim,
// the later its next look: a thousand holders that share a line list it little
// more often than ten do.
func (o *lookouts) look(l *lookout, cl *claim) {
	watch, place := cl.lookAtLine()
	o.mu.Lock()
	defer o.mu.Unlock()
	l.watch, l.looking = watch, false
	l.next = time.Now().Add(cl.sess.Timeout() / 5 * time.Duration(1+place))
}

// lookAtLine lists and watches the line, reports what came and cannot be
// honoured, and returns the claim's place. Without a hold it leaves no watch.
func (cl *claim) lookAtLine() (watch *session.Watch, place int) {
	if !cl.holdsSince(time.Now()) {
		return nil, 0
	}
	watch, err := cl.sess.Watches.Await(context.Background(), cl.sess.Watches.Begin(session.Children, cl.node.Dir))
	if err != nil {
		return nil, 0
	}
	own := cl.own()
	line, foreign := cl.spec.Line.parse(watch.Children(), cl.client.opts.dialect)
	if _, after := around(own, foreign); len(after) > 0 {
		cl.reportLate(after)
	}
	place, _ = slices.BinarySearchFunc(line, own, byAge)
	return watch, place
}
