package run

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
)

type BarrierVerbs struct {
	Set  barrierSet  `cmd:"" help:"Close the barrier: all who come to it wait. One that is closed stays so."`
	Open barrierOpen `cmd:"" help:"Open the barrier: all that wait go on. One that is open stays so."`
	Wait barrierWait `cmd:"" help:"Wait until the barrier is open."`
}

type barrierSet struct {
	conn.Labelled
	Path conn.NodePath `arg:"" predictor:"path" help:"The barrier's path."`
}

// Run closes the barrier.
func (v *barrierSet) Run(s *term.Streams, c *conn.Connection) error {
	v.ApplyTo(c)
	return atBarrier(c, v.Path, func(ctx context.Context, b *barrier.Barrier) error {
		err := b.Set(ctx)
		if errors.Is(err, barrier.ErrNoBarrier) {
			return term.UsageError("%w; a barrier needs a path of its own", err)
		}
		if err != nil {
			return err
		}
		return s.Print(map[string]any{"path": string(v.Path), "set": true}, "")
	})
}

type barrierOpen struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The barrier's path."`
}

// Run opens the barrier.
func (v *barrierOpen) Run(s *term.Streams, c *conn.Connection) error {
	return atBarrier(c, v.Path, func(ctx context.Context, b *barrier.Barrier) error {
		if err := b.Open(ctx); err != nil {
			return err
		}
		return s.Print(map[string]any{"path": string(v.Path), "set": false}, "")
	})
}

func atBarrier(c *conn.Connection, path conn.NodePath, f func(ctx context.Context, b *barrier.Barrier) error) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		b, err := barrier.New(client, string(path))
		if err != nil {
			return err
		}
		return f(ctx, b)
	})
}

type barrierWait struct {
	conn.Waiting
	Path conn.NodePath `arg:"" predictor:"path" help:"The barrier's path."`
}

// Run waits. A barrier that is not there is open.
func (v *barrierWait) Run(s *term.Streams, c *conn.Connection) error {
	return v.Wait(c, "the barrier is closed", func(ctx context.Context, client *coord.Client) error {
		b, err := barrier.New(client, string(v.Path))
		if err != nil {
			return err
		}
		closed, err := b.Closed(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := b.Wait(ctx); err != nil {
			return err
		}
		if !closed {
			s.Note("no barrier is closed at %s", v.Path)
		}
		return s.Print(map[string]any{"path": string(v.Path), "waited": term.Seconds(time.Since(begin))}, "")
	})
}
