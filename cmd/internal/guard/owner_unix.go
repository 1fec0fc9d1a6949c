//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how many orders wait for a guard that does not read. What does not
// fit is dropped: without new deadlines the guard ends the command earlier, and
// a guard that does not answer is abandoned.
const backlog = 64

// Options says what to run and under which terms.
type Options struct {
	// Guard is this program with the argument Verb, with the environment and
	// the standard descriptors for the command.
	Guard     *exec.Cmd
	Argv      []string      // the command
	Deadline  Instant       // the lock can be trusted until then
	KillAfter time.Duration // TERM comes so long before KILL
	Terminal  Terminal      // the owner's, which goes to the command if the owner's group is in its foreground
	Keep      *os.File      // see [Process.Keep]; nil for none
	Farewell  *Farewell     // what the reaper does if it outlives the owner; nil for nothing
	Discard   string        // a file that is removed after the command if the owner is gone; "" for none
}

// Farewell has the reaper become this program's FarewellVerb when the owner is
// gone and nothing is left of the command.
type Farewell struct {
	Input  []byte        // of the verb; empty: the reaper ends without becoming the verb
	Within time.Duration // after that time there is nothing left to do
}

// Process is a command under guard, seen by its owner.
type Process struct {
	guard  *exec.Cmd
	events chan Event
	orders chan order
	over   chan struct{} // closed when no more orders are sent
	life   *os.File

	mu  sync.Mutex
	pid int // the command's, once known
}

// Start starts the guard, which starts the command. The outcome comes as the
// first event.
func Start(o Options) (*Process, error) {
	orders, err := openPipe()
	if err != nil {
		return nil, err
	}
	reports, err := openPipe()
	if err != nil {
		return nil, errors.Join(err, orders.close())
	}
	life, err := openSocket()
	if err != nil {
		return nil, errors.Join(err, orders.close(), reports.close())
	}
	if o.Keep != nil {
		pass(life.write, o.Keep, toKeep)
	}
	bequeath(life.write, o.Farewell)
	o.Guard.ExtraFiles = []*os.File{orders.read, reports.write, life.read}
	// Out of reach of the keys and of signals to the owner's group.
	o.Guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	underReaper(o.Guard)
	o.Guard.Env = append(o.Guard.Environ(), envDiscard+"="+o.Discard)
	err = o.Guard.Start()
	for _, theirs := range o.Guard.ExtraFiles {
		_ = theirs.Close()
	}
	if err != nil {
		_, _, _ = orders.write.Close(), reports.read.Close(), life.write.Close()
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	p := &Process{
		guard: o.Guard, events: make(chan Event, 4), orders: make(chan order, backlog), over: make(chan struct{}),
		life: life.write,
	}
	own := unix.Getpgrp()
	p.orders <- order{Deadline: o.Deadline, Setup: &setup{
		Argv: []byte(strings.Join(o.Argv, "\x00")), KillAfter: int64(o.KillAfter), OwnerGroup: own,
		Foreground: o.Terminal.Foreground() == own,
	}}
	go p.write(orders.write)
	go p.read(reports.read, orders.write)
	shed()
	return p, nil
}

// Events gives what happens to the command. The last one is Exited, Failed or
// Gone; then the channel is closed.
func (p *Process) Events() <-chan Event { return p.events }

// Extend informs the guard that the lock can now be trusted until deadline.
func (p *Process) Extend(deadline Instant) { p.send(order{Deadline: deadline}) }

// Signal passes a signal on to the command's group.
func (p *Process) Signal(s syscall.Signal) { p.send(order{Signal: s}) }

// Stop ends the command by TERM, and by KILL if it has not ended KillAfter
// later.
func (p *Process) Stop() { p.send(order{Stop: true}) }

// Drain is [Process.Stop] with a time of its own. A Stop that follows can make
// that time shorter.
func (p *Process) Drain(within time.Duration) { p.send(order{Stop: true, Within: int64(within)}) }

// Kill ends the command immediately.
func (p *Process) Kill() { p.send(order{Kill: true}) }

// Keep has the guard keep a file open for as long as a process of the command
// may live, even when the owner is gone: whoever waits for the file's end does
// not see it earlier. Keep does not wait.
func (p *Process) Keep(file *os.File) { pass(p.life, file, toKeep) }

// pass sends a file, and what it is for.
func pass(life, file *os.File, message ...byte) { tell(life, message, unix.UnixRights(int(file.Fd()))) }

// tell sends a message to the reaper, unless the socket is closed.
func tell(life *os.File, message, rights []byte) {
	if raw, err := life.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Sendmsg(int(fd), message, rights, nil, unix.MSG_DONTWAIT) })
	}
}

// lives tells the reaper that no farewell is needed.
func (p *Process) lives() { tell(p.life, []byte{living}, nil) }

// Abandon has everything killed without the guard, which does not answer.
func (p *Process) Abandon() {
	p.lives()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid > 0 {
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	abandon(p.guard.Process)
	_ = p.life.Close()
}

// send queues an order and never waits. The events show when the guard is gone,
// or does not read.
func (p *Process) send(o order) {
	select {
	case p.orders <- o:
	default:
	}
}

// write writes the orders as fast as the guard reads them.
func (p *Process) write(to io.Writer) {
	for encoder := json.NewEncoder(to); ; {
		select {
		case o := <-p.orders:
			_ = encoder.Encode(o)
		case <-p.over:
			return
		}
	}
}

// read passes the guard's reports on, and cleans up when they end.
func (p *Process) read(reports io.ReadCloser, orders io.Closer) {
	defer close(p.events)
	defer reports.Close()
	over := false
	for from := json.NewDecoder(reports); !over; {
		var e Event
		if from.Decode(&e) != nil {
			break
		}
		over = e.Kind == Exited || e.Kind == Failed || e.Kind == Gone
		if over {
			p.lives()
		}
		p.knows(e)
		p.events <- e
	}
	if !over { // guard and reaper are gone
		p.Abandon()
		p.events <- Event{Kind: Gone, At: Now(), Cause: ByKill, Unsure: true}
	}
	close(p.over)
	_ = orders.Close()
	_ = p.guard.Wait()
	_ = p.life.Close() // not earlier: what may be left would be killed
}

// knows keeps the command's process id for as long as the process exists.
func (p *Process) knows(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case Started:
		p.pid = e.PID
	case Exited, Failed, Gone:
		p.pid = 0
	}
}

// pipe is both ends of one.
type pipe struct{ read, write *os.File }

func (p pipe) close() error { return errors.Join(p.read.Close(), p.write.Close()) }

func openPipe() (p pipe, err error) {
	p.read, p.write, err = os.Pipe()
	return p, err
}

// openSocket is a pipe that carries files, too.
func openSocket() (pipe, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return pipe{}, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return pipe{os.NewFile(uintptr(fds[0]), "life"), os.NewFile(uintptr(fds[1]), "life")}, nil
}
