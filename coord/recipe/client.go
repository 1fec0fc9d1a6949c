package recipe

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/author"
)

// Failure wraps err in an [coord.OpError], unless it is nil or already says
// what was being done; and adds the likely cause when a context has ended while
// no server could be reached. The error of a call that its context ended, or
// whose outcome is not known, names op and path, not the request that happened
// to be under way, which is not at fault.
func Failure(c *coord.Client, op, path string, err error) error {
	return author.Of(c).Failure(op, path, err)
}

// Retry calls f again as long as the same call can have another outcome: when
// the connection or the session failed before the reply came, or the server
// throttled it. It is for requests that do no harm when they are carried out
// twice; f notices the differences of the second time. When ctx ends it returns
// its error with f's last one. A lost hold ([coord.ErrLost]) stays lost.
func Retry(ctx context.Context, c *coord.Client, f func(context.Context) error) error {
	return author.Of(c).Retry(ctx, f)
}

// TxnIn is [coord.Client.Txn] for a transaction that creates nodes in dir. It
// makes the directory if it is missing, and again if the servers remove it
// before the transaction: they remove a container some time after its last
// child went. One request if the directory is there.
func TxnIn(ctx context.Context, c *coord.Client, dir string, ops ...coord.Op) ([]coord.Result, error) {
	for {
		results, err := c.Txn(ctx, ops...)
		var refused *coord.TxnError
		if !errors.As(err, &refused) || !errors.Is(err, coord.ErrNoNode) {
			return results, err
		}
		if refused.Op != "create" || path.Dir(refused.Path) != dir {
			return results, err
		}
		if err := c.EnsureDir(ctx, dir); err != nil {
			return nil, err
		}
	}
}

// EnsembleTime returns the time by the ensemble's clock. Use it, and the times
// in a [coord.Stat], for whatever clients decide for each other: clients' own
// clocks differ, and one that is wrong must not decide for all.
//
// The leader writes its time into each node that is changed. The client knows
// it from the newest answer to a [coord.SetOp] or [coord.Client.Set], and
// carries it on by its monotonic clock: it may be behind by the time that the
// answer took, or for which this machine was suspended since, and never ahead,
// unless the leader's clock is set back, or another server leads whose clock
// differs. If the newest answer is not younger than within, the client first
// writes dir: a directory that has no data, and which is made if it is missing.
// One request then, and none otherwise.
func EnsembleTime(ctx context.Context, c *coord.Client, dir string, within time.Duration) (time.Time, error) {
	return author.Of(c).EnsembleTime(ctx, dir, within)
}

// Report tells the client's log, or without one [slog.Default], and its
// observers of something that a recipe has found: its kind at level, with path
// and error.
func Report(c *coord.Client, level slog.Level, e event.Event) { author.Of(c).Report(level, e) }

// ReportOnce is Report, unless this client has reported the same before.
func ReportOnce(c *coord.Client, level slog.Level, e event.Event) { author.Of(c).ReportOnce(level, e) }
