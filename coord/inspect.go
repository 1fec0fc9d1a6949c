package coord

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// ContenderInfo is a contender as an operator wants to see it.
type ContenderInfo struct {
	Contender
	Node    string    // its path
	Owner   string    // the node's data: who it is, unless it was revoked
	Session int64     // the session it belongs to
	Since   time.Time // when its node was created, by the server's clock
	Token   int64     // its node's czxid
	Holds   bool      // by the rules of locks
	Revoked bool      // it was asked to give up
}

// Inspect lists the contenders in dir, of either dialect, in order of age, and
// says which of them hold by the rules of locks: of these kinds, or of every
// kind if none is named. There are none in a directory that is missing. One
// listing, and one read for each; nodes that go meanwhile are left out.
func (c *Client) Inspect(ctx context.Context, dir string, kinds ...string) ([]ContenderInfo, error) {
	names, err := c.Children(ctx, dir)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Contender
	for _, name := range names {
		if m, known := parseOf(name, kinds); known && (len(kinds) == 0 || slices.Contains(kinds, m.Kind)) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, byAge)
	infos, err := c.Describe(ctx, dir, all)
	for i := range infos {
		infos[i].Holds = i == 0 || infos[i].Kind == kindRead && infos[i-1].Holds && infos[i-1].Kind == kindRead
	}
	return infos, err
}

// Describe reads the nodes of contenders in dir: one request for each. Nodes
// that are gone are left out. It does not tell who holds, which is up to the
// recipe.
func (c *Client) Describe(ctx context.Context, dir string, members []Contender) ([]ContenderInfo, error) {
	infos := make([]ContenderInfo, 0, len(members))
	for i, m := range members {
		node := znode.Join(dir, m.Name)
		data, stat, err := c.Get(ctx, node)
		if notice := Notice(node); err == nil && i == 0 && notice != node {
			var noticed []byte
			if noticed, _, err = c.Get(ctx, notice); err == nil {
				data = noticed
			} else if errors.Is(err, ErrNoNode) {
				err = nil
			}
		}
		if errors.Is(err, ErrNoNode) {
			continue
		}
		if err != nil && !errors.Is(err, ErrNoAuth) {
			return nil, err
		}
		owner, revoked := string(data), IsRevocation(data)
		if revoked {
			owner = ""
		}
		infos = append(infos, ContenderInfo{
			Contender: m, Node: node, Owner: owner, Session: stat.Owner,
			Since: stat.Created, Token: stat.Czxid, Revoked: revoked,
		})
	}
	return infos, nil
}
