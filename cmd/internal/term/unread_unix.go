//go:build linux || darwin || freebsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/self"
)

// IsClosed reports whether a standard stream was closed when this process
// began.
func IsClosed(f *os.File) bool { return self.Closed(int(f.Fd())) }

// isUnread reports whether a standard stream has no reader any more.
func isUnread(f *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
