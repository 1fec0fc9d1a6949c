//go:build darwin || freebsd || openbsd

package term

import "golang.org/x/sys/unix"

// The requests that get and set a terminal's modes.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)
