//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// glance is how often the guard looks at the clock when nothing happens.
	// Timers stand still while the system is suspended; the clock that counts
	// does not.
	glance = 100 * time.Millisecond
	// surveyEvery is how often the guard looks whether it may still signal the
	// command's processes.
	surveyEvery = time.Second
	// longAgo is an instant before any other.
	longAgo Instant = 1
)

// keeper is the guard process.
type keeper struct {
	setup    *setup
	outbox   *outbox
	tty      Terminal
	pid      int
	parent   int // of the guard
	deadline Instant
	discard  string // to be removed after the command if the owner is gone

	cause    Cause   // why the command has to end; it never goes back to ByItself
	killAt   Instant // KILL then, if not 0: the command has been sent TERM
	ended    *Event  // the command's end
	sweep    sweep
	surveyed Instant // when the guard last looked which processes it may signal
	denied   bool    // there is a process that it may not signal, and it has said so
}

// stand is the process that Start starts. It returns when the command has
// ended.
func stand() error {
	// The parent-death signal of the command comes when the thread that forked
	// it ends.
	runtime.LockOSThread()
	shed()
	outlive()
	beCalled(os.Args[0])
	adoptOrphans()
	discard := os.Getenv(envDiscard)
	_ = os.Unsetenv(envDiscard) // it is not for the command, nor for the reaper's guard
	if isReaper() {
		return reaper(discard)
	}
	orders := json.NewDecoder(os.NewFile(ordersFD, "orders"))
	k := &keeper{parent: os.Getppid(), discard: discard}
	var first order
	if err := orders.Decode(&first); err != nil || first.Setup == nil || len(first.Setup.Argv) == 0 {
		return errors.New("this verb is for the program itself: no orders on descriptor 3")
	}
	k.setup, k.deadline = first.Setup, first.Deadline
	k.outbox = newOutbox(os.NewFile(reportsFD, "reports"))
	keepFromCommand()
	more := decode(orders)
	if last := k.start(more); last != nil {
		k.outbox.finish(*last)
		return nil
	}
	prevail()
	k.outbox.finish(k.keep(more, reap(k.pid)))
	return nil
}

// outlive keeps the guard alive when it is signalled. It is in a group of its
// own, so such signals are meant for it; it has to survive them nevertheless.
// Signals that are handled, unlike ignored ones, have their default effect
// again in the command; signals ignored from the start, as under nohup, stay
// ignored.
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

// start runs the command, unless it is already too late for that. If it does
// not run, it returns the last event.
func (k *keeper) start(orders <-chan order) *Event {
	early, timely := k.timely(orders)
	if !timely {
		return &Event{Kind: Exited, Cause: ByDeadline, At: Now(), Status: syscall.WaitStatus(syscall.SIGKILL)}
	}
	k.tty = OpenTerminal()
	tty := k.tty
	if !k.setup.Foreground {
		tty = Terminal{}
	}
	var err error
	if k.pid, err = start(strings.Split(string(k.setup.Argv), "\x00"), tty); err != nil {
		// A child that could not exec may have taken the terminal along.
		signal.Ignore(syscall.SIGTTOU)
		k.tty.TakeBack(0, k.setup.OwnerGroup, false)
		return &Event{Kind: Failed, Code: statusOf(err), Message: []byte(err.Error())}
	}
	// Not earlier: the command would inherit it.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	k.outbox.report(Event{Kind: Started, PID: k.pid})
	for _, s := range early {
		k.signal(s)
	}
	return nil
}

// timely waits until the deadline leaves time for the command. On a busy
// machine the first deadline may be old by now, and the next one on its way.
// early are the signals for the command that came meanwhile.
func (k *keeper) timely(orders <-chan order) (early []syscall.Signal, timely bool) {
	for {
		left := k.deadline.Sub(Now())
		if left > time.Duration(k.setup.KillAfter) {
			return early, true
		}
		select {
		case o, ok := <-orders:
			if !ok || o.Stop || o.Kill {
				return nil, false
			}
			if o.Deadline != 0 {
				k.deadline = o.Deadline
			}
			if o.Signal != 0 {
				early = append(early, o.Signal)
			}
		case <-time.After(max(left, glance)):
			return nil, false
		}
	}
}

