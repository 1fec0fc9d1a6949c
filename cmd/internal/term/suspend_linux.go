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
// It is not SIGTSTP, since the runtime does not give up its handler of a signal
// that it was once asked to notify. And it goes to this very thread, which then
// stops before it does anything else; a signal to the process might be taken by
// another thread, later.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTTIN)
}
