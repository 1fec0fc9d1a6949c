package window

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// What the runtime reads must be the clock that CLOCK_BOOTTIME runs ahead of.
func TestTheRuntimesClockIsTheKernelsMonotonicClock(t *testing.T) {
	monotonic := func() int64 {
		const clockMonotonic = 1
		var ts syscall.Timespec
		_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
		require.Zero(t, errno)
		return ts.Nano()
	}
	before := monotonic()
	now := nanotime()
	require.LessOrEqual(t, before, now)
	require.LessOrEqual(t, now, monotonic())
}
