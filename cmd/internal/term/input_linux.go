package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewInput makes a file in memory, so that a full disk does not matter.
func NewInput() (*os.File, error) {
	fd, err := unix.MemfdCreate("zkcoord-item", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "item"), nil
}
