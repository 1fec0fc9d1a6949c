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

// letters are the dead letters that a verb works on.
type letters struct {
	All     bool          `help:"All letters; requeue leaves out those that a consumer has."`
	Path    conn.NodePath `arg:"" predictor:"path" help:"The queue's path, without /dead."`
	Letters []string      `arg:"" optional:"" help:"The letters' names: entry-100-0000000042, as dead shows them."`
}

// Validate is called by kong.
func (v *letters) Validate() error {
	if v.All == (len(v.Letters) > 0) {
		return errors.New("which letters? write their names behind the path, or --all before it")
	}
	return nil
}

type queueRequeue struct{ letters }

// Run puts dead letters back, each by one transaction.
func (v *queueRequeue) Run(s *term.Streams, c *conn.Connection) error {
	return v.each(s, c, "requeued", "put back", (*queue.Queue).Requeue)
}

type queueAcknowledge struct{ letters }

// Run acknowledges dead letters, each by one transaction.
func (v *queueAcknowledge) Run(s *term.Streams, c *conn.Connection) error {
	return v.each(s, c, "acknowledged", "acknowledged", (*queue.Queue).Acknowledge)
}

// treat does something with letters up to the first failure, and returns with
// how many it did.
type treat = func(q *queue.Queue, ctx context.Context, letters ...string) (int, error)

// each treats the letters, and says how many, also after an error.
func (v *letters) each(s *term.Streams, c *conn.Connection, field, done string, do treat) error {
	return withQueue(s, c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		n, err := v.treat(ctx, q, do)
		told := term.Plural(n, "letter", "letters") + " " + done
		if err != nil {
			failed := &term.ExitError{Code: term.StatusOf(conn.Failure(err)).Code, Err: fmt.Errorf("%w (%s before)", err, told)}
			return failed.With(field, n)
		}
		return s.Print(map[string]any{"path": string(v.Path), field: n}, "%s\n", told)
	})
}

func (v *letters) treat(ctx context.Context, q *queue.Queue, do treat) (treated int, err error) {
	names := v.Letters
	if v.All {
		all, err := q.DeadLetters(ctx)
		if err != nil {
			return 0, err
		}
		for _, l := range all {
			names = append(names, l.Name)
		}
	}
	for len(names) > 0 && err == nil {
		var n int
		n, err = do(q, ctx, names...)
		treated, names = treated+n, names[n:]
		if v.All && (errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrBusy)) {
			names, err = names[1:], nil
		}
	}
	if err != nil {
		err = unmoved(v.Path+"/dead", names[0], err)
	}
	return treated, err
}
