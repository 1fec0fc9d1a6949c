//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

const (
	// abandonAfter is how long the guard may take to kill; then the reaper does
	// it.
	abandonAfter = 100 * time.Millisecond
	// despairAfter is how long the reaper may take.
	despairAfter = 2 * time.Second
	// checkWithin bounds the question whether the lock was still held at the
	// end.
	checkWithin = time.Second
)

// discarded is a file that the task has made for the command, or "".
func (r *run) discarded() string {
	if t, ok := r.task.(interface{ discarded() string }); ok {
		return t.discarded()
	}
	return ""
}

// execute runs the command under a guard and returns what became of it.
func (r *run) execute() (end guard.Event, err error) {
	cmd, err := r.guardCommand()
	if err != nil {
		return end, err
	}
	r.tty = guard.OpenTerminal()
	defer r.tty.Close()
	r.sent = r.hold.Deadline()
	r.deadline = guard.InstantOf(r.sent)
	r.guard, err = r.attended.guard(guard.Options{
		Guard: cmd, Argv: r.argv(), Deadline: r.deadline, KillAfter: r.killAfter, Terminal: r.tty,
		Farewell: farewell(r.client),
		Discard:  r.discarded(),
	})
	if err != nil {
		return end, err
	}
	// From here on: the stop key is the command's affair; and this process has
	// to write to the terminal and to take it back although it is in the
	// background. Not earlier, for the guard would have inherited it.
	if !signal.Ignored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Notify(r.signals, syscall.SIGTTOU)
	}
	signal.Notify(r.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH)
	defer signal.Reset(syscall.SIGCONT, syscall.SIGWINCH)
	end = r.watch()
	made := end.Kind != guard.Failed && (end.Cause != guard.ByItself || end.Status.Signaled())
	r.tty.TakeBack(r.pid, syscall.Getpgrp(), made)
	return end, nil
}

// watch keeps the guard informed and returns when the command has ended.
func (r *run) watch() (end guard.Event) {
	look := time.NewTicker(max(time.Millisecond, r.client.Info().SessionTimeout/40))
	defer look.Stop()
	lost, revoked, unwell := r.hold.Done(), r.hold.Revoked(), r.hold.unwell()
	if r.IgnoreRevoke {
		revoked = nil
	}
	var tooLong, stuck, late, abandon, despair <-chan time.Time
	if r.MaxHold != nil {
		tooLong = time.After(time.Until(r.granted.Add(*r.MaxHold)))
	}
	for {
		select {
		case e, more := <-r.guard.Events():
			if !more {
				return end
			}
			end = e
			r.hear(e)
		case <-look.C:
			r.extend()
		case s := <-r.signals:
			r.pass(s.(syscall.Signal))
			if r.signalled && r.StopGrace != nil && stuck == nil {
				stuck = time.After(*r.StopGrace)
			}
		case <-revoked:
			revoked = nil
			r.streams.Note("another client asked for %s: ending the command", r.Paths)
			r.guard.Stop()
		case <-tooLong:
			r.streams.Note("held %s for %v: ending the command", r.Paths, *r.MaxHold)
			r.guard.Stop()
			late = time.After(r.client.Info().SessionTimeout / 2) // more than the guard needs
		case <-stuck:
			r.streams.Note("the command runs on for %v after a signal: ending it", *r.StopGrace)
			r.guard.Stop()
			late = time.After(r.client.Info().SessionTimeout / 2)
		case <-unwell:
			unwell = nil
			r.streams.Note("%v: ending the command", context.Cause(r.hold.well))
			r.guard.Stop()
		case <-lost:
			lost, tooLong, stuck, late = nil, nil, make(chan time.Time), time.After(0)
		case <-late:
			r.guard.Kill()
			abandon = time.After(abandonAfter)
		case <-abandon:
			r.guard.Abandon()
			despair = time.After(despairAfter)
		case <-despair:
			return guard.Event{Kind: guard.Gone, At: guard.Now(), Cause: guard.ByKill, Unsure: true}
		}
	}
}

// extend informs the guard when the deadline has moved.
func (r *run) extend() {
	now := r.hold.Deadline()
	if !now.Equal(r.sent) && r.hold.Err() == nil {
		r.sent, r.deadline = now, guard.InstantOf(now)
		r.guard.Extend(r.deadline)
	}
	r.window(time.Until(now), r.killAfter, r.client.Info().SessionTimeout)
}

