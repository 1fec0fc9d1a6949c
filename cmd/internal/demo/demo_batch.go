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
	"github.com/zkcoord/zkcoord/cmd/internal/demo/batch"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/stock"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
)

type batchDemo struct {
	Members int      `default:"4" help:"How many processes share the work."`
	Kill    int      `default:"1" help:"How many rounds to spoil by killing a process with SIGKILL while it counts."`
	Files   []string `arg:"" optional:"" help:"Text files whose words to count. Default: those of the repository around the current directory, or else a text of its own."`

	dir string // of that text
}

// batchResult is the last line of the demo.
type batchResult struct {
	ending
	batch.Result
	Members int `json:"members"`
	Files   int `json:"files"`
}

// check finds the files, and invalid options.
func (v *batchDemo) check(session time.Duration) error {
	switch {
	case v.Members < 1 || v.Members > 50:
		return term.UsageError("--members %d: it must be between 1 and 50", v.Members)
	case v.Kill < 0 || time.Duration(v.Kill) > demoLimit/2/session:
		return term.UsageError("--kill %d: after each kill the others wait for a session time-out (%v), and the demo ends "+
			"within a minute; kill at most %d", v.Kill, session, demoLimit/2/session)
	}
	if len(v.Files) == 0 {
		return v.choose()
	}
	for i, file := range v.Files {
		whole, err := filepath.Abs(file)
		if err != nil {
			return term.UsageError("%w", err)
		}
		if info, err := os.Stat(whole); err != nil {
			return term.UsageError("%w", err)
		} else if info.IsDir() {
			return term.UsageError("%s is a directory: name files", file)
		}
		v.Files[i] = whole
	}
	return nil
}

// choose takes the files that are here, or if there are none, a text that is
// written to a directory of its own.
func (v *batchDemo) choose() (err error) {
	if v.Files, err = batch.OwnFiles(); err == nil && len(v.Files) > 0 {
		return nil
	}
	if v.dir, err = os.MkdirTemp("", "coorddemo-batch-"); err == nil {
		v.Files, err = batch.WriteText(v.dir)
	}
	if err != nil {
		return term.ExitWith(term.ExitFailed, "there are no text files here, and none can be written: %w", err)
	}
	return nil
}

// Run plays it.
func (v *batchDemo) Run(s *term.Streams, c *conn.Connection) error {
	defer func() { _ = os.RemoveAll(v.dir) }()
	return play(s, c, "batch", v.check, func(st *stage) error {
		v.introduce(st)
		b := &batch.Batch{
			Members: v.Members, Kills: v.Kill, Files: v.Files,
			Command: func(int) (*exec.Cmd, error) {
				return st.process("__counter", fmt.Sprintf("--n=%d", v.Members), st.path)
			},
			Audience: st,
		}
		result, err := b.Run(st.ctx)
		return v.conclude(st, result, err)
	})
}

func (v *batchDemo) introduce(st *stage) {
	meet := "They meet at the double barrier\n%s/barrier on %s,\ncount a share each, and meet again; then one adds up."
	if v.Members == 1 {
		meet = "It has the double barrier\n%s/barrier on %s to itself."
	}
	st.Tell("%s the words of %s. "+meet, term.Plural(v.Members, "process counts", "processes count"),
		term.Plural(len(v.Files), "file", "files"), st.path, st.where)
	switch {
	case v.Kill == 1:
		st.Tell("Once, a process is killed with SIGKILL while it counts.\n")
	case v.Kill > 1:
		st.Tell("%d times, a process is killed with SIGKILL while it counts.\n", v.Kill)
	default:
		st.Tell("")
	}
}

func (v *batchDemo) conclude(st *stage, r batch.Result, err error) error {
	out := batchResult{
		ending: st.ended(err, r.Words == r.Expected && r.Kills == v.Kill),
		Result: r, Members: v.Members, Files: len(v.Files),
	}
	st.Tell("\n  %d words counted together, %d by one process alone; %s, %s killed, %.1f s.", r.Words, r.Expected,
		term.Plural(r.Rounds, "round", "rounds"), term.Plural(r.Kills, "process", "processes"), out.Seconds)
	switch {
	case err != nil:
		st.Tell("  Not finished: %s.", out.Error)
	case r.Words != r.Expected:
		st.Tell("  The files were written to meanwhile, or the words of a process were lost.")
	case out.OK && r.Kills > 0 && v.Members > 1:
		st.Tell("  Nobody added up what was not complete: all were told the same.")
	case out.OK && r.Kills > 0:
		st.Tell("  Nobody added up what was not complete.")
	}
	return outcome(st.streams, out, out.OK)
}

// CounterVerb is one process of the batch demo.
type CounterVerb struct {
	N    int
	Path conn.NodePath `arg:""`
}

// Run counts until standard input ends.
func (v *CounterVerb) Run(s *term.Streams, c *conn.Connection) error {
	return c.Connected(func(client *coord.Client) error {
		counter := batch.Counter{Members: v.N, Path: string(v.Path), Client: client, In: s.In, Out: s.Out}
		return counter.Serve(context.Background())
	})
}

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
	return play(s, c, "stock", v.check, func(st *stage) error {
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
		apart += fmt.Sprintf(",\nand %s killed with SIGKILL in the middle of a sale", term.Plural(v.Kill, "process is", "processes are"))
	}
	st.Tell("%s.\n", apart)
}

func (v *stockVerb) conclude(st *stage, r stock.Result, err error) error {
	over := r.Oversold(v.Stock)
	out := stockResult{
		ending: st.ended(err, over == 0 && r.Left == 0 && (v.Unsafe || r.Growing && r.Kills == v.Kill)),
		Result: r, Unsafe: v.Unsafe, Stock: v.Stock, Workers: v.Workers, Oversold: over, MaxGap: term.Measured(r.MaxGap),
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
	return outcome(st.streams, out, out.OK)
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
