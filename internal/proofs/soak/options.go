package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

const (
	// T is the session timeout, tick the servers'.
	T    = zktest.SessionTimeout
	tick = zktest.DefaultTick
	// stuckAfter is how long a client may be without a grant after the last
	// fault, or after a fault of its own.
	stuckAfter = 15 * time.Second
	// floor is how many grants per second there must be before and after a
	// fault of the servers.
	floor = 5
	// longestGap is the longest time without a grant at a place: the servers'
	// longest outage, the end of a session, and the longest hold, in any order
	// and more than once, since faults go on.
	longestGap = 3 * stuckAfter
	// mostUnknown is the share of calls whose outcome may be unknown.
	mostUnknown = 0.02
	// promptly is how long after its context a call may return: 50 ms are
	// promised, the rest is for a busy machine.
	promptly = 50*time.Millisecond + 250*time.Millisecond
	// unaware is how long a client may take to learn that its session was ended
	// from outside.
	unaware = 3 * time.Second
)

// Options say how long and with what the soak runs.
type Options struct {
	Duration time.Duration
	Seed     uint64
	Clients  int // in this process
	Children int
	Kills    bool // of servers
}

// smoke is the short run among the ordinary tests. It kills no server: the
// tests run on 3.8.0, whose servers can lose acknowledged writes when they are
// killed while they catch up.
var smoke = Options{Duration: 12 * time.Second, Clients: 4, Children: 2}

// fromEnvironment reads SOAK_DURATION and SOAK_SEED. Without a duration it is
// the short run; without a seed, a random one.
func fromEnvironment() (o Options, err error) {
	o = smoke
	if text := os.Getenv("SOAK_DURATION"); text != "" {
		if o.Duration, err = time.ParseDuration(text); err != nil || o.Duration <= 0 {
			return o, fmt.Errorf("SOAK_DURATION=%q: want a duration such as 10m", text)
		}
		o.Clients, o.Children, o.Kills = 6, 4, true
	}
	o.Seed = uint64(rand.Uint32())
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if o.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return o, fmt.Errorf("SOAK_SEED=%q: want a number", text)
		}
	}
	return o, nil
}
