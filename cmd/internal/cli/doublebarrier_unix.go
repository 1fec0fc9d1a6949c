//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

// Run waits for the others, runs the command, and waits for the others again.
func (v *doubleBarrierVerb) Run(s *streams, c *connection) error {
	verb := v.asLock()
	if err := verb.check(); err != nil {
		return err
	}
	w, err := verb.begin(s, c)
	if err != nil {
		return s.inVain(s.err, v.Path, err)
	}
	defer w.end()
	m, err := v.enter(w.ctx, s, w.client)
	w.calm()
	if err != nil {
		return s.inVain(s.err, v.Path, v.giveUp(w.ctx, verb, err))
	}
	r := w.run(s, m.Hold())
	status, err := v.takePart(w.ctx, r, m)
	if s.json {
		_ = writeJSON(s.err, v.story(r, m, status, err, time.Since(r.granted)))
	}
	if err != nil {
		s.note("%v", err)
	}
	return silently(status)
}

func (v *doubleBarrierVerb) enter(ctx context.Context, s *streams, client *coord.Client) (*doublebarrier.Member, error) {
	var opts []doublebarrier.Option
	if v.Next {
		opts = append(opts, doublebarrier.WaitForNextRound())
	}
	b, err := doublebarrier.New(client, string(v.Path), v.N, opts...)
	if err != nil {
		return nil, err
	}
	waiting, begun := context.WithCancel(ctx)
	defer begun()
	go tellWhoIsThere(waiting, s, b)
	return b.Enter(ctx)
}

// tellWhoIsThere tells a person who is in front when the wait is not short.
func tellWhoIsThere(waiting context.Context, s *streams, b *doublebarrier.Barrier) {
	if !isTerminal(s.err) {
		return
	}
	select {
	case <-time.After(time.Second):
	case <-waiting.Done():
		return
	}
	status, err := b.Status(waiting)
	switch {
	case err != nil:
	case status.Open:
		s.note("waiting for the end of round %d: %d of its %d members are there", status.Round, len(status.Inside), status.Size)
	default:
		s.note("waiting for the others: %d of %d are there", len(status.Waiting), status.Size)
	}
}

// giveUp gives the failure to enter its status.
func (v *doubleBarrierVerb) giveUp(ctx context.Context, verb *lockVerb, err error) error {
	var sig signalled
	switch {
	case errors.As(context.Cause(ctx), &sig):
	case errors.Is(err, doublebarrier.ErrLate):
		return &exitError{exitBusy, fmt.Errorf("%w (--next waits for a place in a later one)", err)}
	case errors.Is(err, context.DeadlineExceeded):
		return exitWith(exitTimeout, "not all %d came: %w", v.N, err)
	}
	return verb.giveUp(ctx, err)
}

// takePart runs the command as a member, and leaves if it succeeds.
func (v *doubleBarrierVerb) takePart(ctx context.Context, r *run, m *doublebarrier.Member) (status int, err error) {
	defer v.abandon(r, m) // has an effect unless it has left
	var sig signalled
	if errors.As(context.Cause(ctx), &sig) { // it came at the last moment
		return 128 + int(sig.Signal), nil
	}
	cmd, err := r.verb.guardCommand(r.hold)
	if err != nil {
		return exitOwnFault, err
	}
	cmd.Env = append(cmd.Env, "COORD_ROUND="+strconv.FormatInt(m.Round(), 10),
		"COORD_INDEX="+strconv.Itoa(m.Index()), "COORD_MEMBERS="+strconv.Itoa(m.Count()))
	end, err := r.execute(cmd)
	switch {
	case err != nil:
		return exitOwnFault, err
	case end.Kind == guard.Failed:
		return end.Code, errors.New(string(end.Message))
	}
	if why := r.lost(end); why != nil {
		return exitLost, fmt.Errorf("lost the place in round %d of %s before the command ended: %w", m.Round(), v.Path, why)
	}
	if status := end.ExitCode(); status != exitOK {
		return status, nil
	}
	return v.leave(r, m)
}

// leave waits for the others, until a signal comes.
func (v *doubleBarrierVerb) leave(r *run, m *doublebarrier.Member) (status int, err error) {
	for len(r.signals) > 0 {
		if sig := <-r.signals; endsWait(sig) {
			return 128 + int(sig.(syscall.Signal)), nil
		}
	}
	ctx, calm := untilSignal(context.Background(), r.signals)
	defer calm()
	err = m.Leave(ctx)
	var sig signalled
	switch {
	case err == nil:
		return exitOK, nil
	case errors.Is(err, doublebarrier.ErrIncomplete):
		return exitMissing, err
	case errors.As(context.Cause(ctx), &sig):
		return 128 + int(sig.Signal), errors.New("left without waiting for the others")
	case errors.Is(err, coord.ErrLost):
		return exitLost, err
	}
	return exitOwnFault, err
}

func (v *doubleBarrierVerb) abandon(r *run, m *doublebarrier.Member) {
	if r.wait.left {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	_ = m.Abandon(ctx) // else the others wait until the session has expired
}

// story is what JSON tells at the end.
func (v *doubleBarrierVerb) story(r *run, m *doublebarrier.Member, status int, err error, inside time.Duration) any {
	missing := []int{}
	var incomplete *doublebarrier.IncompleteError
	if errors.As(err, &incomplete) {
		missing = incomplete.Missing
	}
	story := map[string]any{
		"path": v.Path, "node": m.Node(), "round": m.Round(), "index": m.Index(), "members": m.Count(),
		"status": status, "lost": status == exitLost, "missing": missing,
		"waited": seconds(r.granted.Sub(r.wait.begun)), "inside": seconds(inside),
	}
	r.wait.addTo(story, err)
	return story
}
