//go:build darwin || freebsd || openbsd

package guard

import "golang.org/x/sys/unix"

// clock is the same for all processes, and is never set.
const clock = unix.CLOCK_MONOTONIC
