package guard

import (
	"encoding/binary"
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

// bequeath gives the reaper the input of the verb Farewell.
func bequeath(life *os.File, f *Farewell) {
	if f == nil {
		return
	}
	within := binary.BigEndian.AppendUint64([]byte{toFarewell}, uint64(f.Within))
	if len(f.Input) == 0 {
		tell(life, within, nil)
		return
	}
	fd, err := unix.MemfdCreate("farewell", unix.MFD_CLOEXEC)
	if err != nil {
		return // others wait for the session's end
	}
	file := os.NewFile(uintptr(fd), "farewell")
	defer func() { _ = file.Close() }()
	if _, err := file.WriteAt(f.Input, 0); err == nil {
		pass(life, file, within...)
	}
}

// legacy is what the owner leaves to the reaper.
type legacy struct {
	input  int // of the verb Farewell; -1 = none
	within time.Duration
}

// inherit takes the files that the owner passes on, until the owner closes the
// socket, or says that it lives (nil). They stay open until this process ends.
func inherit(socket int) *legacy {
	l := &legacy{input: -1}
	for message, rights := make([]byte, 9), make([]byte, unix.CmsgSpace(4)); ; {
		n, size, _, _, err := unix.Recvmsg(socket, message, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
		case err != nil, n == 0:
			return l
		case message[0] == living:
			return nil
		case message[0] == toFarewell && n == len(message):
			l = &legacy{fileIn(rights[:size]), time.Duration(binary.BigEndian.Uint64(message[1:]))}
		}
	}
}

func fileIn(rights []byte) int {
	if messages, err := unix.ParseSocketControlMessage(rights); err == nil && len(messages) == 1 {
		if files, err := unix.ParseUnixRights(&messages[0]); err == nil && len(files) == 1 {
			return files[0]
		}
	}
	return -1
}

// childless reports whether nothing is left that the command has started, in
// whatever session: orphans become children of the reaper.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}

// exitLegacies ends the reaper. If the owner is gone, it keeps the owner's
// files open until nothing is left of the command, discards the file that the
// owner made for it, and then becomes the verb Farewell. If something is left
// for as long as the farewell has time, it just ends.
func exitLegacies(left <-chan *legacy, discard string) {
	l := <-left
	if l == nil {
		return
	}
	for end := Now().Add(l.within); !childless(); time.Sleep(rekill) {
		if Now() >= end {
			return
		}
	}
	_ = os.Remove(discard)
	if l.input < 0 || unix.Dup3(l.input, 0, 0) != nil {
		return
	}
	keepFromCommand()
	_ = syscall.Exec("/proc/self/exe", []string{reaperName, FarewellVerb}, os.Environ())
}

// reaper starts the guard, and ensures that no descendant of it outlives it:
// when the guard is killed, orphans become children of the reaper, which kills
// them and reports to the owner when it is done. It does the same when the
// owner is gone.
func reaper(discard string) error {
	reports := os.NewFile(reportsFD, "reports")
	guard, err := syscall.ForkExec("/proc/self/exe", []string{guardName, Verb}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, ordersFD, reportsFD}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		newOutbox(reports).
			finish(Event{Kind: Failed, Code: cannotGuard, Message: fmt.Appendf(nil, "starting the guard: %v", err)})
		return nil
	}
	_ = syscall.Close(ordersFD)
	prevail()
	abandoned, left := make(chan struct{}), make(chan *legacy, 1)
	go func() {
		l := inherit(lifeFD)
		left <- l
		for l == nil {
			l = inherit(lifeFD)
		}
		close(abandoned)
	}()
	defer func() { exitLegacies(left, discard) }()
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
		s.round(0, syscall.SIGKILL)
		time.Sleep(rekill)
	}
	newOutbox(reports).finish(Event{Kind: Gone, At: Now(), Cause: ByKill, Left: s.left})
	return nil
}
