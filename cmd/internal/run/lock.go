package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// all acquires the locks at all the paths, as one.
func (v *LockVerb) all(t *lockTask) (acquirer[holding], error) {
	var locks []lock.Acquirer
	for _, path := range t.paths {
		acquire, err := v.open(t.client, path)
		if err != nil {
			return nil, err
		}
		locks = append(locks, one{t, path, acquire})
	}
	all, err := lock.NewMulti(locks...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, try bool) (holding, error) {
		acquire := all.Acquire
		if try {
			acquire = all.TryAcquire
		}
		group, err := acquire(ctx)
		if err != nil {
			return holding{}, err
		}
		h := holding{held: group, holds: make([]coord.Held, len(t.paths)), release: group.Release}
		for i, path := range slices.Sorted(slices.Values(t.paths)) { // as the group has them
			h.holds[slices.Index(t.paths, path)] = group.Holds()[i]
		}
		return h, nil
	}, nil
}

// releaseWithin bounds what happens after CMD has ended. Others wait for the
// session's end then, if they must.
const releaseWithin = 2 * time.Second

type LockVerb struct {
	Shared    bool           `help:"Hold it together with others that say --shared; the plain lock excludes them."`
	Slots     *int           `placeholder:"N" help:"Let N hold at a time: the same N for all who use the path."`
	Resize    bool           `help:"With --slots: change N for all clients."`
	Try       bool           `help:"Do not wait: exit with 75 if the lock is held by another."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OneNode   bool           `help:"The node at the path is itself the lock: whoever makes it holds, in no order. For paths where programs lock so."`
	Delay     *time.Duration `placeholder:"D" positive:"" help:"Wait for D if the last holder did not release the lock: the same for all who use the path."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	dialect   coord.Dialect  // of the line, or ""
	Paths     conn.NodePaths `arg:"" name:"path" predictor:"path" help:"The lock's path; or several: CMD runs while all of them are held."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*LockVerb) Help() string {
	return `CMD runs while the lock is held. It gets COORD_PATH, COORD_NODE and COORD_TOKEN (a fencing token: a number that grows from holder to holder; not with --shared, nor with more than one of --slots) in its environment. Of several locks it holds all, or does not run; they are acquired in the order of their names, and each has variables with its number, such as COORD_TOKEN_2.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the lock was lost before CMD ended; 75 held by another (--try); 124 no turn in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// check refuses invalid options before anything is done.
func (v *LockVerb) check() error {
	switch {
	case v.Slots == nil && v.Resize:
		return term.UsageError("--resize changes the number of slots: say which with --slots")
	case v.Slots != nil && (*v.Slots < 1 || *v.Slots > math.MaxInt32):
		return term.UsageError("--slots %d: it must be from 1 to %d", *v.Slots, math.MaxInt32)
	case (v.Slots != nil || v.Shared || v.OneNode) && v.Delay != nil:
		return term.UsageError("--delay is for the plain lock, without --slots, --shared and --one-node")
	case v.Slots != nil && v.Shared:
		return term.UsageError("--slots and --shared are two kinds of locks: choose one")
	case v.OneNode && (v.Slots != nil || v.Shared):
		return term.UsageError("--one-node is another kind of lock than --slots and --shared: choose one")
	case len(v.Paths) > 1 && len(v.Cmd) > 0 && v.Cmd[0] != "--":
		return term.UsageError("several paths: write -- before the command; here they are %s, and the command %q",
			v.Paths, v.Cmd)
	case v.Slots != nil && len(v.Paths) > 1:
		return term.UsageError("--slots is for one path, and here are %d: %s", len(v.Paths), v.Paths)
	}
	return nil
}

// Run waits for the lock, runs the command, and releases.
func (v *LockVerb) Run(s *term.Streams, c *conn.Connection) error {
	if err := v.check(); err != nil {
		return err
	}
	if v.Slots == nil && !v.Shared && !v.OneNode {
		v.dialect = c.LineDialect()
	}
	return (&job{
		task: &lockTask{
			dialect: v.dialect, paths: v.Paths, open: v.all, try: v.Try, slots: v.Slots, oneNode: v.OneNode,
			plain: v.Slots == nil && !v.Shared,
		}, late: "no turn", verbosely: v.verbosely,
		Paths: v.Paths, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout, KillAfter: v.KillAfter,
		IgnoreRevoke: v.OnRevoke == "ignore",
	}).run(s, c)
}

// acquirer waits for a lock of any kind, or tries to get it.
type acquirer[H any] func(ctx context.Context, try bool) (H, error)

// locker is what most kinds of locks are.
type locker interface {
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

func acquirerOf(l locker) acquirer[*coord.Hold] {
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		if try {
			return l.TryAcquire(ctx)
		}
		return l.Acquire(ctx)
	}
}

// open returns the lock at a path that the options ask for. Plain and shared
// ones stand in one line.
func (v *LockVerb) open(client *coord.Client, path conn.NodePath) (acquirer[*coord.Hold], error) {
	switch {
	case v.Slots != nil:
		return v.slots(client, path)
	case v.OneNode:
		n, err := lock.NewNode(client, string(path))
		return unlessOwn(client, path, string(path), ownNode, 1, acquirerOf(n)), err
	case v.Shared:
		l, err := rwlock.New(client, string(path))
		if err != nil {
			return nil, err
		}
		return apart(client, path, slotsAt, sharedUnlessNested(client, path, acquirerOf(l.ReadSide()))), nil
	}
	var opts []lock.Option
	if v.Delay != nil {
		opts = append(opts, lock.Delay(*v.Delay))
	}
	if v.dialect != "" {
		opts = append(opts, lock.Dialect(v.dialect))
	}
	m, err := lock.New(client, string(path), opts...)
	return apart(client, path, slotsAt, unlessNested(client, path, string(path), 1, acquirerOf(m))), err
}

// slots returns the lock that several may hold, each with a slot. With --resize
// it stores the number of slots first. If another number is stored, the error
// says what to do.
func (v *LockVerb) slots(client *coord.Client, path conn.NodePath) (acquirer[*coord.Hold], error) {
	sem, err := semaphore.New(client, string(path), *v.Slots)
	return apart(client, path, foreignAt,
		unlessNested(client, path, layout.SemaphoreAt(client.Info().Dialect, string(path)).Leases.Dir, *v.Slots,
			func(ctx context.Context, try bool) (*coord.Hold, error) {
				if v.Resize {
					if err := sem.SetLimit(ctx, *v.Slots); err != nil {
						return nil, err
					}
				}
				h, err := acquirerOf(sem)(ctx, try)
				if errors.Is(err, coord.ErrDisagree) {
					if stored, unknown := sem.Limit(ctx); unknown == nil {
						err = fmt.Errorf("%s has %d slots; say --slots %d, or --slots %d --resize to change that for all clients: %w",
							path, stored, stored, *v.Slots, err)
					}
				}
				return h, err
			})), err
}
