package window

import (
	"syscall"
	"time"
	"unsafe"
)

// From linux/time.h. CLOCK_BOOTTIME is CLOCK_MONOTONIC plus the time for which
// the machine was suspended.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// kernelSuspended returns how long the kernel says that the machine has been
// suspended since it was booted. It is read too small by the time between the
// two readings, never too large.
func kernelSuspended() (time.Duration, bool) {
	boot, ok := kernelClock(clockBoottime)
	if !ok {
		return 0, false
	}
	monotonic, ok := kernelClock(clockMonotonic)
	return boot - monotonic, ok
}

func kernelClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
