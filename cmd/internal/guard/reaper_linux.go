package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
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

// reaper starts the guard, and ensures that no descendant of it outlives it:
// when the guard is killed, orphans become children of the reaper, which kills
// them and reports to the owner when it is done. It does the same when the
// owner is gone.
func reaper() error {
	reports, life := os.NewFile(reportsFD, "reports"), os.NewFile(lifeFD, "life")
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
		_, _ = io.Copy(io.Discard, life)
	}()
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
