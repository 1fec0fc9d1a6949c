package cli

import (
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type lockVerb struct {
	Shared    bool           `help:"Hold the lock together with others that say --shared. It excludes and is excluded by the plain lock."`
	Slots     *int           `placeholder:"N" help:"Let N hold at a time. All who use the path must say the same number."`
	Resize    bool           `help:"With --slots: change the number that is stored at the path first, for everybody."`
	Try       bool           `help:"Do not wait: exit with 75 if the lock is held by another."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" help:"CMD gets TERM so long before KILL when the lock is about to be lost, or was asked for. Default: a sixth of the session time-out."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When somebody asks for the lock: end CMD (term), or go on (ignore)."`
	Path      nodePath       `arg:"" help:"The lock's path."`
	Cmd       []string       `arg:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`

	stand func(*coord.Client) (locker, error) // for verbs that hold something else
	what  string                              // that is waited for, if it is not a turn
	left  bool                                // the session was left to run out: something of CMD's may be running still
}

// Help tells what does not fit beside the options.
func (*lockVerb) Help() string {
	return `CMD runs while the lock is held. It gets COORD_PATH, COORD_NODE and COORD_TOKEN (a fencing token: a number that grows from holder to holder; not with --shared, nor with more than one of --slots) in its environment.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the lock was lost, or was about to be, before CMD ended; 75 held by another (--try); 124 no turn in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// command is CMD, without the separator.
func (v *lockVerb) command() []string {
	if len(v.Cmd) > 0 && v.Cmd[0] == "--" {
		return v.Cmd[1:]
	}
	return v.Cmd
}

// check finds what cannot be right before anything is done.
func (v *lockVerb) check() error {
	switch {
	case len(v.command()) == 0 || v.command()[0] == "":
		return usageError("no command to run: write it after --, as in %s lock %s -- make deploy", program, v.Path)
	case v.Slots == nil && v.Resize:
		return usageError("--resize changes the number of slots: say which with --slots")
	case v.Slots != nil && *v.Slots < 1:
		return usageError("--slots %d: it must be at least 1", *v.Slots)
	case v.Slots != nil && v.Shared:
		return usageError("--slots and --shared are two kinds of locks: choose one")
	case v.KillAfter != nil && *v.KillAfter < 0:
		return usageError("--kill-after %v: it must not be negative", *v.KillAfter)
	}
	return nil
}

// killAfter is the time between TERM and KILL, given the session time-out. The trust window of a lock in good health is
// renewed when at least a third of the time-out is left of it. What does not fit well into that third would end CMD at
// every hiccup.
func (v *lockVerb) killAfter(session time.Duration) (time.Duration, error) {
	if v.KillAfter == nil {
		return session / 6, nil
	}
	if limit := session / 4; *v.KillAfter > limit {
		return 0, usageError("--kill-after %v does not fit: with a session time-out of %v it can be %v at most; "+
			"ask for a longer one with --session-timeout", *v.KillAfter, session, limit.Truncate(time.Millisecond))
	}
	return *v.KillAfter, nil
}
