package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

type queueVerbs struct {
	Put     queuePut     `cmd:"" help:"Add items."`
	Take    queueTake    `cmd:"" help:"Remove the first item and print it: at most once."`
	Receive queueReceive `cmd:"" help:"Run a command with the first item as its standard input; remove the item if the command succeeds: at least once."`
	Len     queueLen     `cmd:"" help:"Tell how many items there are."`
	Peek    queuePeek    `cmd:"" help:"Print the first item without removing it."`
}

// queueItem is an item in JSON.
type queueItem struct {
	Path       string `json:"path"`
	Data       string `json:"data"`
	Priority   int    `json:"priority"`
	Deliveries int    `json:"deliveries"`
}

type queuePut struct {
	Priority int      `default:"100" help:"From 0, the first to be taken, to 999."`
	Together bool     `help:"Add all items or none, in one request."`
	Path     nodePath `arg:"" help:"The queue's path."`
	Items    []string `arg:"" optional:"" help:"The items. Without any, each line of standard input is one."`
}

// Run adds the items, in order.
func (v *queuePut) Run(s *streams, c *connection) error {
	items, err := v.items(s)
	if err != nil {
		return exitWith(exitFailed, "%w", err)
	}
	client, err := c.open(context.Background())
	if err != nil {
		return err
	}
	defer hangUp(client)
	q, err := queue.New(client, string(v.Path))
	if err != nil {
		return failure(err)
	}
	put := 0
	for _, batch := range v.batches(items) {
		ctx, cancel := context.WithTimeout(context.Background(), c.ConnectTimeout)
		err := q.PutBatch(ctx, batch, queue.WithPriority(v.Priority))
		cancel()
		if err != nil {
			s.note("%d of %d items were put", put, len(items))
			return failure(err)
		}
		put += len(batch)
	}
	if s.json {
		writeJSON(s.out, map[string]any{"path": string(v.Path), "put": put})
	}
	return nil
}

func (v *queuePut) items(s *streams) ([][]byte, error) {
	var items [][]byte
	for _, item := range v.Items {
		items = append(items, []byte(item))
	}
	if len(items) > 0 {
		return items, nil
	}
	lines := bufio.NewScanner(s.in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		items = append(items, []byte(lines.Text()))
	}
	return items, lines.Err()
}

func (v *queuePut) batches(items [][]byte) [][][]byte {
	if v.Together {
		return [][][]byte{items}
	}
	batches := make([][][]byte, len(items))
	for i, item := range items {
		batches[i] = [][]byte{item}
	}
	return batches
}

// waiting is for verbs that wait for an item.
type waiting struct {
	Timeout *time.Duration `placeholder:"D" help:"Wait so long at most, connecting included, then exit with 124."`
}

// wait runs f with a queue and a context that ends with the time-out or by a signal.
func (w *waiting) wait(c *connection, path nodePath, opts []queue.Option, f func(ctx context.Context, q *queue.Queue) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if w.Timeout != nil {
		if *w.Timeout <= 0 {
			return usageError("--timeout %v: it must be positive", *w.Timeout)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *w.Timeout)
		defer cancel()
	}
	client, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer hangUp(client)
	q, err := queue.New(client, string(path), opts...)
	if err != nil {
		return failure(err)
	}
	err = f(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		return exitWith(exitTimeout, "no item within %v: %w", *w.Timeout, err)
	}
	return failure(err)
}

type queueTake struct {
	waiting
	Path nodePath `arg:"" help:"The queue's path."`
}

// Run prints the item when it is removed.
func (v *queueTake) Run(s *streams, c *connection) error {
	return v.wait(c, v.Path, nil, func(ctx context.Context, q *queue.Queue) error {
		data, err := q.Take(ctx)
		if err == nil {
			s.print(map[string]any{"path": string(v.Path), "data": string(data)}, "%s\n", data)
		}
		return err
	})
}

