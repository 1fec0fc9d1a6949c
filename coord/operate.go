package coord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// ContenderInfo is a contender as an operator wants to see it.
type ContenderInfo struct {
	Contender
	Node    string    // its path
	Owner   string    // the node's data: who it is; see [OwnData]
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
		infos = append(infos, ContenderInfo{
			Contender: m, Node: node, Owner: string(OwnData(data)), Session: stat.Owner,
			Since: stat.Created, Token: stat.Czxid, Revoked: IsRevocation(data),
		})
	}
	return infos, nil
}

// Notice returns the path of the node into which requests to a claim are
// written, and what a leader proclaims. It is the claim's own node, except for
// the leader of an election in Curator's dialect: its notice has the name
// without the number, and package election makes and deletes it along with the
// term. A LeaderLatch of Curator's that waits behind a candidate watches its
// node once, and reacts to its deletion only: after a write into the node, the
// latch, and all candidates behind it, would wait for ever.
func Notice(node string) string {
	self, _ := parseName(node[strings.LastIndexByte(node, '/')+1:], nil)
	if self.Kind != kindLatch || self.Dialect != Curator {
		return node
	}
	marker := Curator.marker(kindLatch)
	return node[:strings.LastIndex(node, marker)+len(marker)]
}

// Revoke asks the claim at node to give up what it holds, or the turn it waits
// for: it writes the dialect's request into the node, which closes the
// holder's [Hold.Revoked]. Whether and when the holder obeys is its business.
// A node that is gone already is no error; one that is no claim, such as a
// queue's item, is refused with [ErrInvalid]. Where the node's data begin with
// a [Client.Identity], they are kept behind the request ([OwnData]); other
// data, those of Curator's and Kazoo's claims among them, are lost, since
// Curator heeds the bare request only. Three requests, of which the first two
// make sure whose node it is.
//
// In an election in Curator's dialect the leader is asked by its [Notice]: the
// data there are kept, whatever they are, by one request more. No other
// candidate can be asked: Curator's LeaderLatch obeys no request, and one that
// is written into the node of a candidate could end the election for a
// LeaderLatch that waits behind it. Revoke writes nothing then and fails with
// [errors.ErrUnsupported].
func (c *Client) Revoke(ctx context.Context, node string) error {
	_, err := c.ask(ctx, node)
	return unlessGone("revoke", node, err)
}

// ask asks as [Client.Revoke] does, and returns which claim was asked.
func (c *Client) ask(ctx context.Context, node string) (claim int64, err error) {
	request := revokeCurator
	if c.opts.dialect == Kazoo {
		request = revokePlain
	}
	c = c.Fresh()
	return c.toClaim(ctx, node, 0, func(ctx context.Context, data []byte, stat Stat) error {
		if stat.Owner == 0 || stat.Owner == containers {
			return invalid("no claim: it belongs to no session")
		}
		if notice := Notice(node); notice != node {
			return c.note(ctx, node, notice, request)
		}
		kept := OwnData(data)
		if !namesOwner(kept) {
			kept = nil
		}
		_, err := c.Set(ctx, node, requestKeeping(kept, request), stat.Version)
		return err
	})
}

// note writes a request into the notice of the leader that has the node.
func (c *Client) note(ctx context.Context, node, notice, request string) error {
	data, stat, err := c.Get(ctx, notice)
	if errors.Is(err, ErrNoAuth) {
		stat.Version, err = -1, nil
	}
	if err == nil {
		_, err = c.Set(ctx, notice, requestKeeping(OwnData(data), request), stat.Version)
	}
	if !errors.Is(err, ErrNoNode) {
		return err
	}
	_, there, err := c.Exists(ctx, node)
	switch {
	case err != nil:
		return err
	case there:
		return fmt.Errorf("%w: it cannot be asked to give up, since it waits, or leads as Curator's LeaderLatch; Break takes its place from it", errors.ErrUnsupported)
	}
	return ErrNoNode
}

// RevokeAndWait asks as [Client.Revoke] does and waits until that claim's node
// is gone, whatever else has its name by then. When forceAfter is positive and
// the node is still there after that time, it deletes it by force
// ([Client.Break]): the holder then loses its hold, but may go on acting on it
// for as long as the news takes to reach it.
func (c *Client) RevokeAndWait(ctx context.Context, node string, forceAfter time.Duration) error {
	claim, err := c.ask(ctx, node)
	if err != nil {
		return unlessGone("revoke", node, err)
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if forceAfter > 0 {
		waiting, cancel = context.WithTimeout(ctx, forceAfter)
	}
	defer cancel()
	err = c.awaitGone(waiting, node, claim)
	if err == nil || ctx.Err() != nil || waiting.Err() == nil {
		return opError("revoke", node, err)
	}
	return c.breakClaim(ctx, node, claim)
}

// Break deletes a claim's node by force. The next claim gets its turn; the
// former holder sees its loss as soon as the news reaches it, and may have
// acted on the hold until then. It deletes the claim that has the node when it
// is called, and none that takes the name afterwards (but for one that does so
// during the last of its requests, and whose node has the same version). Three
// requests, and one more for a leader's [Notice], which goes, too.
func (c *Client) Break(ctx context.Context, node string) error {
	return c.breakClaim(ctx, node, 0)
}

func (c *Client) breakClaim(ctx context.Context, node string, claim int64) error {
	_, err := c.Fresh().toClaim(ctx, node, claim, func(ctx context.Context, _ []byte, stat Stat) error {
		return c.Delete(ctx, node, stat.Version)
	})
	err = unlessGone("break", node, err)
	if notice := Notice(node); err == nil && notice != node {
		err = c.Retry(ctx, func(ctx context.Context) error { return c.Delete(ctx, notice, -1) })
	}
	return unlessGone("break", node, err)
}

// toClaim does something to a claim's node, at its version. The czxid tells the
// claim from others of the same name; 0 is the one that is there first.
// [ErrNoNode] says that it is gone. The client is a fresh one.
func (c *Client) toClaim(ctx context.Context, node string, claim int64, act func(ctx context.Context, data []byte, stat Stat) error) (int64, error) {
	err := c.Retry(ctx, func(ctx context.Context) error {
		for {
			there := true
			data, stat, err := c.Get(ctx, node)
			if errors.Is(err, ErrNoAuth) { // which need not forbid the act
				stat, there, err = c.Exists(ctx, node)
			}
			switch {
			case err != nil:
				return err
			case !there, claim != 0 && stat.Czxid != claim:
				return ErrNoNode
			}
			claim = stat.Czxid
			if err = act(ctx, data, stat); !errors.Is(err, ErrBadVersion) {
				return err
			}
		}
	})
	return claim, err
}

// containers is what the servers tell as the owner of every container.
const containers = math.MinInt64

func unlessGone(op, node string, err error) error {
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return opError(op, node, err)
}

// awaitGone waits until the node of this czxid is gone, or whatever has the
// name if that is 0.
func (c *Client) awaitGone(ctx context.Context, node string, czxid int64) error {
	err := c.Wait(ctx, func(v *View) (gone bool, err error) {
		_, stat, err := v.Get(node)
		if errors.Is(err, ErrNoNode) {
			return true, nil
		}
		return err == nil && czxid != 0 && stat.Czxid > czxid, err
	})
	return c.Failure("wait", node, err)
}
