//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/cmd/internal/self"
	"github.com/zkcoord/zkcoord/coord"
)

// releaseWithin bounds what happens after CMD has ended. Others wait for the session's end then, if they must.
const releaseWithin = 2 * time.Second

type guardVerb struct{}

// Run is the guard process.
func (guardVerb) Run() error {
	if err := guard.Main(); err != nil {
		return usageError("%w", err)
	}
	return nil
}

// passedOn are the signals that CMD gets when this process does. Stop and continue keys are a matter of their own.
var passedOn = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

// stopping are those that stop this process while it waits. The runtime does not give up its handler of a signal that it
// was once asked to notify, nor its ignoring one, so that they would be lost in the next wait.
var stopping = []os.Signal{syscall.SIGTSTP, syscall.SIGTTOU}

// forward has both come to signals, but for those that were ignored from the start: by nohup, or by a shell for its
// background processes. That nobody reads a note any more must not end this process.
func forward(signals chan<- os.Signal) {
	for _, sig := range slices.Concat(passedOn, stopping) {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// endsWait tells whether a signal ends a wait. It may have stopped this process first.
func endsWait(sig os.Signal) bool {
	if slices.Contains(stopping, sig) {
		stopSelf()
	}
	return slices.Contains(passedOn, sig)
}

// wait is the time before something is held.
type wait struct {
	ctx       context.Context // ends with the time-out or by a signal
	calm      func()          // leaves the signals to others; to be called once
	client    *coord.Client
	verb      *lockVerb
	killAfter time.Duration
	signals   chan os.Signal
	begun     time.Time
	cancel    context.CancelFunc
	left      bool // something of CMD's may be running still: nothing is released, the session runs out

	unstoppable []int // processes of CMD that this user may not signal
}

// begin connects. What cannot be run is not waited for: it would spoil a turn, or an item's delivery, for nothing. The
// error has its status.
func (v *lockVerb) begin(s *streams, c *connection) (w *wait, err error) {
	if err := guard.Able(); err != nil {
		return nil, &exitError{exitOwnFault, err}
	}
	status, foreign, err := guard.Runnable(v.command()[0])
	switch {
	case err != nil:
		return nil, &exitError{status, err}
	case foreign:
		s.note("%s runs as another user: it cannot be stopped by this one, also not when %s is about to be lost", v.command()[0], v.Path)
	}
	w = &wait{verb: v, signals: make(chan os.Signal, 16), begun: time.Now()}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	if v.Timeout != nil {
		w.ctx, w.cancel = within(context.Background(), *v.Timeout)
	}
	forward(w.signals)
	w.ctx, w.calm = untilSignal(w.ctx, w.signals)
	if w.client, err = c.open(w.ctx); err == nil {
		if w.killAfter, err = v.killAfter(w.client.SessionTimeout()); err == nil {
			return w, nil
		}
		hangUp(w.client)
	}
	w.calm()
	w.cancel()
	return nil, v.giveUp(w.ctx, err)
}

// end ends the session, or leaves it to run out.
func (w *wait) end() {
	if !w.left {
		hangUp(w.client)
	}
	w.cancel()
}

// run is what comes after the wait.
func (w *wait) run(s *streams, h *coord.Hold) *run {
	return &run{
		wait: w, verb: w.verb, streams: s, hold: h, client: w.client, killAfter: w.killAfter, signals: w.signals, granted: time.Now(),
	}
}

// Run waits for the lock, runs the command, and releases.
func (v *lockVerb) Run(s *streams, c *connection) error {
	if err := v.check(); err != nil {
		return err
	}
	w, err := v.begin(s, c)
	if err != nil {
		return s.inVain(s.err, v.Path, err)
	}
	defer w.end()
	h, err := v.acquire(w.ctx, s, c, w.client)
	w.calm()
	if err != nil {
		return s.inVain(s.err, v.Path, v.giveUp(w.ctx, err))
	}
	var sig signalled
	if errors.As(context.Cause(w.ctx), &sig) { // it came at the last moment
		return s.inVain(s.err, v.Path, errors.Join(v.release(h, w.client), v.giveUp(w.ctx, sig)))
	}
	r := w.run(s, h)
	status, err := r.command()
	v.left = w.left
	if s.json {
		story := map[string]any{
			"path": v.Path, "node": h.Node(), "status": status, "lost": status == exitLost,
			"waited": seconds(r.granted.Sub(w.begun)), "held": seconds(time.Since(r.granted)),
		}
		if h.Exclusive() {
			story["token"] = h.Token()
		}
		w.addTo(story, err)
		_ = writeJSON(s.err, story)
	}
	if err != nil {
		s.note("%v", err)
	}
	return silently(status)
}

// addTo completes the story of a command that JSON tells.
func (w *wait) addTo(story map[string]any, err error) {
	if len(w.unstoppable) > 0 {
		story["unstoppable"] = w.unstoppable
	}
	if err != nil {
		story["error"] = briefly(err).Error()
	}
}

// untilSignal makes a context that ends at the first signal; calm leaves the signals to others again.
func untilSignal(parent context.Context, signals <-chan os.Signal) (ctx context.Context, calm func()) {
	ctx, end := context.WithCancelCause(parent)
	quiet, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-signals:
				if endsWait(sig) {
					end(signalled{sig.(syscall.Signal)})
					signal.Reset(passedOn...) // a second one ends the process at once
					return
				}
			case <-quiet:
				return
			}
		}
	}()
	return ctx, func() {
		close(quiet)
		<-done
	}
}

