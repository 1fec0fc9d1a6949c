package run

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	// standbyEvery is how often a service manager hears of a wait, unless its
	// watchdog wants it more often.
	standbyEvery = 20 * time.Second
	// standbyMore is how much longer the start of the service may take then.
	standbyMore = 60 * time.Second
)

// standBy tells the service manager, if this is a service of systemd's that
// says when it is ready (Type=notify), that it waits and is well: the start
// takes as long as the wait does. CMD says READY when it runs.
func standBy(waiting context.Context) {
	socket, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return // there is no such manager
	}
	defer func() { _ = socket.Close() }()
	every := standbyEvery
	if limit, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC")); err == nil && limit > 0 {
		every = min(every, time.Duration(limit)*time.Microsecond/2)
	}
	for again := time.NewTicker(every); ; {
		_, _ = fmt.Fprintf(socket, "EXTEND_TIMEOUT_USEC=%d\nWATCHDOG=1\n", standbyMore.Microseconds())
		select {
		case <-again.C:
		case <-waiting.Done():
			again.Stop()
			return
		}
	}
}
