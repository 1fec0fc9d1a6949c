package run

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

type queueDead struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
}

// deadLetter is one in JSON.
type deadLetter struct {
	Name string `json:"name"`
	term.NodeData
	Priority   int       `json:"priority"`
	Died       time.Time `json:"died"`
	Deliveries int       `json:"deliveries"`
	Item       string    `json:"item"`
	By         string    `json:"by"`
	Reason     string    `json:"reason"`

	Acknowledged   *time.Time `json:"acknowledged"`
	AcknowledgedBy string     `json:"acknowledged_by"`
}

// Run lists the dead letters.
func (v *queueDead) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		letters, err := q.DeadLetters(ctx)
		if err != nil {
			return err
		}
		all := make([]deadLetter, len(letters))
		t := term.Table{
			Heads: []string{"LETTER", "DATA", "PRIORITY", "DELIVERED", "AGE", "BY", "ACKNOWLEDGED BY"}, About: "REASON",
		}
		for i, l := range letters {
			all[i] = deadLetter{
				l.Name, term.DataOf(l.Data), l.Priority, l.Died, l.Deliveries, l.Item, l.By, l.Reason, nil, l.AcknowledgedBy,
			}
			if !l.Acknowledged.IsZero() {
				all[i].Acknowledged = &l.Acknowledged
			}
			t.Add(term.Plain(l.Reason), term.Plain(l.Name), strconv.Quote(look.Beginning(l.Data)), strconv.Itoa(l.Priority),
				strconv.Itoa(l.Deliveries),
				term.Ago(l.Died), term.Plain(l.By), term.Plain(l.AcknowledgedBy))
		}
		if s.JSON || len(all) == 0 {
			return s.Print(map[string]any{"path": string(v.Path), "dead": all}, "no dead letters\n")
		}
		return t.Write(s.Page())
	})
}

type queueBury struct {
	Reason string        `placeholder:"TEXT" help:"The reason, shown with the dead letters."`
	Path   conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
	Item   string        `arg:"" help:"The item's name: entry-100-0000000042, as inspect shows it."`
}

// Run moves one item to the dead letters.
func (v *queueBury) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		return removed(s, v.Path, v.Item, q.Bury(ctx, v.Item, v.Reason))
	})
}

type queueDrop struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The queue's path."`
	Item string        `arg:"" help:"The item's name: entry-100-0000000042, as inspect shows it."`
}

// Run removes one item for good.
func (v *queueDrop) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		return removed(s, v.Path, v.Item, q.Drop(ctx, v.Item))
	})
}

// removed says what became of an item that was to be removed.
func removed(s *term.Streams, path conn.NodePath, item string, err error) error {
	if err != nil {
		return unmoved(path, item, err)
	}
	return s.Print(map[string]any{"path": string(path), "item": item}, "")
}

// unmoved says why an item stays, with a status.
func unmoved(path conn.NodePath, item string, err error) error {
	switch {
	case errors.Is(err, coord.ErrInvalid):
		return term.UsageError("%w", err)
	case errors.Is(err, coord.ErrNoNode):
		return term.ExitWith(term.ExitFailed, "%s has no item %s", path, item)
	case errors.Is(err, coord.ErrBusy):
		return term.ExitWith(term.ExitBusy, "a consumer has %s: %s break --node %s %s takes it back", item,
			term.Program, item, path)
	}
	return err
}
