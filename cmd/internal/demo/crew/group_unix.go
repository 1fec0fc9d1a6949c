//go:build unix

package crew

import (
	"os/exec"
	"syscall"
)

// OwnGroup has a process, once started, form a group of its own, which the
// terminal's keys do not reach.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
