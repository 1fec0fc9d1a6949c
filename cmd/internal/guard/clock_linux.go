package guard

import "golang.org/x/sys/unix"

// clock goes on while the system is suspended; Linux's CLOCK_MONOTONIC does
// not.
const clock = unix.CLOCK_BOOTTIME
