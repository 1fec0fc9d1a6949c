package coord

import (
	"context"
	"errors"
	"slices"
	"time"
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
	Revoked bool      // somebody asked it to give up
}

// Contenders lists a line's contenders in order, of this client's dialect: one
// listing and one read for each. Nodes that go meanwhile are left out.
func (c *Client) Contenders(ctx context.Context, line Line) ([]ContenderInfo, error) {
	names, err := c.Children(ctx, line.Dir)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	members, _ := line.parse(names, c.opts.dialect)
	return marked(c.Describe(ctx, line.Dir, members))
}

// Inspect lists every contender in dir, of any dialect and recipe, in order of
// age, and says which of them hold. Kinds that are none of this package's are
// listed if they are named: "member" of a double barrier, for instance, or your
// own.
func Inspect(ctx context.Context, c *Client, dir string, also ...Kind) ([]ContenderInfo, error) {
	names, err := c.Children(ctx, dir)
	if err != nil {
		return nil, err
	}
	var all []Contender
	for _, name := range names {
		if m, known := parseName(name, also); known {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, byAge)
	return marked(c.Describe(ctx, dir, all))
}

// Describe reads the nodes of contenders in dir: one request for each. Nodes that
// are gone are left out. It does not tell who holds, which is up to the recipe.
func (c *Client) Describe(ctx context.Context, dir string, members []Contender) ([]ContenderInfo, error) {
	infos := make([]ContenderInfo, 0, len(members))
	for i, m := range members {
		node := join(dir, m.Name)
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

// marked applies the rules of locks: the first holds, and so do readers with
// nothing but readers before them.
func marked(line []ContenderInfo, err error) ([]ContenderInfo, error) {
	for i := range line {
		line[i].Holds = i == 0 || line[i].Kind == Read && line[i-1].Holds && line[i-1].Kind == Read
	}
	return line, err
}
