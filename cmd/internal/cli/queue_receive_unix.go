//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// settleWithin bounds what happens after the command has ended.
const settleWithin = 10 * time.Second

// Run receives one item and has the command process it, under a guard: the item goes to another when the session ends.
func (v *queueReceive) Run(s *streams, c *connection) error {
	verb := v.asLock()
	if err := errors.Join(v.check(), verb.check()); err != nil {
		return err
	}
	w, err := verb.begin(s, c)
	if err != nil {
		return s.inVain(s.err, v.Path, err)
	}
	defer w.end()
	var opts []queue.Option
	if v.Dead != nil {
		opts = append(opts, queue.WithDeadLetters(*v.Dead))
	}
	q, err := queue.New(w.client, string(v.Path), opts...)
	if err != nil {
		return orUsage(err, exitOwnFault)
	}
	// Before an item is received: that there is no room for it here is no fault of the item.
	input, err := newInput()
	if err != nil {
		return s.inVain(s.err, v.Path, exitWith(exitOwnFault, "making room for an item: %w", err))
	}
	defer input.Close()
	item, err := q.Receive(w.ctx)
	w.calm()
	if err != nil {
		return s.inVain(s.err, v.Path, verb.giveUp(w.ctx, err))
	}
	received := time.Now()
	status, err := v.process(s, w, item, input)
	if s.json {
		story := map[string]any{
			"path": v.Path, "priority": item.Priority, "deliveries": item.Deliveries, "status": status,
			"lost": status == exitLost, "waited": seconds(received.Sub(w.begun)), "held": seconds(time.Since(received)),
		}
		w.addTo(story, err)
		_ = writeJSON(s.err, story)
	}
	if err != nil {
		s.note("%v", err)
	}
	return silently(status)
}

// process runs the command, and settles what becomes of the item.
func (v *queueReceive) process(s *streams, w *wait, item *queue.Item, input *os.File) (status int, err error) {
	hold, held := coord.HeldIn(item.Context(context.Background()), w.client, string(v.Path)+"/taken")
	if !held {
		return exitLost, fmt.Errorf("lost the item before the command was started: %w", item.Err())
	}
	r := w.run(s, hold)
	var sig signalled
	if errors.As(context.Cause(w.ctx), &sig) { // it came at the last moment
		return 128 + int(sig.Signal), v.giveBack(item)
	}
	end, err := v.execute(r, item, input)
	switch {
	case err != nil:
		return exitOwnFault, errors.Join(err, v.giveBack(item))
	case end.Kind == guard.Failed:
		return end.Code, errors.Join(errors.New(string(end.Message)), v.giveBack(item))
	}
	if why := r.lost(end); why != nil {
		return exitLost, fmt.Errorf("lost the item before the command ended: %w", why)
	}
	if status := end.ExitCode(); status != exitOK {
		v.keep(r, item)
		return status, v.giveBack(item)
	}
	ctx, cancel := within(context.Background(), settleWithin)
	defer cancel()
	if err := item.Ack(ctx); err != nil {
		return exitLost, fmt.Errorf("the command succeeded, but the item may be delivered again: %w", err)
	}
	return exitOK, nil
}

// execute runs the command with the item as its input.
func (v *queueReceive) execute(r *run, item *queue.Item, input *os.File) (guard.Event, error) {
	cmd, err := r.verb.guardCommand(r.hold)
	if err != nil {
		return guard.Event{}, err
	}
	if err := fill(input, item.Data); err != nil {
		return guard.Event{}, fmt.Errorf("handing the item over: %w", err)
	}
	cmd.Stdin = input
	cmd.Env = append(cmd.Env,
		"COORD_PRIORITY="+strconv.Itoa(item.Priority), "COORD_DELIVERIES="+strconv.Itoa(item.Deliveries))
	return r.execute(cmd)
}

// fill writes what the command reads. It is a file without a name: from a pipe, the command would read half an item as if
// it were whole when this process dies while it writes.
func fill(input *os.File, data []byte) error {
	_, err := input.Write(data)
	if err == nil {
		err = input.Truncate(int64(len(data)))
	}
	if err == nil {
		_, err = input.Seek(0, 0)
	}
	return err
}

// keep keeps the item from others for the time that was asked for, or until a signal comes. The claim has to last so
// long, and with it this process.
func (v *queueReceive) keep(r *run, item *queue.Item) {
	if v.Delay == 0 {
		return
	}
	over := time.After(v.Delay)
	for {
		select {
		case <-over:
			return
		case <-item.Done():
			return
		case sig := <-r.signals:
			if endsWait(sig) {
				return
			}
		}
	}
}

// giveBack gives the item to the next consumer. If that fails, it goes to the next when this session ends, which is now.
func (v *queueReceive) giveBack(item *queue.Item) error {
	ctx, cancel := within(context.Background(), settleWithin)
	defer cancel()
	if err := item.Nack(ctx, 0); err != nil && !errors.Is(err, queue.ErrStale) {
		return err
	}
	return nil
}
