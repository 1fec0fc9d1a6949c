package cli

import "time"

// exitMissing tells that CMD succeeded, but that others of the round did not.
const exitMissing = 79

type doubleBarrierVerb struct {
	N         int            `short:"n" name:"members" required:"" placeholder:"N" help:"How many start together and finish together."`
	Next      bool           `help:"When a round is under way without this process, wait for a place in a later one instead of exiting with 75."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most for the others to come, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" help:"As with lock."`
	Path      nodePath       `arg:"" help:"The barrier's path."`
	Cmd       []string       `arg:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
}

// Help tells what does not fit beside the options.
func (*doubleBarrierVerb) Help() string {
	return `CMD starts when N processes have come, and this process exits when the commands of all of them have ended. CMD gets COORD_PATH, COORD_NODE, COORD_ROUND (1, 2, …), COORD_INDEX (0 to N-1, different for each) and COORD_MEMBERS (N) in its environment. When it fails, this process exits at once and is missing to the others.

Exit status: 0 if all N commands succeeded; CMD's if it failed; 79 if it succeeded, but others failed, died or gave up; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the place in the round was lost, or was about to be, before CMD ended; 75 a round is under way; 124 not all N came in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// asLock is what the two verbs have in common.
func (v *doubleBarrierVerb) asLock() *lockVerb {
	return &lockVerb{Timeout: v.Timeout, KillAfter: v.KillAfter, OnRevoke: "ignore", Path: v.Path, Cmd: v.Cmd}
}
