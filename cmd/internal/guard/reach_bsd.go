//go:build darwin || freebsd || openbsd

package guard

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// clock is the same for all processes, and is never set.
const clock = unix.CLOCK_MONOTONIC

func dieWithParent(*syscall.SysProcAttr) {}

func adoptOrphans() {}

// beCalled does nothing: ps shows the name of the program's file.
func beCalled(string) {}

// keepFromCommand closes the guard's pipes at the next exec, and the first few
// descriptors that the owner's parent may have left open.
func keepFromCommand() {
	for fd := ordersFD; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// Able returns why a command cannot be guarded here, or nil.
func Able() error { return nil }

const reachesAll = false

// eachDescendant finds them on Linux only; elsewhere the command's process
// group must do.
func eachDescendant(func(pid int)) {}

// There is no reaper: it could not find the orphans of a guard.
func underReaper(*exec.Cmd) {}

func isReaper() bool { return false }

func reaper(string) error { return nil }

// bequeath does nothing: there is no reaper.
func bequeath(*os.File, *Farewell) {}

func abandon(guard *os.Process) { _ = guard.Kill() }

func prevail() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }

// shed gives back nothing here.
func shed() {}
