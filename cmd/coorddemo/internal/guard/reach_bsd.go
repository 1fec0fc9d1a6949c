//go:build darwin || freebsd || openbsd

package guard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent(*syscall.SysProcAttr) {}

func adoptOrphans() {}

// keepFromCommand closes the guard's pipes at the next exec, and the first few descriptors that the owner's parent may
// have left open.
func keepFromCommand() {
	for fd := ordersFD; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// descendants are known on Linux only; elsewhere the command's process group must do.
func descendants() []int { return nil }
