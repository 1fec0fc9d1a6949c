//go:build unix

package crew

import (
	"os/exec"
	"syscall"
)

// OwnGroup keeps a process that is not started yet out of the reach of the
// terminal's keys.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
