//go:build darwin || freebsd || openbsd

package cli

import (
	"os"
	"syscall"
	"time"
)

// settle is how long to wait for a stop signal to take effect. Where no shell could continue the process, it has none.
const settle = 50 * time.Millisecond

// stopSelf stops this process as the stop key would, and returns when it has been continued. It is not SIGTSTP, since
// the runtime does not give up its handler of a signal that it was once asked to notify.
func stopSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTTIN)
	time.Sleep(settle)
}
