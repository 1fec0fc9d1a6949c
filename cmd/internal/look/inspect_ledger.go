package look

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
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
		return nil, r.schedule(ctx, client, path)
	}
	return nil, nil
}

// never is the schedule of who only looks.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// schedule looks how far a schedule has come.
func (r *Report) schedule(ctx context.Context, client *coord.Client, path conn.NodePath) error {
	c, err := cron.New(client, string(path), never{})
	if err != nil {
		return err
	}
	state, err := c.State(ctx)
	if errors.Is(err, coord.ErrNoAuth) || errors.Is(err, coord.ErrInvalid) {
		return nil
	}
	if state.Ahead > 0 {
		r.ahead, r.Ahead = MarkAhead(state), term.Seconds(state.Ahead)
	}
	return err
}

// MarkAhead says, for people, that a schedule's mark lies in the future.
func MarkAhead(state cron.State) string {
	return fmt.Sprintf("the mark was %s in the future when it was noted: no slot is due before %s", term.Age(state.Ahead.Seconds()), cron.Key(state.Through))
}

// hasLocks reports whether the node of that name has the locks of jobs or keys
// below it.
func (r *Report) hasLocks(name string) bool {
	return (r.Kind == onceKind || r.Kind == cronKind) && name == once.Parts()[0] || r.Kind == shardsKind && name == shards.Parts()[2]
}