type queueReceive struct {
	waiting
	Delay time.Duration `help:"How long an item of a failed command stays with this process before others can have it."`
	Dead  int           `placeholder:"N" help:"Move an item that was delivered N times to the queue at PATH/dead."`
	Path  nodePath      `arg:"" help:"The queue's path."`
	Cmd   []string      `arg:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
}

// Help tells what does not fit beside the options.
func (*queueReceive) Help() string {
	return `CMD gets the item on its standard input, and COORD_PATH, COORD_PRIORITY and COORD_DELIVERIES (1 the first time) in its environment. If it exits with 0, the item is removed; otherwise it goes back to the queue. If the claim on the item is lost meanwhile, CMD is killed, with its process group.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the claim was lost before the item was removed; 124 no item in time; 69 no session with the servers; 64 usage.`
}

// Run receives one item and has the command process it.
func (v *queueReceive) Run(s *streams, c *connection) error {
	argv := v.Cmd
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 || argv[0] == "" {
		return usageError("no command to run: write it after --, as in coorddemo queue receive %s -- ./work", v.Path)
	}
	var opts []queue.Option
	if v.Dead != 0 {
		opts = append(opts, queue.WithDeadLetters(v.Dead))
	}
	return v.wait(c, v.Path, opts, func(ctx context.Context, q *queue.Queue) error {
		item, err := q.Receive(ctx)
		if err != nil {
			return err
		}
		status, err := runWithItem(s, v.Path, item, argv)
		return v.settle(s, item, status, err)
	})
}

// settle removes or gives back the item, by the command's status.
func (v *queueReceive) settle(s *streams, item *queue.Item, status int, failed error) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseItemWithin)
	defer cancel()
	if failed != nil {
		s.note("%v", failed)
	}
	if status == 0 {
		if err := item.Ack(ctx); err != nil {
			return exitWith(exitLost, "%w", err)
		}
		return nil
	}
	if lost := item.Err(); lost != nil {
		return exitWith(exitLost, "%w", lost)
	}
	if v.Delay > 0 {
		// The claim has to last, and with it this process.
		select {
		case <-time.After(v.Delay):
		case <-item.Done():
		}
	}
	if err := item.Nack(ctx, 0); err != nil && !errors.Is(err, queue.ErrStale) {
		s.note("%v", err)
	}
	return silently(status)
}

// releaseItemWithin bounds what happens after the command has ended.
const releaseItemWithin = 10 * time.Second

// itemCommand is the command for an item, in a process group of its own.
func itemCommand(s *streams, path nodePath, item *queue.Item, argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = s.out, s.err
	cmd.Env = append(os.Environ(),
		"COORD_PATH="+string(path),
		"COORD_PRIORITY="+strconv.Itoa(item.Priority),
		"COORD_DELIVERIES="+strconv.Itoa(item.Deliveries))
	return cmd
}

// exitStatus is a command's status as a shell would tell it.
func exitStatus(err error) (int, error) {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return 127, err
	default:
		return 126, err
	}
}

type queueLen struct {
	Path nodePath `arg:"" help:"The queue's path."`
}

// Run counts, those counted that were received and not removed yet.
func (v *queueLen) Run(s *streams, c *connection) error {
	return c.with(func(ctx context.Context, client *coord.Client) error {
		q, err := queue.New(client, string(v.Path))
		if err != nil {
			return err
		}
		n, err := q.Len(ctx)
		if err == nil {
			s.print(map[string]any{"path": string(v.Path), "len": n}, "%d\n", n)
		}
		return err
	})
}

type queuePeek struct {
	Path nodePath `arg:"" help:"The queue's path."`
}

// Run shows the first item, or fails silently when there is none.
func (v *queuePeek) Run(s *streams, c *connection) error {
	return c.with(func(ctx context.Context, client *coord.Client) error {
		q, err := queue.New(client, string(v.Path))
		if err != nil {
			return err
		}
		item, err := q.Peek(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			s.note("%s is empty, or others have all its items", v.Path)
			return silently(exitFailed)
		}
		if err != nil {
			return err
		}
		s.print(queueItem{string(v.Path), string(item.Data), item.Priority, item.Deliveries}, "%s\n", item.Data)
		return nil
	})
}
