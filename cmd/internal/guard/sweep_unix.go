//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rekill is the pause between two rounds, for processes that were being
	// born during the first.
	rekill = 2 * time.Millisecond
	// clean is how many rounds in a row must have found nothing.
	clean = 2
)

// sweep ends the descendants of this process, round by round, until none is
// left but those it may not signal.
type sweep struct {
	empty int   // rounds in a row without anything to signal
	left  []int // what this user may not signal
}

// round signals a process group, if it is not 0, and all descendants, and
// returns when to come back. Signal 0 only finds out which there are.
func (s *sweep) round(group int, sig syscall.Signal) time.Duration {
	s.left = nil
	s.empty++
	if group != 0 && unix.Kill(-group, sig) == nil && !reachesAll { // also if only zombies are left there
		s.empty = 0
	}
	eachDescendant(func(pid int) {
		switch unix.Kill(pid, sig) {
		case nil:
			s.empty = 0
		case unix.EPERM:
			s.left = append(s.left, pid)
		}
	})
	if s.over() {
		return glance // only processes are left that this user may not signal
	}
	return rekill
}

func (s *sweep) over() bool { return s.empty >= clean }

// reap collects ended descendants, and gives the stops and the end of the child
// pid.
func reap(pid int) <-chan syscall.WaitStatus {
	statuses := make(chan syscall.WaitStatus)
	go func() {
		for {
			var status syscall.WaitStatus
			got, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return // no child is left
			case got == pid:
				statuses <- status
			}
		}
	}()
	return statuses
}
