package coord

import (
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// nodesOf returns the nodes of the claims of a session.
func (c *Client) nodesOf(s *session.Session) []*znode.Node {
	var nodes []*znode.Node
	for _, cl := range c.claimsOf(s) {
		nodes = append(nodes, &cl.node)
	}
	return nodes
}

// tell reports what happened to an own node.
func (c *Client) tell(what znode.Event, n *znode.Node, err error) {
	e := Event{Session: n.Session().ID(), Path: c.relative(n.Path()), Err: err}
	log, name := c.opts.log, sessionName(e.Session)
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
		e.Kind, e.Path = NodeStranded, c.relative(znode.Join(n.Spec.Dir, n.Spec.Name))
		log.Error("may not find out whether an own node was made; if so, it stays until the session ends",
			"name begins with", e.Path, "session", name, "err", err)
	}
	c.emit(e)
}
