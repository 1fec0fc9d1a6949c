package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	limits
	Paths        conn.NodePaths
	Timeout      *time.Duration // bounds the wait, connecting included
	KillAfter    *time.Duration
	IgnoreRevoke bool
	verbosely
	late string // the message when Timeout is over

	left      bool            // the session was left to run out: a process of the command may still run
	lost      bool            // the hold was, before the command ended
	signalled bool            // a signal to this process, HUP or another, told the command to end
	ending    bool            // a signal other than HUP did
	said      map[string]bool // the kinds of events that were told once, by any run
	signals   chan os.Signal  // of all runs: one that comes between two ends the next
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
	// prepare gives the command what it needs in addition to what every command
	// gets.
	prepare(cmd *exec.Cmd) error
	// giveBack ends the hold when the command was not run.
	giveBack() error
	// complete ends the hold when the command has ended in time, and returns
	// the status to exit with. asked: this process told the command to end, for
	// a request, --max-hold or a check. patience is for a wait for others: a
	// signal ends its context, and the function says that the wait is over.
	complete(status int, asked bool, patience func() (context.Context, func())) (int, error)
	// summary returns what the JSON object at the end has besides the fields of
	// every command. held is how long the hold lasted.
	summary(held float64, err error) map[string]any
}

// grace is the time between TERM and KILL, given the session timeout. The
// trust window of a lock in good health is renewed when at least a third of the
// timeout is left of it. A longer time than fits into that third would end the
// command at every short outage.
func (j *job) grace(session time.Duration) (time.Duration, error) {
	if j.KillAfter == nil {
		return session / 6, nil
	}
	if limit := session / 4; *j.KillAfter > limit {
		return 0, term.UsageError("--kill-after %v does not fit: with a session timeout of %v it can be %v at most; "+
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

// limits bound how long a command runs that does not end by itself.
type limits struct {
	MaxHold   *time.Duration `placeholder:"D" positive:"" help:"End CMD when it has run for D."`
	StopGrace *time.Duration `placeholder:"D" positive:"" help:"End CMD when it runs for D after HUP, INT, QUIT or TERM was passed on to it."`
}

// commandLine is the command of a verb that runs one: words that follow, or a
// line for a shell.
type commandLine struct {
	Command string   `short:"c" inplaceofcmd:"" placeholder:"STRING" help:"Run STRING by the shell ($SHELL, or else /bin/sh) instead of CMD."`
	Cmd     []string `arg:"" optional:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
	conn.Labelled
}

// Given reports whether there is a command at all.
func (l commandLine) Given() bool { return len(l.Cmd) > 0 || l.Command != "" }

// argv is the command as it is run, without the separator.
func (l commandLine) argv() []string {
	switch {
	case l.Command != "":
		return []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", l.Command}
	case len(l.Cmd) > 0 && l.Cmd[0] == "--":
		return l.Cmd[1:]
	}
	return l.Cmd
}

// inQuotes shows the words of a command.
func inQuotes(words []string) string { return strings.Trim(fmt.Sprintf("%q", words), "[]") }

// Validate is called by kong.
func (l commandLine) Validate() error {
	switch argv, words := l.argv(), (commandLine{Cmd: l.Cmd}).argv(); {
	case l.Command != "" && len(words) > 0:
		return fmt.Errorf("two commands: %q by -c, and %s behind it; give one of them", l.Command, inQuotes(words))
	case len(argv) == 0 || argv[0] == "":
		return fmt.Errorf("no command to run: write <cmd> after --, as in %[1]s lock /locks/a -- make deploy, "+
			"or a line for the shell, as in %[1]s lock /locks/a -c 'make && make deploy'", term.Program)
	}
	return nil
}
