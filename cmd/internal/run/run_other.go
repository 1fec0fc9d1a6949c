//go:build !(linux || darwin || freebsd || openbsd)

package run

import (
	"os/exec"
	"runtime"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// run refuses: stopping a command with all it started, and in time, needs
// process groups and signals.
func (j *job) run(*term.Streams, *conn.Connection) error {
	return term.ExitWith(term.ExitOwnFault,
		"running a command that can be stopped in time needs Unix process groups and signals; %s has none", runtime.GOOS)
}

func killTogether(*exec.Cmd) {}
