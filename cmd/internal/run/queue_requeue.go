package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

type queueRequeue struct {
	All     bool          `help:"All that no consumer of the dead letters has."`
	Path    conn.NodePath `arg:"" predictor:"path" help:"The queue's path, without /dead."`
	Letters []string      `arg:"" optional:"" help:"The letters' names: entry-100-0000000042, as dead shows them."`
}

// Validate is called by kong.
func (v *queueRequeue) Validate() error {
	if v.All == (len(v.Letters) > 0) {
		return errors.New("which letters are to be put back? write their names behind the path, or --all before it")
	}
	return nil
}

// Run puts dead letters back, each by one transaction.
func (v *queueRequeue) Run(s *term.Streams, c *conn.Connection) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		moved, err := v.putBack(ctx, q)
		told := term.Plural(moved, "letter", "letters") + " put back"
		if err != nil {
			failed := &term.ExitError{Code: term.StatusOf(conn.Failure(err)).Code, Err: fmt.Errorf("%w (%s before)", err, told)}
			return failed.With("requeued", moved)
		}
		return s.Print(map[string]any{"path": string(v.Path), "requeued": moved}, "%s\n", told)
	})
}

func (v *queueRequeue) putBack(ctx context.Context, q *queue.Queue) (moved int, err error) {
	letters := v.Letters
	if v.All {
		all, err := q.DeadLetters(ctx)
		if err != nil {
			return 0, err
		}
		for _, l := range all {
			letters = append(letters, l.Name)
		}
	}
	for len(letters) > 0 && err == nil {
		var n int
		n, err = q.Requeue(ctx, letters...)
		moved, letters = moved+n, letters[n:]
		if v.All && (errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrBusy)) {
			letters, err = letters[1:], nil
		}
	}
	if err != nil {
		err = unmoved(v.Path+"/dead", letters[0], err)
	}
	return moved, err
}
