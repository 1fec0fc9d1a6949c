package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/stock"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
)

type stockVerb struct {
	Workers int  `default:"8" help:"How many processes sell."`
	Stock   int  `default:"500" help:"How many units there are."`
	Kill    int  `default:"3" help:"How many processes to kill with SIGKILL in the middle of a sale, while they hold the lock."`
	Unsafe  bool `help:"Do the same without the lock, and see what happens."`
}

// stockResult is the last line of the demo.
type stockResult struct {
	ending
	stock.Result
	Unsafe   bool   `json:"unsafe"`
	Stock    int    `json:"stock"`
	Workers  int    `json:"workers"`
	Oversold int    `json:"oversold"`
	MaxGap   *int64 `json:"max_gap_ms"` // from a kill to the next sale; null if that did not happen
}

func (v *stockVerb) check(session time.Duration) error {
	switch {
	case v.Workers < 1 || v.Workers > 100:
		return term.UsageError("--workers %d: it must be between 1 and 100", v.Workers)
	case v.Stock < 1 || v.Stock > 100_000:
		return term.UsageError("--stock %d: it must be between 1 and 100000", v.Stock)
	case v.Kill < 0:
		return term.UsageError("--kill %d: it must not be negative", v.Kill)
	}
	if limit := int(demoLimit * 3 / 4 / session); v.Kill > limit && !v.Unsafe {
		return term.UsageError("--kill %d: after each kill the lock is free when a session time-out (%v) has passed, "+
			"and the demo ends within a minute; kill at most %d", v.Kill, session, limit)
	}
	return nil
}

// Run opens the shop.
func (v *stockVerb) Run(s *term.Streams, c *conn.Connection) error {
	st, err := newStage(c, "stock", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	dir, err := os.MkdirTemp("", "coorddemo-stock-")
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w", err)
	}
	defer os.RemoveAll(dir)
	shop := &stock.Shop{
		Sellers: v.Workers, Stock: v.Stock, Kills: v.Kill, File: filepath.Join(dir, "stock"),
		Command: func(id int) (*exec.Cmd, error) { return v.seller(s, st, id, filepath.Join(dir, "stock")) },
	}
	p := term.NewProgress(s)
	v.introduce(p, st.where, st.path)
	shop.Watch = func(e stock.Progress) { v.tell(p, e) }
	result, err := shop.Run(st.ctx)
	p.Clear()
	return v.conclude(s, p, result, err)
}

// seller is the command of a selling process.
func (v *stockVerb) seller(s *term.Streams, st *stage, id int, file string) (*exec.Cmd, error) {
	args := []string{"--id", strconv.Itoa(id), st.path, file}
	if v.Unsafe {
		args = append(args, "--unsafe")
	}
	return st.process(s, "__seller", args...)
}

func (v *stockVerb) introduce(p *term.Progress, where, path string) {
	p.Tell("%s %s from one plain file, each like this: read it, think, write it.",
		term.Plural(v.Workers, "process sells", "processes sell"), term.Plural(v.Stock, "unit", "units"))
	apart := fmt.Sprintf("Nothing but the lock %s on %s keeps them apart", path, where)
	switch {
	case v.Unsafe:
		apart = "Nothing keeps them apart"
	case v.Workers == 1:
		apart = fmt.Sprintf("The lock is %s on %s", path, where)
	}
	if v.Kill > 0 {
		apart += fmt.Sprintf(",\nand %s killed with SIGKILL in the middle of a sale", term.Plural(v.Kill, "process is", "processes are"))
	}
	p.Tell("%s.\n", apart)
}

func (v *stockVerb) tell(p *term.Progress, e stock.Progress) {
	switch e.Kind {
	case "sold":
		p.Show(e.Sold, v.Stock)
	case "killed":
		p.Tell("  ✗ %4d sold  killed process %d %s (%d left)", e.Sold, e.PID, e.Point, e.Left)
	case "resumed":
		if v.Unsafe {
			return // no process had to wait
		}
		p.Tell("  ✓ %4d sold  the next sale came %v later", e.Sold, e.Gap.Round(time.Millisecond))
	case "lost":
		p.Tell("  ! %4d sold  a seller lost the lock in the middle of a sale, noticed, and did not sell", e.Sold)
	case "failed":
		p.Tell("  ! a seller ended by itself: %v", e.Err)
	}
}

func (v *stockVerb) conclude(s *term.Streams, p *term.Progress, r stock.Result, err error) error {
	over := r.Oversold(v.Stock)
	out := stockResult{
		ending: endingOf("stock", r.Took, err, over == 0 && r.Left == 0 && (v.Unsafe || r.Growing && r.Kills == v.Kill)),
		Result: r, Unsafe: v.Unsafe, Stock: v.Stock, Workers: v.Workers, Oversold: over, MaxGap: term.Measured(r.MaxGap),
	}
	p.Tell("\n  sold %d + left %d = %d, of a stock of %d; oversold %d. %s killed, %.1f s.",
		r.Sold, r.Left, r.Sold+r.Left, v.Stock, over, term.Plural(r.Kills, "process", "processes"), r.Took.Seconds())
	switch {
	case err != nil:
		p.Tell("  Not finished: %s.", out.Error)
	case out.OK && !v.Unsafe && r.Kills > 0:
		p.Tell("  Every unit was sold once, though holders died in the middle of it.")
	case out.OK && !v.Unsafe:
		p.Tell("  Every unit was sold once.")
	case out.OK:
		p.Tell("  Nothing went wrong this time. Luck is not a lock.")
	case v.Unsafe:
		p.Tell("  Without the lock, the processes overwrote each other's sales.")
	}
	return outcome(s, out, out.OK)
}

// SellerVerb is one selling process of the stock demo.
type SellerVerb struct {
	ID     int
	Unsafe bool
	Path   conn.NodePath `arg:""`
	File   string        `arg:""`
}

// Run sells until standard input ends.
func (v *SellerVerb) Run(s *term.Streams, c *conn.Connection) error {
	seller := stock.Seller{ID: v.ID, File: v.File, In: s.In, Out: s.Out, Lock: withoutLock}
	if v.Unsafe {
		return conn.Failure(seller.Run(context.Background()))
	}
	return c.Connected(func(client *coord.Client) error {
		m, err := lock.New(client, string(v.Path))
		if err != nil {
			return err
		}
		seller.Lock = underLock(m)
		return seller.Run(context.Background())
	})
}

func withoutLock(_ context.Context, do func(int64, func() error) error) error {
	return do(0, func() error { return nil })
}

func underLock(m *lock.Mutex) stock.Lock {
	return func(ctx context.Context, do func(token int64, lost func() error) error) error {
		h, err := m.Acquire(ctx)
		if err != nil {
			return err
		}
		err = do(h.Token(), h.Err)
		if released := h.Release(ctx); err == nil && !errors.Is(released, coord.ErrUnconfirmed) {
			err = released // an unconfirmed release goes on in the background
		}
		return err
	}
}
