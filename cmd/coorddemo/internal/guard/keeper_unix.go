//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// glance is how often the guard looks at the clock when nothing happens. Timers stand still while the system is
	// suspended; the clock that counts does not.
	glance = 100 * time.Millisecond
	// rekill is the pause between two rounds of KILL, for processes that were being born during the first.
	rekill = 5 * time.Millisecond
	// sweeps bounds those rounds once the command itself has ended.
	sweeps = 200
)

// keeper is the guard process.
type keeper struct {
	setup    *setup
	reports  *json.Encoder
	tty      Terminal
	pid      int
	deadline Instant

	stopBy  Instant // KILL then, if not 0: Stop was called
	warned  bool    // TERM has been sent for the present deadline
	killing bool
	cause   Cause
	ended   *Event // the command's end
	kills   int    // rounds of KILL since then
}

// Main is the guard process that Start starts. It returns when the command has ended.
func Main() error {
	// The parent-death signal of the command comes when the thread that forked it ends.
	runtime.LockOSThread()
	outlive()
	orders := json.NewDecoder(os.NewFile(ordersFD, "orders"))
	k := &keeper{reports: json.NewEncoder(os.NewFile(reportsFD, "reports"))}
	var first order
	if err := orders.Decode(&first); err != nil || first.Setup == nil || len(first.Setup.Argv) == 0 {
		return errors.New("this verb is for coorddemo itself: no orders on descriptor 3")
	}
	k.setup, k.deadline = first.Setup, first.Deadline
	keepFromCommand()
	adoptOrphans()
	if !k.start() {
		return nil
	}
	k.keep(decode(orders), reap(k.pid))
	return nil
}

// outlive keeps the guard alive when it is signalled. It is in a group of its own, so such signals come from people who
// mean it; it has to outlive them nevertheless. Signals that are handled, unlike ignored ones, have their default effect
// again in the command; those that were ignored from the start, as under nohup, stay so.
func outlive() {
	drop := make(chan os.Signal, 1)
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGALRM,
	} {
		if !signal.Ignored(s) {
			signal.Notify(drop, s)
		}
	}
}

// start runs the command, unless it is too late for that already.
func (k *keeper) start() bool {
	if left := k.deadline.Sub(Now()); left <= time.Duration(k.setup.KillAfter) {
		k.report(Event{Kind: Exited, Cause: ByDeadline, At: Now(), Status: syscall.WaitStatus(syscall.SIGKILL)})
		return false
	}
	k.tty = OpenTerminal()
	tty := k.tty
	if !k.setup.Foreground {
		tty = Terminal{}
	}
	var err error
	if k.pid, err = start(k.setup.Argv, tty); err != nil {
		event := Event{Kind: Failed, Code: notExecutable, Message: err.Error()}
		var because *startError
		if errors.As(err, &because) {
			event.Code = because.code
		}
		// A child that could not exec may have taken the terminal along.
		signal.Ignore(syscall.SIGTTOU)
		k.tty.TakeBack(0, k.setup.OwnerGroup)
		k.report(event)
		return false
	}
	// Not earlier: the command would inherit it.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	k.report(Event{Kind: Started, PID: k.pid})
	return true
}

// keep obeys the orders and the clock until the command has ended. If it was made to end, what it leaves behind has to
// end too, and has the same time for it. If it ended by itself, its background processes are left alone, as a shell
// would.
func (k *keeper) keep(orders <-chan order, children <-chan syscall.WaitStatus) {
	timer := time.NewTimer(0)
	for k.ended == nil || k.cause != ByItself && k.kills < sweeps && k.alive() {
		select {
		case o, ok := <-orders:
			if !ok { // the owner is gone
				o, orders = order{Kill: true}, nil
			}
			k.obey(o)
		case status := <-children:
			if status.Stopped() {
				k.report(Event{Kind: Stopped, Signal: status.StopSignal()})
				continue
			}
			k.ended = &Event{Kind: Exited, Status: status, At: Now(), Cause: k.cause}
		case <-timer.C:
		}
		timer.Reset(k.act(Now()))
	}
	k.tty.TakeBack(k.pid, k.setup.OwnerGroup)
	k.report(*k.ended)
}

func (k *keeper) obey(o order) {
	if o.Deadline != 0 {
		k.deadline = o.Deadline
		if k.warned && k.ended == nil && k.deadline.Sub(Now()) > time.Duration(k.setup.KillAfter) {
			// The lock is out of danger again, and so is a command that did not end at TERM.
			k.warned = false
			if k.cause == ByDeadline {
				k.cause = ByItself
			}
		}
	}
	if o.Signal != 0 {
		k.signal(o.Signal)
	}
	if o.Stop && k.stopBy == 0 {
		k.stopBy = Now().Add(time.Duration(k.setup.KillAfter))
		k.blame(ByStop)
		k.terminate()
	}
	if o.Kill {
		k.blame(ByKill)
		k.killing = true
	}
}

// act does what is due and tells when to look again.
func (k *keeper) act(now Instant) time.Duration {
	left := k.deadline.Sub(now)
	switch {
	case left <= 0:
		k.cause, k.killing = ByDeadline, true // whatever the command was being stopped for before
	case k.stopBy != 0 && now >= k.stopBy:
		k.killing = true
	}
	if k.killing {
		k.signalAll(syscall.SIGKILL)
		if k.ended != nil {
			k.kills++
		}
	}
	if k.killing || k.ended != nil {
		return rekill
	}
	warnIn := left - time.Duration(k.setup.KillAfter)
	if warnIn <= 0 && !k.warned {
		k.warned = true
		k.blame(ByDeadline)
		k.terminate()
	}
	next := left
	if !k.warned {
		next = min(next, warnIn)
	}
	if k.stopBy != 0 {
		next = min(next, k.stopBy.Sub(now))
	}
	return max(0, min(next, glance))
}

// blame records the first reason for ending the command.
func (k *keeper) blame(c Cause) {
	if k.cause == ByItself {
		k.cause = c
	}
}

// terminate asks the command to end. What is stopped has to be continued to hear of it.
func (k *keeper) terminate() {
	k.signalAll(syscall.SIGTERM)
	k.signalAll(syscall.SIGCONT)
}

func (k *keeper) signal(s syscall.Signal) { _ = unix.Kill(-k.pid, s) }

// signalAll reaches the group and then, each once, the descendants outside it.
func (k *keeper) signalAll(s syscall.Signal) {
	k.signal(s)
	for _, pid := range descendants() {
		if group, err := unix.Getpgid(pid); err == nil && group != k.pid {
			_ = unix.Kill(pid, s)
		}
	}
}

// alive tells whether anything of the command's is left besides itself.
func (k *keeper) alive() bool {
	return unix.Kill(-k.pid, 0) != unix.ESRCH || len(descendants()) > 0
}

func (k *keeper) report(e Event) {
	// It fails only when the owner is gone, who needs no report then.
	_ = k.reports.Encode(e)
}

// decode gives the orders as they come; the channel is closed when the owner is gone.
func decode(from *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if from.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// reap collects ended descendants, and gives the stops and the end of the command.
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
