package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// emit tells the observers of an event of the claim, and the time from since.
func (cl *claim) emit(kind string, since time.Time, err error) {
	if len(cl.client.opts.observers) == 0 {
		return
	}
	e := event.Event{
		Kind: kind, Session: cl.sess.ID(), Path: cl.path(), Recipe: cl.spec.Recipe, Took: time.Since(since), Err: err,
	}
	if cl.spec.Exclusive {
		e.Token = cl.node.Czxid()
	}
	cl.client.opts.emit(e)
}

// Report is recipe.Report.
func (s *clientSteps) Report(level slog.Level, e event.Event) {
	c := (*Client)(s)
	c.opts.Waiting.Log(context.Background(), level, e.Kind, "path", e.Path, "err", e.Err)
	c.opts.emit(e)
}

// ReportOnce is recipe.ReportOnce.
func (s *clientSteps) ReportOnce(level slog.Level, e event.Event) {
	c := (*Client)(s)
	if _, before := c.reported.LoadOrStore([3]string{e.Kind, e.Path, fmt.Sprint(e.Err)}, true); !before {
		s.Report(level, e)
	}
}

// notify passes a session's changes on to the claims born in it.
//
// All holds end before the first node is deleted, and before the log and the
// observers are told, who may take their time.
func (c *Client) notify(change session.Change, s *session.Session) {
	var leave, tell []func()
	if cause, gone := c.opts.lossBy(change, s); cause != nil {
		for _, cl := range c.claims.of(s) {
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
		c.opts.emit(event.Event{Kind: event.SessionUp, Session: s.ID()})
	case session.Down:
		c.opts.Log.Info("connection lost", "session", sessionName(s.ID()))
		c.opts.emit(event.Event{Kind: event.SessionDown, Session: s.ID()})
	case session.Holding:
		c.lookOut(s)
	case session.Over:
		c.nodes.Over(s)
		c.opts.Log.Log(context.Background(), unlessClosed(s.Err()), "session over", "session", sessionName(s.ID()),
			"err", s.Err())
		c.opts.emit(event.Event{Kind: event.SessionOver, Session: s.ID(), Err: s.Err()})
	}
	for _, f := range tell {
		f()
	}
}

// lossBy returns why a change of the session ends the holds, if it does, and
// whether their nodes are gone with it.
func (o *options) lossBy(change session.Change, s *session.Session) (cause error, gone bool) {
	switch {
	case change == session.Over:
		return s.Err(), true
	case change == session.Down && o.dropping:
		return ErrDisconnected, false
	case change == session.WindowClosed:
		return ErrWindowOver, false
	}
	return nil, false
}

// attended reports whether the attendant of this host closes the session.
func (o *options) attended(session int64, err error) {
	if err != nil {
		o.Log.Warn("no attendant: should this process die, others wait until the session expires",
			"session", sessionName(session), "err", err)
	} else {
		o.Log.Info("attended", "session", sessionName(session))
	}
	o.emit(event.Event{Kind: event.SessionAttended, Session: session, Err: err})
}

// unlessClosed is the level at which an end is logged: what the user closed has
// ended in order.
func unlessClosed(cause error) slog.Level {
	if errors.Is(cause, ErrClosed) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func (o *options) emit(e event.Event) {
	for _, observe := range o.observers {
		observe(e)
	}
}

// tell reports an event of a node of ours.
func (c *Client) tell(what znode.Event, n *znode.Node, err error) {
	e := event.Event{Session: n.Session().ID(), Path: c.relative(n.Path()), Err: err}
	log, name := c.opts.Log, sessionName(e.Session)
	switch what {
	case znode.Recovered:
		e.Kind = event.Recovered
	case znode.RemovedLate:
		e.Kind = event.StrayRemoved
		log.Warn("a server made a node of ours long after it was asked to; deleted", "node", e.Path, "session", name)
	case znode.Unwatchable:
		log.Warn("our node may not be watched: its deletion by others will not be noticed", "node", e.Path, "err", err)
		return
	case znode.Stranded:
		e.Kind = event.NodeStranded
		log.Error("our node cannot be deleted; it may stay until the session ends", "node", e.Path,
			"session", name, "err", err)
	case znode.Unsearchable:
		e.Kind, e.Path = event.NodeStranded, c.relative(znode.Join(n.Dir, n.Stem))
		log.Error("may not find out whether our node was made; if so, it stays until the session ends",
			"name begins with", e.Path, "session", name, "err", err)
	}
	c.opts.emit(e)
}

// sessionName writes a session id as ZooKeeper's own tools do.
func sessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
