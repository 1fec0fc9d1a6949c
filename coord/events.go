package coord

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// The kinds of an [Event].
const (
	SessionUp      = "session up"        // connected with a session
	SessionDown    = "session down"      // connection lost, session perhaps alive; not when that ends it
	SessionOver    = "session over"      // Err says why; unless the client is closed, a new one is being opened
	ClaimJoined    = "joined"            // a claim's node was created, after Took
	ClaimGranted   = "granted"           // its turn came, Took after the call
	ClaimEnded     = "ended"             // a hold was released (Err is [ErrReleased]) or lost ([ErrLost]), or a wait given up, after Took
	ClaimRevoked   = "revoked"           // it was asked to give up; see inspect.Revoke
	ClaimForeign   = "foreign contender" // a contender of another dialect or recipe came after the own one, or is waited for
	ClaimRecovered = "recovered"         // a create whose reply was lost had taken effect
	StrayRemoved   = "stray removed"     // a server that had been cut off made an own node late; it was deleted
	NodeStranded   = "node stranded"     // an own node could not be deleted, or may not be looked for; it may stay until the session ends
)

// Event is something an observer may want to count. Fields that do not apply
// are zero.
type Event struct {
	Kind    string // one of those above
	Session int64
	Path    string // the claim's node, or the foreign one
	Token   int64  // of an exclusive hold
	Took    time.Duration
	Err     error
}

// emit reports to the observers how the claim ended, and how long it took.
func (cl *claim) emit(kind string, since time.Time, err error) {
	if len(cl.client.opts.observers) == 0 {
		return
	}
	e := Event{Kind: kind, Session: cl.sess.ID(), Path: cl.path(), Took: time.Since(since), Err: err}
	if cl.spec.Exclusive {
		e.Token = cl.node.Czxid()
	}
	cl.client.emit(e)
}

// notify passes a session's changes on to the claims born in it.
//
// All holds end before the first node is deleted, and before the log and the
// observers hear of it, which may take their time.
func (c *Client) notify(change session.Change, s *session.Session) {
	var leave, tell []func()
	if cause, gone := c.lossBy(change, s); cause != nil {
		for _, cl := range c.claimsOf(s) {
			if l, t := cl.losing(cause, gone); l != nil {
				leave, tell = append(leave, l), append(tell, t)
			}
		}
	}
	for _, l := range leave {
		l()
	}
	switch change {
	case session.Up:
		c.nodes.Connected(s)
		c.opts.Log.Info("connected", "session", sessionName(s.ID()), "timeout", s.Timeout())
		c.emit(Event{Kind: SessionUp, Session: s.ID()})
	case session.Down:
		c.opts.Log.Info("connection lost", "session", sessionName(s.ID()))
		c.emit(Event{Kind: SessionDown, Session: s.ID()})
	case session.Over:
		c.nodes.Over(s)
		c.opts.Log.Log(context.Background(), unlessClosed(s.Err()), "session over", "session", sessionName(s.ID()), "err", s.Err())
		c.emit(Event{Kind: SessionOver, Session: s.ID(), Err: s.Err()})
	}
	for _, f := range tell {
		f()
	}
}

// unlessClosed is the level at which an end is logged: what the user closed has
// ended in order.
func unlessClosed(cause error) slog.Level {
	if errors.Is(cause, ErrClosed) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func (c *Client) emit(e Event) {
	for _, observe := range c.opts.observers {
		observe(e)
	}
}

// tell reports an event of an own node.
func (c *Client) tell(what znode.Event, n *znode.Node, err error) {
	e := Event{Session: n.Session().ID(), Path: c.relative(n.Path()), Err: err}
	log, name := c.opts.Log, sessionName(e.Session)
	switch what {
	case znode.Recovered:
		e.Kind = ClaimRecovered
	case znode.RemovedLate:
		e.Kind = StrayRemoved
		log.Warn("a server made an own node long after it was asked to; deleted", "node", e.Path, "session", name)
	case znode.Unwatchable:
		log.Warn("the own node may not be watched: its deletion by others will not be noticed", "node", e.Path, "err", err)
		return
	case znode.Stranded:
		e.Kind = NodeStranded
		log.Error("own node cannot be deleted; it may stay until the session ends", "node", e.Path, "session", name, "err", err)
	case znode.Unsearchable:
		e.Kind, e.Path = NodeStranded, c.relative(znode.Join(n.Dir, n.Stem))
		log.Error("may not find out whether an own node was made; if so, it stays until the session ends",
			"name begins with", e.Path, "session", name, "err", err)
	}
	c.emit(e)
}

// sessionName writes a session id as ZooKeeper's own tools do.
func sessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// Observe yields what look reads: now, and again whenever that is no longer the
// same. It yields the latest: what changes while the loop's body runs is
// skipped. It goes on over lost connections and sessions, and yields nothing
// while it is cut off. Only the last pair has an error: ctx has ended, the
// client was closed, or look failed; path is what that error names. With a
// client made by [Client.Fresh], the iterator never goes back in time.
//
// It costs what look reads, as for [Client.Wait].
func Observe[T any](
	ctx context.Context, c *Client, path string, look func(v *View) (T, error), same func(a, b T) bool,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last T
		begun := false
		err := c.Wait(ctx, func(v *View) (stop bool, err error) {
			now, err := look(v)
			if err == nil && (!begun || !same(now, last)) {
				stop = !yield(now, nil)
			}
			last, begun = now, true
			return stop, err
		})
		if err != nil {
			var none T
			yield(none, c.Failure("observe", path, err))
		}
	}
}