// keep obeys the orders and the clock until the command has ended, and returns
// its end. If the command was made to end, the processes that it leaves behind
// have to end too, within the same time. If it ended by itself, its background
// processes are left alone, as a shell would.
func (k *keeper) keep(orders <-chan order, children <-chan syscall.WaitStatus) Event {
	for timer := time.NewTimer(0); !k.over(); {
		select {
		case o, ok := <-orders:
			if !ok { // the owner is gone
				o, orders = order{Kill: true}, nil
			}
			k.obey(o)
		case status := <-children:
			k.hear(status)
		case <-timer.C:
		}
		if !k.over() {
			timer.Reset(k.act(Now()))
		}
	}
	if orders == nil { // the owner is gone
		_ = os.Remove(k.discard)
	}
	k.tty.TakeBack(k.pid, k.setup.OwnerGroup, k.cause != ByItself || k.ended.Status.Signaled())
	k.ended.Cause, k.ended.Left = k.cause, k.sweep.left
	return *k.ended
}

// over reports whether the command has ended, and what has to end with it.
func (k *keeper) over() bool { return k.ended != nil && (k.cause == ByItself || k.sweep.over()) }

func (k *keeper) hear(status syscall.WaitStatus) {
	if status.Stopped() {
		k.outbox.report(Event{Kind: Stopped, Signal: status.StopSignal()})
		return
	}
	k.ended, k.sweep = &Event{Kind: Exited, Status: status, At: Now()}, sweep{}
}

func (k *keeper) obey(o order) {
	if o.Deadline != 0 {
		k.deadline = o.Deadline
	}
	if o.Signal != 0 {
		k.signal(o.Signal)
	}
	if o.Stop {
		killAt := Now().Add(time.Duration(cmp.Or(o.Within, k.setup.KillAfter)))
		if k.cause == ByStop {
			k.killAt = min(k.killAt, killAt)
		}
		k.end(ByStop, killAt)
	}
	if o.Kill {
		k.kill(ByKill)
	}
}

// act does what is due and returns when to look again.
func (k *keeper) act(now Instant) time.Duration {
	left := k.deadline.Sub(now)
	warnIn := left - time.Duration(k.setup.KillAfter)
	switch {
	case left <= 0:
		k.cause = ByDeadline // even if the command was being stopped for another cause
		k.kill(ByDeadline)
	case os.Getppid() != k.parent: // the reaper, which outlives the guard, was killed
		k.kill(ByKill)
	case warnIn <= 0:
		k.end(ByDeadline, k.deadline)
	}
	switch {
	case k.killAt != 0 && now >= k.killAt:
		return k.sweep.round(k.pid, syscall.SIGKILL)
	case k.ended != nil: // its descendants have the time that it had itself
		return k.sweep.round(k.pid, 0)
	}
	k.survey(now)
	next := warnIn
	if k.killAt != 0 {
		next = min(left, k.killAt.Sub(now))
	}
	return max(0, min(next, glance))
}

// end has the command end by TERM now and by KILL later. A later deadline
// changes nothing: the command was interrupted already.
func (k *keeper) end(why Cause, killAt Instant) {
	if k.killAt == 0 {
		k.cause, k.killAt = why, killAt
		k.terminate()
	}
}

// kill has the command end by KILL now.
func (k *keeper) kill(why Cause) {
	if k.cause == ByItself {
		k.cause = why
	}
	k.killAt = longAgo
}

// terminate sends TERM, and CONT, without which a stopped process would not
// receive it.
func (k *keeper) terminate() {
	outside := k.outside()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		k.signal(s)
		for _, pid := range outside {
			_ = unix.Kill(pid, s)
		}
	}
	k.surveyed = longAgo
}

func (k *keeper) signal(s syscall.Signal) { _ = unix.Kill(-k.pid, s) }

// outside are the descendants that are not in the command's group.
func (k *keeper) outside() (found []int) {
	eachDescendant(func(pid int) {
		if group, err := unix.Getpgid(pid); err == nil && group != k.pid {
			found = append(found, pid)
		}
	})
	return found
}

// survey reports to the owner, once, that there are processes that this user
// may not signal: they changed their credentials, and cannot be stopped in
// time.
func (k *keeper) survey(now Instant) {
	if k.denied || now.Sub(k.surveyed) < surveyEvery && unix.Kill(k.pid, 0) != unix.EPERM {
		return
	}
	k.surveyed = now
	var left []int
	eachDescendant(func(pid int) {
		if unix.Kill(pid, 0) == unix.EPERM {
			left = append(left, pid)
		}
	})
	k.denied = len(left) > 0 && k.outbox.report(Event{Kind: Denied, Left: left})
}

// decode gives the orders as they come; the channel is closed when the owner is
// gone.
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
