//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// isClosed reports whether a standard stream was closed when this process
// began. The Go runtime has opened the null device in its place by now, for
// reading and writing, where a shell opens it for one of the two.
func isClosed(f *os.File) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, null) {
		return err != nil
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

// isUnread reports whether what is written to a standard stream has no reader
// any more.
func isUnread(f *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
