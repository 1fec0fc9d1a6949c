//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// writeWithin bounds the wait for a guard that does not read its orders.
const writeWithin = time.Second

// Options says what to run and under which terms.
type Options struct {
	Guard     *exec.Cmd     // runs Main; with the environment and the standard descriptors for the command
	Argv      []string      // the command
	Deadline  Instant       // the lock can be trusted until then
	KillAfter time.Duration // TERM comes so long before KILL
	Terminal  Terminal      // the owner's, which goes to the command if the owner's group is in its foreground
}

// Process is a command under guard, seen by its owner.
type Process struct {
	guard  *exec.Cmd
	events chan Event

	mu     sync.Mutex // orders are written whole
	orders *os.File
	pid    int // the command's, once known
}

// Start starts the guard, which starts the command. The outcome comes as the first event.
func Start(o Options) (*Process, error) {
	ordersRead, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, reportsWrite, err := os.Pipe()
	if err != nil {
		_, _ = ordersRead.Close(), orders.Close()
		return nil, err
	}
	o.Guard.ExtraFiles = []*os.File{ordersRead, reportsWrite}
	// Out of reach of the keys and of whoever signals the owner's group.
	o.Guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = o.Guard.Start()
	_, _ = ordersRead.Close(), reportsWrite.Close()
	if err != nil {
		_, _ = orders.Close(), reports.Close()
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	p := &Process{guard: o.Guard, orders: orders, events: make(chan Event, 4)}
	go p.read(reports)
	own := unix.Getpgrp()
	first := order{Deadline: o.Deadline, Setup: &setup{
		Argv: o.Argv, KillAfter: int64(o.KillAfter), OwnerGroup: own, Foreground: o.Terminal.Foreground() == own,
	}}
	// It may be longer than the pipe, and the guard may take its time to come up; it has until the deadline.
	p.write(first, max(writeWithin, o.Deadline.Sub(Now())))
	return p, nil
}

// Events gives what happens to the command. The last one is Exited, Failed or Gone; then the channel is closed.
func (p *Process) Events() <-chan Event { return p.events }

// Extend tells that the lock can now be trusted until deadline.
func (p *Process) Extend(deadline Instant) { p.send(order{Deadline: deadline}) }

// Signal passes a signal on to the command's group.
func (p *Process) Signal(s syscall.Signal) { p.send(order{Signal: s}) }

// Stop ends the command by TERM, and by KILL if it has not ended KillAfter later.
func (p *Process) Stop() { p.send(order{Stop: true}) }

// Kill ends the command at once.
func (p *Process) Kill() { p.send(order{Kill: true}) }

// Abandon kills the guard and the command's group without asking the guard: it does not answer.
func (p *Process) Abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid > 0 {
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	_ = p.guard.Process.Kill()
}

// send hands an order over. That the guard is gone, or does not read, shows in the events.
func (p *Process) send(o order) { p.write(o, writeWithin) }

func (p *Process) write(o order, within time.Duration) {
	data, err := json.Marshal(o)
	if err != nil {
		return // an order is made of numbers and strings
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.orders.SetWriteDeadline(time.Now().Add(within))
	_, _ = p.orders.Write(append(data, '\n'))
}

// read passes the guard's reports on, and cleans up when they end.
func (p *Process) read(reports io.ReadCloser) {
	defer close(p.events)
	defer reports.Close()
	over := false
	for from := json.NewDecoder(reports); !over; {
		var e Event
		if from.Decode(&e) != nil {
			break
		}
		if e.Kind == Started {
			p.mu.Lock()
			p.pid = e.PID
			p.mu.Unlock()
		}
		over = e.Kind == Exited || e.Kind == Failed
		p.events <- e
	}
	if !over {
		// Nobody watches the deadline any more. The command itself dies with the guard where the kernel knows how.
		p.Abandon()
		p.events <- Event{Kind: Gone, At: Now(), Cause: ByKill}
	}
	_ = p.orders.Close()
	_ = p.guard.Wait()
}
