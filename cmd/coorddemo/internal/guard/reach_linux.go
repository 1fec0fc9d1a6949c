package guard

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child when the thread that forked it ends. Main keeps that thread.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes descendants whose parents have ended children of this process instead of init's, so that they can
// still be found.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// keepFromCommand closes every descriptor but the standard ones at the next exec: those of the guard, and those that
// the owner's parent had left open.
func keepFromCommand() {
	if unix.CloseRange(ordersFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= ordersFD {
			unix.CloseOnExec(fd)
		}
	}
}

// descendants are the living descendants of this process in its session, by the kernel's process table.
func descendants() []int {
	type process struct{ pid, parent int }
	var all []process
	session, _ := unix.Getsid(0)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name, in brackets, may hold blanks and brackets. After it: state, parent, group, session.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 || fields[0][0] == 'Z' || fields[0][0] == 'X' || string(fields[3]) != strconv.Itoa(session) {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		all = append(all, process{pid, parent})
	}
	family := map[int]bool{os.Getpid(): true}
	var found []int
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if family[p.parent] && !family[p.pid] {
				family[p.pid] = true
				found = append(found, p.pid)
				grown = true
			}
		}
	}
	return found
}
