//go:build darwin || freebsd || openbsd

package guard

import "golang.org/x/sys/unix"

// clock is the same for all processes, and nobody sets it.
const clock = unix.CLOCK_MONOTONIC
