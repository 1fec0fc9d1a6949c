package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

type QueueVerbs struct {
	Put         queuePut         `cmd:"" help:"Add items."`
	Take        queueTake        `cmd:"" help:"Remove the first item and print it: at most once."`
	Receive     queueReceive     `cmd:"" help:"Run a command with the first item as its standard input; remove the item if the command succeeds: at least once."`
	Len         queueLen         `cmd:"" help:"Print the number of items."`
	Peek        queuePeek        `cmd:"" help:"Print the first item without removing it."`
	Dead        queueDead        `cmd:"" help:"List the dead letters: items that were delivered too often, or buried."`
	Bury        queueBury        `cmd:"" help:"Move one item to the dead letters."`
	Drop        queueDrop        `cmd:"" help:"Remove one item for good."`
	Requeue     queueRequeue     `cmd:"" help:"Put dead letters back into the queue."`
	Acknowledge queueAcknowledge `cmd:"" help:"Note that dead letters were seen, and stay: they are nothing odd any more."`
}

// queueItem is an item in JSON.
type queueItem struct {
	Path string `json:"path"`
	Name string `json:"name"`
	term.NodeData
	Priority   int `json:"priority"`
	Deliveries int `json:"deliveries"`
}

// takenItem is an item that is no longer in the queue.
type takenItem struct {
	Path string `json:"path"`
	term.NodeData
}

type queuePut struct {
	Priority int           `default:"100" help:"From 0, the first to be taken, to 999."`
	Together bool          `help:"Add all items or none, in one request."`
	Path     conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
	Items    []string      `arg:"" optional:"" help:"The items. Without any, each line of standard input is one, and is put as soon as it is read."`
}

// Run adds the items, in order.
func (v *queuePut) Run(s *term.Streams, c *conn.Connection) error {
	if v.Priority < 0 || v.Priority > queue.MaxPriority {
		return term.UsageError("--priority %d: it must be between 0 and %d", v.Priority, queue.MaxPriority)
	}
	return c.Connected(func(client *coord.Client) error {
		q, err := queue.New(client, string(v.Path))
		if err != nil {
			return err
		}
		added := 0
		put := func(batch [][]byte, err error) error {
			if err == nil {
				err = v.put(q, batch, c.ConnectTimeout)
			}
			if err != nil {
				return term.StatusOf(
					conn.Failure(fmt.Errorf("%w (%s put before)", err, term.Plural(added, "item was", "items were")))).
					With("put", added)
			}
			added += len(batch)
			return nil
		}
		var all [][]byte // items that are put together
		for item, err := range v.items(s) {
			if v.Together && err == nil {
				all = append(all, item)
			} else if err := put([][]byte{item}, err); err != nil {
				return err
			}
		}
		if v.Together {
			if err := put(all, nil); err != nil {
				return err
			}
		}
		return s.Print(map[string]any{"path": string(v.Path), "put": added}, "")
	})
}

func (v *queuePut) put(q *queue.Queue, batch [][]byte, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, conn.GaveUp(within))
	defer cancel()
	return q.PutBatch(ctx, batch, queue.Priority(v.Priority))
}

// items gives the arguments, or the lines of standard input as they come.
func (v *queuePut) items(s *term.Streams) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, item := range v.Items {
			if !yield([]byte(item), nil) {
				return
			}
		}
		if len(v.Items) > 0 {
			return
		}
		if term.IsTerminal(s.In) {
			s.Note("each line is an item; end with Ctrl-D")
		}
		lines := bufio.NewScanner(s.In)
		lines.Buffer(nil, queue.MaxSize+1) // with the end of the line
		for lines.Scan() {
			if !yield([]byte(lines.Text()), nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line is too long for an item, which has %d bytes at most", queue.MaxSize)
		}
		if err != nil {
			yield(nil, fmt.Errorf("reading standard input: %w", err))
		}
	}
}

type queueTake struct {
	conn.Waiting
	conn.Labelled
	Path conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
}

// Run prints the item when it is removed. Where nothing can be printed, nothing
// is removed.
func (v *queueTake) Run(s *term.Streams, c *conn.Connection) error {
	if o, ok := s.Out.(*term.Output); ok && term.IsClosed(o.File) {
		return term.UsageError(
			"standard output is closed, and the item would be lost; say > %s if that is wanted", os.DevNull)
	}
	v.ApplyTo(c)
	return v.Wait(c, "no item", func(ctx context.Context, client *coord.Client) error {
		q, err := queue.New(client, string(v.Path))
		if err != nil {
			return err
		}
		data, err := q.Take(ctx)
		if err != nil {
			return err
		}
		if err := s.Print(takenItem{string(v.Path), term.DataOf(data)}, "%s\n", s.Shown(data)); err != nil {
			// No other consumer will ever see the item.
			return term.ExitWith(term.ExitFailed,
				"the item has been removed, but could not be written: %w; it was %q", err, data)
		}
		return nil
	})
}

type queueLen struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
}

// Run counts the items, including those received and not removed yet.
func (v *queueLen) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		n, err := q.Len(ctx)
		if err != nil {
			return err
		}
		return s.Print(map[string]any{"path": string(v.Path), "len": n}, "%d\n", n)
	})
}

type queuePeek struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
}

// Run shows the first item, or fails when there is none.
func (v *queuePeek) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		item, err := q.Peek(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			return term.ExitWith(term.ExitFailed, "%s is empty, or others have all its items", v.Path)
		}
		if err != nil {
			return err
		}
		return s.Print(queueItem{string(v.Path), item.Name, term.DataOf(item.Data), item.Priority, item.Deliveries}, "%s\n",
			s.Shown(item.Data))
	})
}

// withQueue is for the verbs that ask one thing about a queue.
func withQueue(
	s *term.Streams, c *conn.Connection, path conn.NodePath, do func(context.Context, *queue.Queue) error,
) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		q, err := queue.New(client, string(path))
		if err == nil {
			err = path.NoteAbsent(ctx, s, client)
		}
		if err != nil {
			return err
		}
		return do(ctx, q)
	})
}
