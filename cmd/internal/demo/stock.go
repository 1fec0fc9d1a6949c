package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	Kill    int  `default:"3" help:"How many to kill in the middle of a sale."`
	Unsafe  bool `help:"Sell without the lock."`
}

// stockResult is the last line of the demo.
type stockResult struct {
	Demo    string  `json:"demo"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
	OK      bool    `json:"ok"`
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
		return term.UsageError("--kill %d: after each kill the lock is free when a session timeout (%v) has passed, "+
			"and the demo ends within a minute; kill at most %d", v.Kill, session, limit)
	}
	return nil
}

// Run opens the shop.
func (v *stockVerb) Run(s *term.Streams, c *conn.Connection) error {
	return play(s, c, v.check, func(st *stage) error {
		dir, err := os.MkdirTemp("", "coorddemo-stock-")
		if err != nil {
			return term.ExitWith(term.ExitFailed, "%w", err)
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "stock")
		v.introduce(st)
		shop := &stock.Shop{
			Sellers: v.Workers, Stock: v.Stock, Kills: v.Kill, File: file, Unsafe: v.Unsafe, Audience: st,
			Command: func(id int) (*exec.Cmd, error) {
				return st.process("__seller", fmt.Sprintf("--id=%d", id), fmt.Sprintf("--unsafe=%t", v.Unsafe), st.path, file)
			},
		}
		result, err := shop.Run(st.ctx)
		st.Clear()
		return v.conclude(st, result, err)
	})
}

func (v *stockVerb) introduce(st *stage) {
	st.Tell("%s %s from one plain file, each like this: read it, think, write it.",
		term.Plural(v.Workers, "process sells", "processes sell"), term.Plural(v.Stock, "unit", "units"))
	apart := fmt.Sprintf("Nothing but the lock %s on %s keeps them apart", st.path, st.where)
	switch {
	case v.Unsafe:
		apart = "Nothing keeps them apart"
	case v.Workers == 1:
		apart = fmt.Sprintf("The lock is %s on %s", st.path, st.where)
	}
	if v.Kill > 0 {
		apart += fmt.Sprintf(",\nand %s killed with SIGKILL in the middle of a sale",
			term.Plural(v.Kill, "process is", "processes are"))
	}
	st.Tell("%s.\n", apart)
}

func (v *stockVerb) conclude(st *stage, r stock.Result, err error) error {
	over := r.Oversold(v.Stock)
	done := over == 0 && r.Left == 0 && (v.Unsafe || r.Growing && r.Kills == v.Kill)
	out := stockResult{
		Demo: "stock", Seconds: term.Seconds(time.Since(st.begun)), OK: err == nil && done,
		Result: r, Unsafe: v.Unsafe, Stock: v.Stock, Workers: v.Workers, Oversold: over, MaxGap: term.Measured(r.MaxGap),
	}
	if err != nil {
		out.Error = term.Briefly(err).Error()
	}
	st.Tell("\n  sold %d + left %d = %d, of a stock of %d; oversold %d. %s killed, %.1f s.",
		r.Sold, r.Left, r.Sold+r.Left, v.Stock, over, term.Plural(r.Kills, "process", "processes"), out.Seconds)
	switch {
	case err != nil:
		st.Tell("  Not finished: %s.", out.Error)
	case out.OK && !v.Unsafe && r.Kills > 0:
		st.Tell("  Every unit was sold once, though holders died in the middle of it.")
	case out.OK && !v.Unsafe:
		st.Tell("  Every unit was sold once.")
	case out.OK:
		st.Tell("  Nothing went wrong this time. Luck is not a lock.")
	case v.Unsafe:
		st.Tell("  Without the lock, the processes overwrote each other's sales.")
	}
	st.streams.Told = true
	if err := term.WriteJSON(st.streams.Out, out); err != nil || out.OK {
		return err
	}
	return term.Silently(term.ExitFailed)
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
