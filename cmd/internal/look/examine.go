package look

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// mostLooks is how often inspect looks, at most, when something has changed
// while it looked.
const mostLooks = 5

// Examine reports the state at one moment, when path was listed: a node that is
// gone before it is read makes Examine look again. In the last look such a node
// stays in the report, with only its name known. A path that does not exist is
// no error: a line looks like that before its first contender and after its
// last. Names that belong to no other recipe are read in the described dialect
// d, unless it is "".
func Examine(ctx context.Context, client *coord.Client, d coord.Dialect, path conn.NodePath) (Report, error) {
	for looks := 1; ; looks++ {
		names, err := client.Children(ctx, string(path))
		switch {
		case errors.Is(err, coord.ErrNoNode):
			return newReport(string(path)), nil
		case err != nil:
			return Report{}, err
		}
		r, changed, err := lookAt(ctx, client, d, path, names)
		if err == nil && r.Kind == "" && len(names) == 0 {
			err = r.asNode(ctx, client)
		}
		if err != nil || !changed || looks == mostLooks {
			return r, err
		}
	}
}

// lookAt reads the nodes that a listing of the path names.
func lookAt(
	ctx context.Context, client *coord.Client, d coord.Dialect, path conn.NodePath, names []string,
) (r Report, changed bool, err error) {
	r = newReport(string(path))
	r.Exists = true
	members := lineIn(names, d)
	if !slices.ContainsFunc(members, isKnown) {
		members = nil // special checks whether they belong to sessions
	}
	line, err := inspect.Describe(ctx, client, string(path), members)
	if err != nil {
		return r, false, err
	}
	changed = len(line) < len(members)
	line = complete(string(path), members, line)
	if len(line) == 0 || line[0].Kind == doublebarrier.Kind || mayBeMore(names) {
		var moved bool
		line, moved, err = r.special(ctx, client, path, names, line)
		changed = changed || moved
	}
	if errors.Is(err, coord.ErrNoNode) {
		return r, true, nil // it was there a moment ago
	}
	for i, info := range line {
		r.is(family(info.Kind))
		r.Dialect = common(r.Dialect, string(info.Dialect))
		r.Contenders = append(r.Contenders, r.contender(i+1, info))
		if isKnown(info.Contender) {
			r.used(int64(info.Sequence))
		}
	}
	if r.Round != nil {
		r.Round.conclude()
	}
	r.Others = r.others(names)
	return r, changed, err
}

// LineOf picks the contenders of every kind and dialect, and of unknown
// recipes, out of a listing, in the order of their age.
func LineOf(names []string) []coord.Contender { return inspect.Among(names) }

// lineIn is LineOf, with the contenders of a described dialect.
func lineIn(names []string, d coord.Dialect) []coord.Contender {
	line := LineOf(names)
	for i, c := range line {
		if described := (coord.Line{Dialect: d}).Order([]string{c.Name}, d); d != "" && !isKnown(c) && len(described) > 0 {
			line[i] = described[0]
		}
	}
	return line
}

// complete puts back into the line the contenders whose nodes were gone before
// they were read, and sets who held when the line was listed.
func complete(dir string, members []coord.Contender, read []inspect.Contender) []inspect.Contender {
	line, holds := make([]inspect.Contender, 0, len(members)), inspect.Granted(members)
	for i, m := range members {
		info := inspect.Contender{Contender: m, Node: dir + "/" + m.Name}
		if len(read) > 0 && read[0].Name == m.Name {
			info, read = read[0], read[1:]
		}
		info.Holds = holds[i]
		line = append(line, info)
	}
	return line
}

// parts are the children of a path that belong to a recipe, except its
// contenders.
var parts = map[string][]string{
	roundsKind: layout.DoubleBarrier, SlotsKind: layout.Semaphore, QueueKind: layout.Queue, NumbersKind: layout.Slots,
	onceKind: layout.Once, cronKind: layout.Cron, shardsKind: layout.Shards,
}

// isOwn reports whether the node of that name is the recipe's own.
func (r *Report) isOwn(name string) bool {
	return isContender(name) || r.members[name] || r.shows(name) || r.Kind == roundsKind && doublebarrier.IsVector(name) ||
		r.Kind == SlotsKind && isKazooLease(name) ||
		slices.ContainsFunc(r.kinds, func(kind string) bool { return slices.Contains(parts[kind], name) })
}

// hasLocks reports whether the node of that name has the locks of keys below
// it.
func (r *Report) hasLocks(name string) bool { return r.Shards != nil && name == layout.Shards[2] }

// mayBeMore reports whether a listing has the name of a part of a recipe that
// is more than a line.
func mayBeMore(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		for _, of := range parts {
			if name == of[0] {
				return true
			}
		}
		return name == markOfSchedules || name == limitOfSemaphores
	})
}

