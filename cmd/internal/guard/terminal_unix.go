//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Terminal is the controlling terminal of this process. Its zero value stands
// for none.
type Terminal struct {
	fd    int
	modes *term.State // as they were when it was opened
}

// OpenTerminal opens the controlling terminal, wherever the standard
// descriptors point to.
func OpenTerminal() Terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return Terminal{}
	}
	modes, _ := term.GetState(fd) // nil: nothing can be restored
	return Terminal{fd: fd, modes: modes}
}

// Foreground is the process group that gets the terminal's input and the
// signals of its keys; 0 without a terminal.
func (t Terminal) Foreground() int {
	if t.fd == 0 {
		return 0
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Give makes group the foreground group. The caller must ignore SIGTTOU: it may
// be in the background itself, and is stopped otherwise.
func (t Terminal) Give(group int) {
	if t.fd != 0 && group > 0 {
		// An error means that the group is gone or the terminal hung up; in
		// both cases there is nothing left to do.
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	}
}

// TakeBack makes home the foreground group if group has the terminal, or a
// group of which no process is left. If another group has it, such as the shell
// after its user sent the job to the background, it stays there. Where group
// was made to end, it could not put the terminal's modes in order: restore does
// that.
func (t Terminal) TakeBack(group, home int, restore bool) {
	now := t.Foreground()
	if now == 0 || now != home && now != group && unix.Kill(-now, 0) != unix.ESRCH {
		return
	}
	if now != home {
		t.Give(home)
	}
	if restore && t.modes != nil {
		_ = term.Restore(t.fd, t.modes)
	}
}

// Close closes the terminal.
func (t Terminal) Close() {
	if t.fd != 0 {
		_ = unix.Close(t.fd)
	}
}
