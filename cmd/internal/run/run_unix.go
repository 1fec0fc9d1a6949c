//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/cmd/internal/self"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// run waits for what the command is run under, runs it, and exits as it does.
func (j *job) run(s *term.Streams, c *conn.Connection) error {
	s.Told, j.left, j.lost = false, false, false // of this run
	r, err := j.begin(s, c)
	if err != nil {
		return err
	}
	defer r.end()
	if err = r.acquire(c); err != nil {
		r.stopSignals()
		return r.explain(j.giveUp(r.ctx, err), r.client, r.look)
	}
	err = r.settle()
	r.stopSignals()
	if err = term.BySignal(r.signalCtx, err); err != nil {
		return errors.Join(j.giveBack(), err)
	}
	status, err := r.perform()
	j.lost = status == term.ExitLost && err != nil // CMD may exit so, too
	s.Tell(r.account(status, err))
	if err != nil {
		s.Note("%v", err)
	}
	return term.Silently(status)
}

// run is a job under way: first the wait, then the command under a hold.
type run struct {
	*job
	*narrator
	client      *coord.Client
	killAfter   time.Duration
	begun       time.Time
	signalCtx   context.Context // ends by a signal
	ctx         context.Context // of the wait: ends with the timeout, too
	stopSignals func()          // ends the wait: signals go to the command then; to be called once
	cancel      context.CancelFunc

	hold        holding
	granted     time.Time
	attended    attended
	guard       *guard.Process
	tty         guard.Terminal
	pid         int       // the command's
	sent        time.Time // the deadline by the hold
	deadline    guard.Instant
	suspend     bool  // the stop key, or a signal, is to stop this process, too
	unstoppable []int // processes of the command that this user may not signal
}

// begin connects. What cannot be run is not waited for: it would spoil a turn,
// or an item's delivery, for nothing. The error has its status.
func (j *job) begin(s *term.Streams, c *conn.Connection) (r *run, err error) {
	if err := guard.Able(); err != nil {
		return nil, &term.ExitError{Code: term.ExitOwnFault, Err: err}
	}
	status, foreign, err := guard.Runnable(j.argv()[0])
	switch {
	case err != nil:
		return nil, &term.ExitError{Code: status, Err: err}
	case foreign:
		s.Note("%s runs as another user: it cannot be stopped by this one, also not when %s is about to be lost",
			j.argv()[0], j.Paths)
	}
	if j.signals == nil {
		j.signals = make(chan os.Signal, 16)
	}
	r = &run{job: j, narrator: newNarrator(s, j), begun: time.Now()}
	forward(r.signals)
	r.signalCtx, r.stopSignals = untilSignal(context.Background(), r.signals, r.stopSelf)
	r.ctx, r.cancel = context.WithCancel(r.signalCtx)
	if j.Timeout != nil {
		r.ctx, r.cancel = conn.Within(r.signalCtx, *j.Timeout)
	}
	c.Observe, c.Share = r.observe, r.attended.share
	j.ApplyTo(c, j.argv()[0])
	if r.client, err = c.Open(r.ctx); err == nil {
		if r.killAfter, err = j.grace(r.client.Info().SessionTimeout); err == nil {
			return r, nil
		}
		conn.HangUp(r.client)
	}
	r.stopSignals()
	r.cancel()
	return nil, j.giveUp(r.ctx, err)
}

func (r *run) acquire(c *conn.Connection) (err error) {
	waiting, over := r.wait(r.ctx)
	defer over()
	go standBy(waiting)
	go stayHeard(waiting, r.client)
	go r.accompany(waiting, r.client, r.look)
	r.hold, err = r.task.acquire(r.ctx, c, r.client)
	r.granted = time.Now()
	return err
}

// settle waits until the trust window is long enough for the command. After a
// long wait, writes are under way that move it: without them a command that
// takes long to end would be told to end at once. The session may be another
// one than at the beginning, of another length.
func (r *run) settle() (err error) {
	session := r.client.Info().SessionTimeout
	if r.killAfter, err = r.grace(session); err != nil {
		return &term.ExitError{Code: term.ExitOwnFault, Err: err}
	}
	short := func() bool { return time.Until(r.hold.Deadline()) < r.killAfter+session/16 }
	for looks := 0; looks < 10 && r.hold.Err() == nil && r.signalCtx.Err() == nil && short(); looks++ {
		select {
		case <-time.After(session / 100):
		case <-r.signalCtx.Done():
		}
	}
	return nil
}

// stayHeard reads six times in T while the command is waited for, beside the
// three pings of the client library: the trust window of what is granted begins
// with the answers before. The command is ended up to T/4 before the window's
// end, so it needs more of it than other holders.
func stayHeard(waiting context.Context, client *coord.Client) {
	for {
		select {
		case <-time.After(client.Info().SessionTimeout / 6):
			_, _, _ = client.Exists(waiting, "/")
		case <-waiting.Done():
			return
		}
	}
}

// end ends the session, or leaves it to run out.
func (r *run) end() {
	if r.hold.stop != nil {
		r.hold.stop()
	}
	if r.left {
		r.attended.leave()
	} else {
		conn.HangUp(r.client)
	}
	r.cancel()
}

// perform runs the command, ends the hold, and returns the status to exit with.
func (r *run) perform() (status int, err error) {
	waited := r.granted.Sub(r.begun)
	fields := map[string]any{"waited": term.Seconds(waited)}
	term.Put(fields, "node", r.hold.nodes())
	r.tell("holds", fields, "holds %s after %s; the node is %s", r.name(), term.Age(waited.Seconds()),
		strings.Join(r.hold.nodes(), ", "))
	end, err := r.execute()
	switch {
	case err != nil:
		return term.ExitOwnFault, errors.Join(err, r.giveBack())
	case end.Kind == guard.Failed:
		return end.Code, errors.Join(errors.New(string(end.Message)), r.giveBack())
	}
	if why := r.loss(end); why != nil {
		// Nothing is left to release but a node, perhaps, and that goes with
		// the session.
		return term.ExitLost, fmt.Errorf("lost %s before the command ended: %w", r.name(), why)
	}
	return r.complete(end.ExitCode(), end.Cause == guard.ByStop, r.patience)
}

// patience is for a wait after the command has ended. It returns a context that
// a signal ends, and what ends the wait.
func (r *run) patience() (ctx context.Context, over func()) {
	ctx, stopSignals := untilSignal(context.Background(), r.signals, r.stopSelf)
	waiting, told := r.wait(ctx)
	go r.accompany(waiting, r.client, r.look)
	return ctx, func() {
		told()
		stopSignals()
	}
}

// account is the JSON object of the end.
func (r *run) account(status int, err error) map[string]any {
	summary := r.summary(term.Seconds(time.Since(r.granted)), err)
	term.Put(summary, "path", r.Paths)
	summary["status"], summary["lost"] = status, r.lost
	summary["waited"] = term.Seconds(r.granted.Sub(r.begun))
	summary["outages"], _ = r.outage()
	if len(r.unstoppable) > 0 {
		summary["unstoppable"] = r.unstoppable
	}
	if err != nil {
		summary["error"] = term.Briefly(err).Error()
	}
	return summary
}

// guardCommand is the guard process that the command inherits everything from.
func (r *run) guardCommand() (*exec.Cmd, error) {
	cmd, err := self.Command(guard.Verb)
	if err != nil {
		return nil, err
	}
	cmd.Env = r.hold.environment(r.Paths)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, r.prepare(cmd)
}

// killTogether makes a command's context, when it ends, kill all its processes.
func killTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
