//go:build linux || darwin || freebsd || openbsd

package self

import (
	"os"

	"golang.org/x/sys/unix"
)

// Closed reports whether a standard descriptor was closed when this process
// began. The Go runtime has opened the null device in its place by now, for
// reading and writing, and each time anew. A shell opens it for one of the two,
// and a daemon opens it once for several descriptors.
func Closed(fd int) bool {
	var null, there unix.Stat_t
	if err := unix.Fstat(fd, &there); err != nil {
		return true
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR || unix.Stat(os.DevNull, &null) != nil ||
		there.Rdev != null.Rdev ||
		there.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	for other := range 3 {
		if other != fd && openedTogether(fd, other, flags) {
			return false
		}
	}
	return true
}

// openedTogether reports whether two descriptors are one opening of a file,
// which has one set of flags.
func openedTogether(fd, other, flags int) bool {
	before, err := unix.FcntlInt(uintptr(other), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	defer func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) }()
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags^unix.O_APPEND)
	after, err := unix.FcntlInt(uintptr(other), unix.F_GETFL, 0)
	return err == nil && after != before
}