func (r *run) hear(e guard.Event) {
	switch e.Kind {
	case guard.Started:
		r.pid = e.PID
	case guard.Stopped:
		r.stopped(e.Signal)
	case guard.Denied:
		r.unstoppable = e.Left
		r.streams.Note(
			"process %s of the command runs as another user: it cannot be stopped by this one, also not when %s is about to be lost",
			numbers(e.Left), r.Paths)
	}
}

func numbers(pids []int) string { return strings.Trim(fmt.Sprint(pids), "[]") }

// stopped follows the command: where the command has the terminal, the shell
// sees only this process stop, and gets the terminal back when it does. The
// servers hear nothing meanwhile.
func (r *run) stopped(by syscall.Signal) {
	if !r.suspend && (r.pid == 0 || r.tty.Foreground() != r.pid) {
		r.streams.Note("%v stopped the command; it goes on holding %s", by, r.Paths)
		return
	}
	r.suspend = false
	r.streams.Note("stopped; %s is lost, and the command ended, unless continued within %v",
		r.Paths, (r.deadline.Sub(guard.Now()) - r.killAfter).Round(100*time.Millisecond))
	if told, ok := r.streams.Err.(*term.Notes); ok {
		told.Drain()
	}
	r.tty.TakeBack(r.pid, syscall.Getpgrp(), false)
	signal.Reset(syscall.SIGTSTP)
	// The others in the group, too, as the key would have done had the command
	// been one of them.
	_ = syscall.Kill(0, syscall.SIGTSTP)
	term.StopSelf()
	signal.Notify(r.signals, syscall.SIGTSTP)
	r.resume()
}

// resume gives the terminal to the command if this process has been brought to
// the foreground, and continues it.
func (r *run) resume() {
	if r.pid != 0 && r.tty.Foreground() == syscall.Getpgrp() {
		r.tty.Give(r.pid)
	}
	r.guard.Signal(syscall.SIGCONT)
}

func (r *run) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGTTOU: // of the wait that is over
	case syscall.SIGCONT:
		r.resume()
	case syscall.SIGTSTP:
		r.suspend = true
		r.guard.Signal(s)
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		r.signalled, r.ending = true, r.ending || s != syscall.SIGHUP
		r.guard.Signal(s)
	default:
		r.guard.Signal(s)
	}
}

// loss returns why the hold was lost before the command ended, or nil if it was
// not.
func (r *run) loss(end guard.Event) error {
	err := r.hold.Err()
	switch {
	case !end.Over():
		r.left = true
		return r.remains(end)
	case err == nil && end.Cause == guard.ByKill:
		return errors.New("a process that guards the command was killed, and the command with it")
	case end.Cause == guard.ByDeadline && err == nil:
		return errors.New("the servers did not confirm it any more, so the command was ended in time")
	case r.overSince(err) && end.Cause != guard.ByDeadline && end.Cause != guard.ByKill && end.At < r.deadline:
		return nil // over by now, but not when the command ended: this process was frozen in between
	case err != nil:
		return err
	}
	// The news of a loss may be under way still. A server that does not answer
	// has not given the session up either: the trust window is open.
	ctx, cancel := context.WithTimeout(context.Background(), checkWithin)
	defer cancel()
	return firstLoss(ctx, r.hold.holds, func(ctx context.Context, h coord.Held) error {
		_, err := h.Txn(ctx)
		return err
	})
}

// firstLoss asks all together, since they share the time, and returns the first
// loss reported, or nil if there is none.
func firstLoss[T any](ctx context.Context, all []T, ask func(context.Context, T) error) error {
	asked, ctx := errgroup.WithContext(ctx)
	for _, one := range all {
		asked.Go(func() error {
			if err := ask(ctx, one); errors.Is(err, coord.ErrLost) {
				return err
			}
			return nil
		})
	}
	return asked.Wait()
}

// remains says which processes of the command may still run.
func (r *run) remains(end guard.Event) error {
	what := "the processes that guard the command were killed, or do not answer, and something of it"
	if len(end.Left) > 0 {
		r.unstoppable = end.Left
		what = fmt.Sprintf("process %s of the command runs as another user, could not be stopped, and", numbers(end.Left))
	}
	return fmt.Errorf("%s may be running still; nothing is released before the session ends, in at most %v", what,
		r.client.Info().SessionTimeout)
}

// overSince reports whether the hold ended because its time was over: no server
// has confirmed it until the deadline. The session may have been given up for
// the same reason by then.
func (r *run) overSince(err error) bool {
	return errors.Is(err, coord.ErrWindowOver) || errors.Is(err, coord.ErrSessionExpired) && guard.Now() >= r.deadline
}