// acquire gets the lock. A lock that is only tried is not waited for longer than a session would be.
func (v *lockVerb) acquire(ctx context.Context, s *streams, c *connection, client *coord.Client) (*coord.Hold, error) {
	m, err := v.locker(client)
	if err != nil {
		return nil, err
	}
	if v.Try {
		trying, cancel := within(ctx, c.ConnectTimeout)
		defer cancel()
		h, err := m.TryAcquire(trying)
		if err != nil && ctx.Err() == nil && trying.Err() != nil {
			return nil, exitWith(exitUnavailable, "no answer: %w", err)
		}
		return h, err
	}
	waiting, granted := context.WithCancel(ctx)
	defer granted()
	go v.tellWhy(waiting, s, client)
	return m.Acquire(ctx)
}

// tellWhy tells a person who is in front when the wait is not short.
func (v *lockVerb) tellWhy(waiting context.Context, s *streams, client *coord.Client) {
	if !isTerminal(s.err) {
		return
	}
	select {
	case <-time.After(time.Second):
	case <-waiting.Done():
		return
	}
	r, err := inspect(waiting, client, v.Path)
	if holders := r.holders(); err == nil && len(holders) > 0 {
		s.note("waiting for %s, held by %s for %s", v.Path, holders[0].owner(), holders[0].age())
	}
}

// giveUp gives the failure to get the lock its status.
func (v *lockVerb) giveUp(ctx context.Context, err error) error {
	var sig signalled
	var known *exitError
	switch {
	case errors.As(context.Cause(ctx), &sig):
		return silently(128 + int(sig.Signal))
	case errors.As(err, &known):
		return err
	case errors.Is(err, coord.ErrBusy):
		return &exitError{exitBusy, err}
	case errors.Is(err, context.DeadlineExceeded):
		return exitWith(exitTimeout, "no %s: %w", cmp.Or(v.what, "turn"), err)
	default:
		return orUsage(err, exitOwnFault)
	}
}

// release gives the lock back; it says so when it cannot know that it did.
func (v *lockVerb) release(h *coord.Hold, client *coord.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	if err := h.Release(ctx); err != nil {
		return fmt.Errorf("the servers did not confirm the release; others may have to wait up to %v: %w",
			client.SessionTimeout(), err)
	}
	return nil
}

// environment is what CMD gets, beside what this process got.
func (v *lockVerb) environment(h *coord.Hold) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "COORD_TOKEN=") // of the lock that this process runs under
	})
	env = append(env, "COORD_PATH="+string(v.Path), "COORD_NODE="+h.Node())
	if h.Exclusive() {
		env = append(env, "COORD_TOKEN="+strconv.FormatInt(h.Token(), 10))
	}
	return env
}

// guardCommand is the guard process that CMD inherits everything from.
func (v *lockVerb) guardCommand(h *coord.Hold) (*exec.Cmd, error) {
	cmd, err := self.Command("__guard")
	if err != nil {
		return nil, err
	}
	cmd.Env = v.environment(h)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, nil
}
