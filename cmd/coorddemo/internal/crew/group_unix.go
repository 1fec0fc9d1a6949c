//go:build unix

package crew

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a process out of the reach of the terminal's keys.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
