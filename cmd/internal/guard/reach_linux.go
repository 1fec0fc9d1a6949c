package guard

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// clock goes on while the system is suspended; Linux's CLOCK_MONOTONIC does
// not.
const clock = unix.CLOCK_BOOTTIME

// dieWithParent makes the kernel kill the child when the thread that forked it
// ends. The guard keeps that thread.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes descendants whose parents have ended children of this
// process instead of init's, where they can still be found.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// keepFromCommand closes every descriptor but the standard ones at the next
// exec: the guard's own, and any that the owner's parent had left open.
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

// Able returns why a command cannot be guarded here, or nil: descendants are
// found only by the kernel's process table.
func Able() error {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("/proc does not show the processes of this PID namespace (it shows this one as %q), so that "+
			"what a command starts could not be found and stopped: mount it anew, as unshare --mount-proc does", self)
	}
	return nil
}

// reachesAll: eachDescendant finds whoever is in the command's process group,
// too.
const reachesAll = true

// eachDescendant visits the descendants of this process in its session, by the
// kernel's process table. Most of them are visited as soon as they are read: a
// child may be gone a moment later.
func eachDescendant(visit func(pid int)) {
	session, _ := unix.Getsid(0)
	family := map[int]bool{os.Getpid(): true}
	var others []process
	meet := func(p process) {
		family[p.pid] = true
		if p.lives {
			visit(p.pid)
		}
	}
	for pid := range processes {
		p, known := processOf(pid, session)
		switch {
		case !known:
		case family[p.parent]:
			meet(p)
		default:
			others = append(others, p)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range others {
			if family[p.parent] && !family[p.pid] {
				meet(p)
				grown = true
			}
		}
	}
}

// process is an entry of the kernel's process table. One whose first thread has
// ended looks dead, but keeps its children until its last thread has ended.
type process struct {
	pid, parent int
	lives       bool
}

// processes gives all process ids, in the kernel's order, which is mostly the
// order of their birth.
func processes(yield func(pid int) bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	for {
		names, err := proc.Readdirnames(64)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && !yield(pid) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// processOf is a process of a session.
func processOf(pid, session int) (p process, known bool) {
	if sid, err := unix.Getsid(pid); err != nil || sid != session {
		return p, false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false // it has ended meanwhile
	}
	// The name, in brackets, may hold blanks and brackets. After it: state,
	// parent.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return p, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	// A zombie whose other threads run is one whose first thread has ended.
	threads := len(fields) > 17 && string(fields[17]) != "0" && string(fields[17]) != "1"
	return process{pid, parent, fields[0][0] != 'Z' && fields[0][0] != 'X' || threads}, err == nil
}
