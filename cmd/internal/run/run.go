package run

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// job is a command that runs while something is held.
type job struct {
	task
	commandLine
	Paths        conn.NodePaths
	Timeout      *time.Duration // bounds the wait, connecting included
	KillAfter    *time.Duration
	IgnoreRevoke bool
	Verbose      bool
	late         string // the message when Timeout is over
	together     bool   // others are waited for at the end, too

	left bool // the session was left to run out: a process of the command may still run
}

// task is what a command is run under.
type task interface {
	// acquire waits until the command may run.
	acquire(ctx context.Context, c *conn.Connection, client *coord.Client) (holding, error)
	// look says what keeps the command from running. The nodes of these names
	// are this process's own.
	look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error)
	// name is what is held, for people.
	name() string
	// prepare gives the command what it needs besides what every command gets.
	prepare(cmd *exec.Cmd) error
	// giveBack ends the hold when the command was not run.
	giveBack() error
	// complete ends the hold when the command has ended in time, and returns
	// the status to exit with. The command was told to end if the hold was
	// asked for. The context that patience makes ends by a signal.
	complete(status int, asked bool, patience func() (context.Context, func())) (int, error)
	// story returns what the JSON object at the end has besides the fields of
	// every command. held is how long the hold lasted.
	story(held float64, err error) map[string]any
}

// grace is the time between TERM and KILL, given the session time-out. The
// trust window of a lock in good health is renewed when at least a third of the
// time-out is left of it. A longer time than fits into that third would end the
// command at every short outage.
func (j *job) grace(session time.Duration) (time.Duration, error) {
	if j.KillAfter == nil {
		return session / 6, nil
	}
	if limit := session / 4; *j.KillAfter > limit {
		return 0, term.UsageError("--kill-after %v does not fit: with a session time-out of %v it can be %v at most; "+
			"ask for a longer one with --session-timeout", *j.KillAfter, session, limit.Truncate(time.Millisecond))
	}
	return *j.KillAfter, nil
}

// giveUp gives its status to the failure to acquire.
func (j *job) giveUp(ctx context.Context, err error) error {
	var sig term.Signalled
	var known *term.ExitError
	switch {
	case errors.As(context.Cause(ctx), &sig):
		return term.Silently(128 + int(sig.Signal))
	case errors.As(err, &known):
		return err
	case errors.Is(err, coord.ErrBusy):
		return &term.ExitError{Code: term.ExitBusy, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return term.ExitWith(term.ExitTimeout, "%s: %w", j.late, err)
	default:
		return conn.OrUsage(err, term.ExitOwnFault)
	}
}