// markOfSchedules is the last part of a schedule to go.
const markOfSchedules = "mark"

// limitOfSemaphores is the part that is left of a semaphore without clients.
const limitOfSemaphores = "limit"

// isContender reports whether a node's name is a claim's, of either dialect.
func isContender(name string) bool { return slices.ContainsFunc(LineOf([]string{name}), isKnown) }

// others counts the names in a listing of the path that belong to no recipe
// found there.
func (r *Report) others(names []string) (n int) {
	for _, name := range names {
		if !r.isOwn(name) && !isNotice(name) {
			n++
		}
	}
	return n
}

// shows reports whether a child of the path is among the contenders.
func (r *Report) shows(name string) bool {
	return slices.ContainsFunc(r.Contenders, func(c Contender) bool { return c.Node == r.Path+"/"+name })
}

// isNotice reports whether a node is a leader's notice, whose name is the name
// of the leader's node without its number.
func isNotice(name string) bool {
	return isContender(name+"0000000000") && inspect.Notice("/"+name+"0000000000") == "/"+name
}

// special looks for recipes that are more than a line: a double barrier, a
// semaphore, a queue, slots, a ledger, shards, a group. It reports whether one
// of their parts, or the listing that names the line, has changed meanwhile.
func (r *Report) special(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string, line []inspect.Contender,
) (_ []inspect.Contender, changed bool, err error) {
	nodes := []string{string(path), layout.SemaphoreAt(coord.Kazoo, string(path)).Queue.Dir}
	for _, part := range slices.Concat(parts[roundsKind], parts[SlotsKind], parts[QueueKind], parts[NumbersKind]) {
		if slices.Contains(names, part) {
			nodes = append(nodes, string(path)+"/"+part)
		}
	}
	before, err := moment(ctx, client, nodes)
	if err != nil {
		return nil, false, err
	}
	line, err = r.recipe(ctx, client, path, names, line)
	if err != nil {
		return nil, false, err
	}
	after, err := moment(ctx, client, nodes)
	if err != nil {
		return nil, false, err
	}
	last, err := client.Children(ctx, string(path))
	return line, !slices.Equal(before, after) || !sameNames(names, last), err
}

// sameNames reports whether two listings are equal but for their order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// moment reads when nodes, and their lists of children, were last changed
// (zxids).
func moment(ctx context.Context, client *coord.Client, nodes []string) (changes []int64, err error) {
	for _, node := range nodes {
		stat, _, err := client.Exists(ctx, node)
		if err != nil {
			return nil, err
		}
		changes = append(changes, stat.Mzxid, stat.Pzxid)
	}
	return changes, nil
}

// recipe finds the recipes at a path besides a line, and returns all
// contenders. Beside another recipe it finds only recipes that have parts of
// their own.
func (r *Report) recipe(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string, line []inspect.Contender,
) ([]inspect.Contender, error) {
	if len(line) == 0 || line[0].Kind == doublebarrier.Kind {
		if _, err := r.inRounds(ctx, client, path, line); err != nil {
			return line, err
		}
	} else {
		r.is(family(line[0].Kind))
	}
	for _, in := range []func(context.Context, *coord.Client, conn.NodePath, []string) ([]inspect.Contender, error){
		r.inQueue, r.inNumbers, r.inShards, r.inLedger, r.inSlots,
	} {
		more, err := in(ctx, client, path, names)
		if err != nil {
			return line, err
		}
		line = append(line, more...)
	}
	if len(line) > 0 || r.Kind != "" {
		return line, nil
	}
	if line, err := r.inGroup(ctx, client, path, names); len(line) > 0 || err != nil {
		return line, err
	}
	return nil, r.asBarrier(ctx, client, path)
}

// is notes that a recipe was found.
func (r *Report) is(kind string) {
	both := common(r.Kind, kind)
	if (both != r.Kind || both == mixed) && !slices.Contains(r.kinds, kind) {
		r.kinds = append(r.kinds, kind)
	}
	r.Kind = both
}

// asBarrier finds out whether the node itself is a closed barrier.
func (r *Report) asBarrier(ctx context.Context, client *coord.Client, path conn.NodePath) error {
	b, err := barrier.New(client, string(path))
	if err != nil {
		return err
	}
	by, at, err := b.SetBy(ctx)
	if errors.Is(err, barrier.ErrNoBarrier) {
		return nil
	}
	if err == nil {
		r.is("barrier")
		r.Closed = &Closing{By: strings.ToValidUTF8(by, "�"), Age: term.Seconds(max(0, time.Since(at))), At: at}
	}
	return err
}

// Children lists a directory. One that is missing, or may not be listed, is
// empty.
func Children(ctx context.Context, client *coord.Client, path string) ([]string, error) {
	names, err := client.Children(ctx, path)
	if errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrNoAuth) {
		return nil, nil
	}
	return names, err
}
