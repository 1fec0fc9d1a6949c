package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// ackWithin bounds what happens after the command has ended.
const ackWithin = 10 * time.Second

type queueReceive struct {
	Backoff   time.Duration  `default:"1s" help:"From an item's first failure to its next delivery; it doubles after each."`
	Dead      *int           `placeholder:"N" help:"Move an item delivered N times to the queue at PATH/dead."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the item: end CMD (term), or go on (ignore)."`
	Path      conn.NodePath  `arg:"" predictor:"path" help:"The queue's path."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*queueReceive) Help() string {
	return `CMD gets the item on its standard input, and COORD_PATH, COORD_NODE, COORD_PRIORITY and COORD_DELIVERIES (1 the first time) in its environment. If it fails, the item goes back to the queue, and is delivered again later (--backoff). It is stopped before another can have the item.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the item was lost, or asked for, before it was removed; 124 no item in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

func (v *queueReceive) check() error {
	switch {
	case v.Backoff < 0 || v.Backoff > queue.MaxBackoff:
		return term.UsageError("--backoff %v: it must be between 0 and %v", v.Backoff, queue.MaxBackoff)
	case v.Dead != nil && (*v.Dead < 1 || *v.Dead > queue.MaxDeliveries):
		return term.UsageError("--dead %d: it must be between 1 and %d", *v.Dead, queue.MaxDeliveries)
	}
	return nil
}

// Run receives one item and has the command process it, under a guard: the item
// goes to another when the session ends.
func (v *queueReceive) Run(s *term.Streams, c *conn.Connection) error {
	if err := v.check(); err != nil {
		return err
	}
	d := &queueTask{verb: v}
	defer func() { _ = d.input.Close() }() // there may be none
	return (&job{
		task: d, late: "no item", verbosely: v.verbosely,
		Paths: conn.NodePaths{v.Path}, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout,
		KillAfter: v.KillAfter, IgnoreRevoke: v.OnRevoke == "ignore",
	}).run(s, c)
}

// queueTask is the task of a command that processes an item.
type queueTask struct {
	verb  *queueReceive
	input *os.File
	item  *queue.Item
}

func (d *queueTask) acquire(ctx context.Context, _ *conn.Connection, client *coord.Client) (holding, error) {
	opts := []queue.Option{queue.Backoff(d.verb.Backoff)}
	if d.verb.Dead != nil {
		opts = append(opts, queue.DeadLetters(*d.verb.Dead))
	}
	q, err := queue.New(client, string(d.verb.Path), opts...)
	if err != nil {
		return holding{}, err
	}
	// Before an item is received: that there is no room for it here is no fault
	// of the item.
	if d.input, err = term.NewInput(); err != nil {
		return holding{}, term.ExitWith(term.ExitOwnFault, "making room for an item: %w", err)
	}
	if d.item, err = q.Receive(ctx); err != nil {
		return holding{}, err
	}
	if err := d.item.Err(); err != nil {
		return holding{}, term.ExitWith(term.ExitLost, "lost the item before the command was started: %w", err)
	}
	return alone(d.item), nil
}

func (*queueTask) name() string { return "the item" }

// prepare makes the item the command's input. It is a file without a name: from
// a pipe, the command would read half an item as if it were whole when this
// process dies while it writes.
func (d *queueTask) prepare(cmd *exec.Cmd) error {
	_, err := d.input.Write(d.item.Data)
	if err == nil {
		err = d.input.Truncate(int64(len(d.item.Data)))
	}
	if err == nil {
		_, err = d.input.Seek(0, 0)
	}
	if err != nil {
		return fmt.Errorf("handing the item over: %w", err)
	}
	cmd.Stdin = d.input
	cmd.Env = append(cmd.Env,
		"COORD_PRIORITY="+strconv.Itoa(d.item.Priority), "COORD_DELIVERIES="+strconv.Itoa(d.item.Deliveries))
	return nil
}

// giveBack gives the item to the next consumer. If that fails, it goes to the
// next when this session ends, which is now.
func (d *queueTask) giveBack() error {
	ctx, cancel := conn.Within(context.Background(), ackWithin)
	defer cancel()
	if err := d.item.Nack(ctx, 0); err != nil && !errors.Is(err, queue.ErrStale) {
		return err
	}
	return nil
}

// complete gives the item back also when the command was asked to end and
// succeeded all the same: it may only have tidied up.
func (d *queueTask) complete(status int, asked bool, _ func() (context.Context, func())) (int, error) {
	switch {
	case asked && status == term.ExitOK:
		return term.ExitLost, cmp.Or(d.giveBack(), errors.New("another client asked for the item before the command ended"))
	case asked || status != term.ExitOK:
		return status, d.giveBack()
	}
	ctx, cancel := conn.Within(context.Background(), ackWithin)
	defer cancel()
	if err := d.item.Ack(ctx); err != nil {
		return term.ExitLost, fmt.Errorf("the command succeeded, but the item may be delivered again: %w", err)
	}
	return term.ExitOK, nil
}

func (d *queueTask) summary(held float64, _ error) map[string]any {
	return map[string]any{"priority": d.item.Priority, "deliveries": d.item.Deliveries, "held": held}
}

// look says what is in the queue, who has items of it, and the place in the
// line of the idle.
func (d *queueTask) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	q, err := queue.New(client, string(d.verb.Path))
	if err != nil {
		return look.Situation{}, err
	}
	items, taken, err := q.Items(ctx)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return look.Situation{}, err
	}
	idle, err := look.Children(ctx, client, layout.QueueAt(client.Info().Dialect, string(d.verb.Path)).Waiting.Dir)
	if err != nil {
		return look.Situation{}, err
	}
	first, err := look.Workers(ctx, q, taken[:min(look.MostNamed, len(taken))])
	s := look.Situation{
		Text:   fmt.Sprintf("%s, %d in hand", term.Plural(len(items), "item", "items"), len(taken)),
		Fields: map[string]any{"items": len(items), "in_hand": len(taken), "holders": first},
	}
	if len(first) > 0 {
		s.Text += ", " + look.HeldBy(first, len(taken))
	}
	if waiting := len(items) - len(taken); waiting > 0 {
		s.Text += fmt.Sprintf("; %d to be delivered again later", waiting)
	}
	s.Key = fmt.Sprint(len(items), len(taken), look.KeyOf(first))
	s.StandIn(look.LineOf(idle), 0, own)
	return s, err
}
