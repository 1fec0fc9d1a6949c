package zktest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// canRunReal reports whether this platform has what real servers and child
// processes are controlled with: parent-death signals and SIGSTOP.
const canRunReal = true

// process is a child that dies with the test binary.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been reaped
}

// start runs cmd in a process group of its own, on the spawner's thread.
func start(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := spawn(cmd.Start); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// lockThread ties the calling goroutine to its thread. The kernel sends the
// parent-death signal when the thread that forked ends, so children are forked
// from one thread that lives as long as the tests do.
func lockThread() { runtime.LockOSThread() }

// detach keeps signals to our process group, such as an interrupt from the
// terminal, away from cmd.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL and returns when the child has been reaped and its ports
// are free.
func (p *process) kill() {
	if p.alive() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.done
	}
}

// stop sends SIGSTOP and returns when the kernel reports the child as stopped.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if !poll(5*time.Second, func() bool { return p.state() == 'T' }) {
		return fmt.Errorf("zktest: process %d does not stop", p.pid())
	}
	return nil
}

func (p *process) cont() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("zktest: signal %d to process %d: %w", s, p.pid(), err)
	}
	return nil
}

// state is the letter the kernel gives for the process: R, S, T for stopped; 0
// when it is gone.
func (p *process) state() byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0
	}
	// The name in brackets may hold spaces and brackets itself.
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// port is a TCP port of 127.0.0.1 that is reserved for as long as the tests
// run.
type port struct{ fd, number int }

// reservePort binds a port without listening on it. The kernel gives such a
// port to no other, neither to a listener nor as the local end of a connection,
// but lets a server that sets SO_REUSEADDR (Java does) listen on it, again and
// again. So a restarted server always finds its port free.
func reservePort() (*port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// SO_REUSEADDR comes after bind: at bind it would allow a port that another
	// process has reserved in this way.
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	name, nameErr := syscall.Getsockname(fd)
	if err == nil {
		err = nameErr
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("zktest: reserving a port: %w", err)
	}
	return &port{fd: fd, number: name.(*syscall.SockaddrInet4).Port}, nil
}

func (p *port) release() { _ = syscall.Close(p.fd) }

// freeBytes is the space left in the file system of dir, 0 if it is not known.
func freeBytes(dir string) uint64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
