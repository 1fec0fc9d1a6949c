package recipe

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Tree is a node of a recipe's own and all below it, for [Remove].
type Tree struct {
	Root  string
	Parts []Part // the first that matches a node says what it is; one that none matches is another's
}

// Part says what the nodes of a [Tree] are.
type Part struct {
	Nodes string // a pattern of [path.Match] for their paths, relative to the root
	// Who is there as long as there is such a node, such as "holder"; "":
	// nobody, it is what is left.
	Who  string
	Says func(data []byte) string // is Who, where only the data tell
}

// Remove deletes what a recipe has left behind: the trees, of which the first
// is at the recipe's path. It returns nil if there is nothing, and
// [coord.ErrBusy] while anybody is there, whom the message names: then it
// deletes nothing. One transaction deletes all; it fails if somebody comes at
// the same time, and Remove looks again. Only nodes that do not fit into one
// packet are deleted by several, and somebody who comes between two of them
// finds a part of it deleted already.
//
// It ends with ctx, and repeats itself over lost connections. Two requests, and
// one or two for each node, 64 at a time; a node whose children are somebody is
// looked at no further.
func Remove(ctx context.Context, c *coord.Client, trees ...Tree) error {
	err := Retry(ctx, c, func(ctx context.Context) error {
		for looks := 1; ; looks++ {
			found, err := survey(ctx, c.Synced(), trees)
			if err == nil {
				err = found.inUse()
			}
			if err != nil || len(found.left) == 0 {
				return err
			}
			err = deleteAll(ctx, c, found.left)
			switch {
			case !isOutdated(err):
				return err
			case looks == mostLooks:
				return fmt.Errorf("%w: it changes all the time: %w", coord.ErrBusy, err)
			}
		}
	})
	return Failure(c, "remove", trees[0].Root, err)
}

const (
	mostLooks = 16 // of a Remove that others disturb
	atATime   = 64 // requests of a look
	opBytes   = 64 // that a deletion takes in a packet, besides the path
)

// isOutdated reports whether a transaction failed because what was read has
// changed.
func isOutdated(err error) bool {
	return !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrNotEmpty) || errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode))
}

// node is a node as it was read.
type node struct {
	path    string
	version int32
}

// remains is what one look has found.
type remains struct {
	mu    sync.Mutex
	left  []node // children first
	there []guests
}

// guests are nodes of one part that stand for somebody.
type guests struct {
	who   string
	count int
	names []string // of the first
}

// inUse says who is there.
func (r *remains) inUse() error {
	if len(r.there) == 0 {
		return nil
	}
	var all []string
	slices.SortFunc(r.there, func(a, b guests) int { return strings.Compare(a.who, b.who) })
	for _, g := range r.there {
		slices.Sort(g.names)
		text := fmt.Sprintf("%d %s", g.count, g.who)
		if g.count > 1 {
			text += "s"
		}
		if len(g.names) > 0 {
			text += " (" + strings.Join(g.names, ", ") + ")"
		}
		all = append(all, text)
	}
	return fmt.Errorf("%w: in use: %s", coord.ErrBusy, strings.Join(all, "; "))
}

// meet notes somebody who is there.
func (r *remains) meet(who, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.there, func(g guests) bool { return g.who == who })
	if i < 0 {
		i = len(r.there)
		r.there = append(r.there, guests{who: who})
	}
	g := &r.there[i]
	g.count++
	if name != "" && len(g.names) < MostNamed {
		g.names = append(g.names, name)
	}
}

// survey looks at the trees level by level.
func survey(ctx context.Context, c *coord.Client, trees []Tree) (*remains, error) {
	r := &remains{}
	for _, t := range slices.Backward(trees) { // the recipe's path is the last to go
		begin := len(r.left)
		for level := []string{t.Root}; len(level) > 0; {
			below, failures := make([][]string, len(level)), make([]error, len(level))
			for some := 0; some < len(level); some += atATime {
				var looking sync.WaitGroup
				for i, at := range level[some:min(some+atATime, len(level))] {
					looking.Go(func() { below[some+i], failures[some+i] = r.visit(ctx, c, t, at) })
				}
				looking.Wait()
			}
			if err := JoinedWithin(ctx, failures...); err != nil {
				return nil, err
			}
			level = slices.Concat(below...)
		}
		slices.SortFunc(r.left[begin:],
			func(a, b node) int { return strings.Compare(b.path, a.path) }) // a parent's path is less
	}
	return r, nil
}

// visit looks at a node, and returns the nodes below that are to be looked at.
func (r *remains) visit(ctx context.Context, c *coord.Client, t Tree, at string) (below []string, err error) {
	part := t.part(at)
	who := part.Who
	stat, there, err := c.Exists(ctx, at)
	if at == t.Root && stat.Owner != 0 {
		who = another // has a claim there
	}
	if there && (who != "" || part.Says != nil) {
		var data []byte
		data, stat, err = c.Get(ctx, at)
		if part.Says != nil && err == nil {
			who = part.Says(data)
		}
		if who != "" && (err == nil || errors.Is(err, coord.ErrNoAuth)) {
			r.meet(who, nameOf(at, data, stat))
			return nil, nil
		}
	}
	if err != nil || !there {
		return nil, unlessGone(err)
	}
	r.mu.Lock()
	r.left = append(r.left, node{at, stat.Version})
	r.mu.Unlock()
	if stat.Children == 0 {
		return nil, nil
	}
	names, err := c.Children(ctx, at)
	slices.Sort(names)
	named := 0
	for _, name := range names {
		child := at + "/" + name
		if p := t.part(child); p.Who != "" && p.Says == nil {
			named++
			if named > MostNamed {
				r.meet(p.Who, "")
				continue
			}
		}
		below = append(below, child)
	}
	return below, unlessGone(err)
}

// unlessGone returns the error of a read, unless the node has gone meanwhile.
func unlessGone(err error) error {
	if errors.Is(err, coord.ErrNoNode) {
		return nil
	}
	return err
}

// another is who has a node that is no part of the recipe.
const another = "node of another"

// part returns what a node is.
func (t Tree) part(at string) Part {
	relative := strings.TrimPrefix(strings.TrimPrefix(at, t.Root), "/")
	if relative == "" {
		return Part{}
	}
	for _, p := range t.Parts {
		if is, _ := path.Match(p.Nodes, relative); is {
			return p
		}
	}
	return Part{Nodes: relative, Who: another}
}

// nameOf names who has a node: the client that its data name, or the node.
func nameOf(at string, data []byte, stat coord.Stat) string {
	owner, _, _ := strings.Cut(string(inspect.OwnData(data)), "\n")
	if stat.Owner == 0 || !inspect.NamesOwner([]byte(owner)) {
		return path.Base(at)
	}
	return owner
}

// deleteAll deletes the nodes in this order, in as few transactions as the
// packets allow.
func deleteAll(ctx context.Context, c *coord.Client, nodes []node) error {
	for len(nodes) > 0 {
		var ops []coord.Op
		for room := c.Info().MaxPacket / 2; len(ops) < len(nodes) && (room > 0 || len(ops) == 0); {
			n := nodes[len(ops)]
			ops = append(ops, coord.DeleteOp(n.path, n.version))
			room -= len(c.Info().Chroot) + len(n.path) + opBytes
		}
		if _, err := c.Txn(ctx, ops...); err != nil {
			return err
		}
		nodes = nodes[len(ops):]
	}
	return nil
}
