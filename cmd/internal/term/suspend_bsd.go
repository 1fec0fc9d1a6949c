//go:build darwin || freebsd || openbsd

package term

import (
	"os"
	"syscall"
	"time"
)

// stopTakes is how long a stop signal takes to have its effect. Where no shell
// could continue the process, it has none.
const stopTakes = 50 * time.Millisecond

// StopSelf stops this process as the stop key would, and returns when it has
// been continued. The signal is SIGTTIN and not SIGTSTP: the runtime keeps its
// handler of a signal that it was once asked to notify.
func StopSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTTIN)
	time.Sleep(stopTakes)
}
