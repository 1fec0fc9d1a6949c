package term

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// StopSelf stops this process as the stop key would. It returns when the
// process has been continued, or immediately where there is no shell that could
// continue it: there the kernel does not let the signal stop a process.
//
// The signal is SIGTTIN and not SIGTSTP: the runtime keeps its handler of a
// signal that it was once asked to notify. It is sent to this thread, which
// stops before it does anything else; a signal to the process could reach
// another thread, later.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTTIN)
}
