package cli

import "time"

type queueReceive struct {
	Delay     time.Duration  `placeholder:"D" help:"How long an item of a failed command stays with this process before others can have it."`
	Dead      *int           `placeholder:"N" help:"Move an item that was delivered N times to the queue at PATH/dead, instead of delivering it again."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" help:"As with lock."`
	Path      nodePath       `arg:"" help:"The queue's path."`
	Cmd       []string       `arg:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
}

// Help tells what does not fit beside the options.
func (*queueReceive) Help() string {
	return `CMD gets the item on its standard input, and COORD_PATH, COORD_NODE, COORD_PRIORITY and COORD_DELIVERIES (1 the first time) in its environment. If it exits with 0, the item is removed; otherwise it goes back to the queue. It is stopped before anybody else can have the item.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the claim on the item was lost, or was about to be, before it was removed; 124 no item in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// asLock is what the two verbs have in common.
func (v *queueReceive) asLock() *lockVerb {
	return &lockVerb{Timeout: v.Timeout, KillAfter: v.KillAfter, OnRevoke: "ignore", Path: v.Path, Cmd: v.Cmd, what: "item"}
}

func (v *queueReceive) check() error {
	switch {
	case v.Delay < 0:
		return usageError("--delay %v: it must not be negative", v.Delay)
	case v.Dead != nil && *v.Dead < 1:
		return usageError("--dead %d: it must be at least 1", *v.Dead)
	}
	return nil
}
