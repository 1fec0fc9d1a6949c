package cli

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
)

// releaseWithin bounds what happens after CMD has ended. Others wait for the
// session's end then, if they must.
const releaseWithin = 2 * time.Second

type lockVerb struct {
	Shared    bool           `help:"Hold the lock together with others that say --shared. It excludes and is excluded by the plain lock."`
	Slots     *int           `placeholder:"N" help:"Let N hold at a time. All who use the path must say the same number."`
	Resize    bool           `help:"With --slots: change the number that is stored at the path first, for all clients."`
	Try       bool           `help:"Do not wait: exit with 75 if the lock is held by another."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"CMD gets TERM so long before KILL when the lock is about to be lost, or was asked for. Default: a sixth of the session time-out."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	Path      nodePath       `arg:"" predictor:"path" help:"The lock's path."`
	Cmd       []string       `arg:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
	verbosely
}

// Help returns what does not fit beside the options.
func (*lockVerb) Help() string {
	return `CMD runs while the lock is held. It gets COORD_PATH, COORD_NODE and COORD_TOKEN (a fencing token: a number that grows from holder to holder; not with --shared, nor with more than one of --slots) in its environment.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the lock was lost, or was about to be, before CMD ended; 75 held by another (--try); 124 no turn in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// check finds what cannot be right before anything is done.
func (v *lockVerb) check() error {
	switch {
	case v.Slots == nil && v.Resize:
		return usageError("--resize changes the number of slots: say which with --slots")
	case v.Slots != nil && *v.Slots < 1:
		return usageError("--slots %d: it must be at least 1", *v.Slots)
	case v.Slots != nil && v.Shared:
		return usageError("--slots and --shared are two kinds of locks: choose one")
	}
	return nil
}

// Run waits for the lock, runs the command, and releases.
func (v *lockVerb) Run(s *streams, c *connection) error {
	if err := v.check(); err != nil {
		return err
	}
	j := &job{
		task: &turn{path: v.Path, open: v.open, try: v.Try, slots: v.Slots}, late: "no turn", Verbose: v.Verbose,
		Path: v.Path, Cmd: v.Cmd, Timeout: v.Timeout, KillAfter: v.KillAfter, IgnoreRevoke: v.OnRevoke == "ignore",
	}
	return j.run(s, c)
}

// acquirer waits for a lock of any kind, or tries to get it.
type acquirer func(ctx context.Context, try bool) (*coord.Hold, error)

// locker is what most kinds of locks are.
type locker interface {
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

func acquirerOf(l locker) acquirer {
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		if try {
			return l.TryAcquire(ctx)
		}
		return l.Acquire(ctx)
	}
}

// open returns the lock that the options ask for. Plain and shared ones stand
// in one line.
func (v *lockVerb) open(client *coord.Client) (acquirer, error) {
	switch {
	case v.Slots != nil:
		return v.slots(client)
	case v.Shared:
		l, err := rwlock.New(client, string(v.Path))
		if err != nil {
			return nil, err
		}
		return apart(client, v.Path, slotsAt, sharedUnlessNested(client, v.Path, acquirerOf(l.ReadSide()))), nil
	}
	m, err := lock.New(client, string(v.Path))
	return apart(client, v.Path, slotsAt, unlessNested(client, v.Path, string(v.Path), 1, acquirerOf(m))), err
}

// turn is the task of a command under a lock.
type turn struct {
	path  nodePath
	open  func(*coord.Client) (acquirer, error)
	try   bool
	slots *int // nil: a lock without

	client *coord.Client
	hold   *coord.Hold
}

// acquire gets the lock. A lock that is only tried is not waited for longer
// than a session would be.
func (t *turn) acquire(ctx context.Context, c *connection, client *coord.Client) (h *coord.Hold, err error) {
	acquire, err := t.open(client)
	if err != nil {
		return nil, err
	}
	defer func() { t.client, t.hold = client, h }()
	if t.try {
		trying, cancel := within(ctx, c.ConnectTimeout)
		defer cancel()
		h, err := acquire(trying, true)
		if err != nil && ctx.Err() == nil && trying.Err() != nil {
			return nil, exitWith(exitUnavailable, "no answer: %w", err)
		}
		return h, err
	}
	return acquire(ctx, false)
}

func (t *turn) name() string { return string(t.path) }

func (*turn) prepare(*exec.Cmd) error { return nil }

// giveBack releases the lock; it says so when it cannot know that it did.
func (t *turn) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	if err := t.hold.Release(ctx); err != nil {
		return fmt.Errorf("the servers did not confirm the release; others may have to wait up to %v: %w",
			t.client.SessionTimeout(), err)
	}
	return nil
}

func (t *turn) complete(status int, _ bool, _ func() (context.Context, func())) (int, error) {
	return status, t.giveBack()
}

func (t *turn) story(held float64, _ error) map[string]any {
	story := map[string]any{"node": t.hold.Node(), "held": held}
	if t.hold.Token() != 0 {
		story["token"] = t.hold.Token()
	}
	return story
}
