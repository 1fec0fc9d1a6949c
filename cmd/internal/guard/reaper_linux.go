package guard

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The process names of guard and reaper. They are not the program's: a signal
// to all processes of its name does not reach them.
const (
	reaperName = "zkreaper"
	guardName  = "zkguard"
)

// underReaper has the process that Start starts be the guard's reaper.
func underReaper(cmd *exec.Cmd) { cmd.Args[0] = reaperName }

// beCalled sets the name that ps, top and the kernel's out-of-memory log show.
// Before, it was the name of the link by which the process was started.
func beCalled(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

func isReaper() bool { return os.Args[0] == reaperName }

// abandon has an effect by the end of the owner's pipe: the reaper kills
// everything.
func abandon(*os.Process) {}

// keepUntilEnd returns at the end of the owner's messages. The files that come
// with them stay open until this process ends.
func keepUntilEnd(socket int) {
	for message, files := make([]byte, 1), make([]byte, unix.CmsgSpace(4)); ; {
		n, _, _, _, err := unix.Recvmsg(socket, message, files, unix.MSG_CMSG_CLOEXEC)
		if n == 0 && err == nil || err != nil && err != unix.EINTR {
			return
		}
	}
}

// linger keeps the owner's files open, if the owner is gone, until the
// descendants are gone as well that this user may not signal.
func linger(abandoned <-chan struct{}) {
	for {
		select {
		case <-abandoned:
		default:
			return
		}
		left := false
		eachDescendant(func(int) { left = true })
		if !left {
			return
		}
		time.Sleep(glance)
	}
}

// reaper starts the guard, and ensures that no descendant of it outlives it:
// when the guard is killed, orphans become children of the reaper, which kills
// them and reports to the owner when it is done. It does the same when the
// owner is gone.
func reaper() error {
	reports := os.NewFile(reportsFD, "reports")
	guard, err := syscall.ForkExec("/proc/self/exe", []string{guardName, Verb}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, ordersFD, reportsFD}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		newOutbox(reports).finish(Event{Kind: Failed, Code: cannotGuard, Message: fmt.Appendf(nil, "starting the guard: %v", err)})
		return nil
	}
	_ = syscall.Close(ordersFD)
	prevail()
	abandoned := make(chan struct{})
	go func() {
		defer close(abandoned)
		keepUntilEnd(lifeFD)
	}()
	defer linger(abandoned)
	ended := reap(guard)
	for waiting := true; waiting; {
		select {
		case status := <-ended:
			if status.Exited() && status.ExitStatus() == 0 {
				return nil // the owner knows
			}
			waiting = status.Stopped()
		case <-abandoned:
			waiting = false
		}
	}
	go func() { // the guard's end, if that is still to come
		for range ended {
		}
	}()
	var s sweep
	for !s.over() {
		time.Sleep(s.round(0, syscall.SIGKILL))
	}
	newOutbox(reports).finish(Event{Kind: Gone, At: Now(), Cause: ByKill, Left: s.left})
	return nil
}
