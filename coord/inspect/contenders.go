// Package inspect shows and ends the claims of others: who holds and who waits
// in a line, a request to give up, and the deletion of a claim's node by force.
// It is for operators and their programs; package coord has what a holder does
// with its own claim.
//
// The functions report the state when the server answered, which may lag behind
// the ensemble; a client made by [coord.Client.Synced] reads the committed
// state. [Revoke], [RevokeAndWait] and [Break] always do.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
)

// Contender is a contender as an operator wants to see it.
type Contender struct {
	coord.Contender
	Node    string    // its path
	Owner   string    // the node's data; see [OwnData]
	Session int64     // the session it belongs to
	Since   time.Time // when its node was created, by the server's clock
	Token   int64     // its node's czxid
	Holds   bool      // by the rules of locks
	Revoked bool      // it was asked to give up
	// Under are the names of the nodes of the holds that the claim was made
	// under, the outermost first, as far as its data say: holds that the
	// context of the call carried ([coord.Hold.Context]), of whichever client,
	// and those of [coord.WithHeld]. None: it was made under none, or does not
	// say.
	Under []string
}

// Contenders lists the contenders in dir of these kinds, or of every kind if
// none is named, of either dialect, and those of unknown recipes, in order of
// age. It says which of them hold by the rules of locks ([Granted]). A missing
// directory has no contenders. One listing, and one read for each; nodes that
// go meanwhile are left out.
func Contenders(ctx context.Context, c *coord.Client, dir string, kinds ...string) ([]Contender, error) {
	names, err := c.Children(ctx, dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return held(ctx, c, dir, Among(names, kinds...))
}

// InLine is [Contenders] of one line, whose [coord.Line.Dialect] may be a
// described one: it names the kinds, and whom the line's claims wait for.
func InLine(ctx context.Context, c *coord.Client, line coord.Line) ([]Contender, error) {
	names, err := c.Children(ctx, line.Dir)
	switch described := line.Dialect; {
	case errors.Is(err, coord.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	case !described.IsDescribed():
		return held(ctx, c, line.Dir, Among(names, line.Kinds...))
	}
	all := append(line.Order(names, line.Dialect), line.Foreign(names, line.Dialect)...)
	slices.SortStableFunc(all, func(a, b coord.Contender) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return held(ctx, c, line.Dir, all)
}

// held describes contenders, and says which hold.
func held(ctx context.Context, c *coord.Client, dir string, among []coord.Contender) ([]Contender, error) {
	infos, err := Describe(ctx, c, dir, among)
	there := make([]coord.Contender, len(infos))
	for i, info := range infos {
		there[i] = info.Contender
	}
	for i, holds := range Granted(there) {
		infos[i].Holds = holds
	}
	return infos, err
}

// Among picks the contenders that [Contenders] lists out of the names of a
// directory's children.
func Among(names []string, kinds ...string) []coord.Contender {
	line := coord.Line{Kinds: kinds, AnyDialect: true}.Order(names, coord.Curator)
	for _, c := range (coord.Line{}).Foreign(names, coord.Curator) {
		if c.Dialect == coord.Unknown {
			line = append(line, c)
		}
	}
	slices.SortStableFunc(line, func(a, b coord.Contender) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return line
}

// Likely returns the described dialect that these names of a line's children
// look like, which are of an unknown recipe, or "" if they do not look like one
// line's. It is a guess: the recipe's own source decides, above all how it
// orders its contenders.
func Likely(names ...string) coord.Dialect { return dialect.Likely(names...) }

// Granted says which contenders of a line, the oldest first, hold by the rules
// of locks: of each dialect, which does not see the other, the first, and the
// readers behind a reader that holds. But no contender of this module's holds
// behind one that it cannot honour. Whether one of an unknown recipe holds is
// not known.
func Granted(line []coord.Contender) []bool {
	holds, last := make([]bool, len(line)), map[coord.Dialect]int{}
	for i, c := range line {
		before, waits := last[c.Dialect]
		last[c.Dialect] = i
		switch alone := len(last) == 1; {
		case c.Dialect == coord.Unknown, IsOurs(c) && !alone:
		default:
			holds[i] = !waits || c.Kind == dialect.Read && line[before].Kind == dialect.Read && holds[before]
		}
	}
	return holds
}

// LockLine is the line of the locks at dir: mutexes, and both sides of
// read/write locks, which exclude each other. A mutex stands in it like a
// writer.
func LockLine(dir string) coord.Line {
	return coord.Line{Dir: dir, Kinds: []string{dialect.Lock, dialect.Read, dialect.Write}}
}

// Describe reads the nodes of contenders in dir: one request for each. Nodes
// that are gone are left out. It does not say who holds, which is up to the
// recipe.
func Describe(ctx context.Context, c *coord.Client, dir string, members []coord.Contender) ([]Contender, error) {
	infos, leads := make([]Contender, 0, len(members)), true
	for _, m := range members {
		node := path.Join(dir, m.Name)
		data, stat, err := c.Get(ctx, node)
		notice := Notice(node)
		first := leads && notice != node
		leads = leads && notice == node
		if err == nil && first {
			var noticed []byte
			if noticed, _, err = c.Get(ctx, notice); err == nil {
				data = noticed
			} else if errors.Is(err, coord.ErrNoNode) {
				err = nil
			}
		}
		if errors.Is(err, coord.ErrNoNode) {
			continue
		}
		if err != nil && !errors.Is(err, coord.ErrNoAuth) {
			return nil, err
		}
		own, under := dialect.Split(dialect.Kept(m.Dialect, data))
		infos = append(infos, Contender{
			Contender: m, Node: node, Owner: string(own), Session: stat.Owner,
			Since: stat.Created, Token: stat.Czxid, Revoked: dialect.Asks(m.Dialect, data), Under: under,
		})
	}
	return infos, nil
}
