package look

import (
	"context"
	"regexp"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/shards"
)

// The kinds of recipes whose jobs or keys have locks of their own below them.
const (
	onceKind   = "once"
	cronKind   = "cron"
	shardsKind = "shards"
)

// bucket is the name of a directory of keys.
var bucket = regexp.MustCompile(`^[0-3][0-9]$`)

// inLedger finds out whether there are shards at path, or a ledger, and of
// what.
func (r *Report) inLedger(ctx context.Context, client *coord.Client, path conn.NodePath, names []string) ([]inspect.Contender, error) {
	if !slices.ContainsFunc(shards.Parts(), func(part string) bool { return !slices.Contains(names, part) }) {
		r.Kind = shardsKind
		return nil, nil
	}
	keys := once.Parts()[0]
	if !slices.Contains(names, keys) {
		return nil, nil
	}
	dirs, err := Children(ctx, client, string(path)+"/"+keys)
	if err != nil || len(dirs) == 0 || slices.ContainsFunc(dirs, func(name string) bool { return !bucket.MatchString(name) }) {
		return nil, err
	}
	r.Kind = onceKind
	if slices.ContainsFunc(cron.Parts(), func(part string) bool { return slices.Contains(names, part) && !slices.Contains(once.Parts(), part) }) {
		r.Kind = cronKind
	}
	return nil, nil
}

// hasLocks reports whether the node of that name has the locks of jobs or keys
// below it.
func (r *Report) hasLocks(name string) bool {
	return (r.Kind == onceKind || r.Kind == cronKind) && name == once.Parts()[0] || r.Kind == shardsKind && name == shards.Parts()[2]
}
