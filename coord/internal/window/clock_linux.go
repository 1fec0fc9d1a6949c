package window

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is from linux/time.h: CLOCK_MONOTONIC plus the time for which
// the machine was suspended.
const clockBoottime = 7

// kernelSuspended returns how long the kernel says that the machine has been
// suspended since it was booted. It is read too small by the time between the
// two readings, never too large.
func kernelSuspended() (time.Duration, bool) {
	var boot syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&boot)), 0)
	return time.Duration(boot.Nano() - nanotime()), errno == 0
}

// nanotime is CLOCK_MONOTONIC, also in a test's virtual time. The runtime reads
// it without a system call: every hand-off looks at the clock.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
