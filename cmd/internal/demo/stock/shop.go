package stock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

// Shop runs sellers, kills some, and counts.
type Shop struct {
	Sellers int
	Stock   int
	Kills   int
	File    string                          // will be made
	Command func(id int) (*exec.Cmd, error) // starts a Seller on its stdin and stdout
	Unsafe  bool                            // the sellers have no lock
	crew.Audience

	crew   *crew.Crew[message]
	empty  map[*crew.Member]bool // sellers that have seen the empty stock, and wait for orders
	victim *crew.Member          // has been ordered to halt
	killed time.Time             // the last kill, until a sale follows
	known  []Sale                // as the sellers reported
	result Result
}

// Result is the outcome.
type Result struct {
	Sold    int           `json:"sold"`
	Left    int           `json:"left"`
	Kills   int           `json:"kills"`
	Losses  int           `json:"losses"`      // holds lost in the middle of a sale; the seller noticed and did not sell
	Growing bool          `json:"tokens_grow"` // from sale to sale
	MaxGap  time.Duration `json:"-"`           // the longest time from a kill to the next sale
}

// Oversold is the number of units sold that were not there.
func (r Result) Oversold(stock int) int { return r.Sold + r.Left - stock }

// Run opens the shop until everything is sold, or ctx ends, which is an error.
// The result counts also then.
func (s *Shop) Run(ctx context.Context) (Result, error) {
	if err := (Ledger{Left: s.Stock}).Write(s.File, s.File+".new"); err != nil {
		return Result{}, err
	}
	s.crew, s.empty = crew.New[message](), map[*crew.Member]bool{}
	err := s.trade(ctx)
	s.crew.Close(s.note)
	ledger, readErr := ReadLedger(s.File)
	s.result.Left, s.result.Sold, s.result.Growing = ledger.Left, ledger.sold(s.known), ledger.growing()
	return s.result, errors.Join(err, readErr)
}

func (s *Shop) trade(ctx context.Context) error {
	for range s.Sellers {
		if _, err := s.crew.Start(s.Command); err != nil {
			return err
		}
	}
	s.choose()
	return s.crew.Until(ctx, s.over, func(e crew.Event[message]) error {
		if e.Message == nil {
			if err := s.replace(e); err != nil {
				return err
			}
		} else {
			s.hear(e.From, e.Message)
		}
		s.choose()
		return nil
	})
}

// replace starts another seller for one that has ended.
func (s *Shop) replace(e crew.Event[message]) error {
	delete(s.empty, e.From)
	if s.victim == e.From {
		s.victim = nil
	}
	if !e.From.Killed() {
		s.Tell("  ! a seller ended by itself: %v", e.Failure())
	}
	if err := s.crew.Ended(e); err != nil {
		return err
	}
	_, err := s.crew.Start(s.Command)
	return err
}

// over reports whether nothing is left to do: every seller has seen the empty
// stock, and every kill was made.
func (s *Shop) over() bool { return s.result.Kills >= s.Kills && s.allEmpty() }

// choose orders some seller to halt, when it is time for the next kill. The
// kills are spread over the stock.
func (s *Shop) choose() {
	next := s.result.Kills + 1
	if s.victim != nil || next > s.Kills || len(s.known) < s.Stock*next/(s.Kills+1) && !s.allEmpty() {
		return
	}
	choice := rand.N(len(s.crew.Members()))
	for m := range s.crew.Members() {
		choice--
		if choice < 0 {
			s.victim = m
			delete(s.empty, m)
			m.Say(points[s.result.Kills%len(points)])
			return
		}
	}
}

func (s *Shop) allEmpty() bool { return len(s.empty) == len(s.crew.Members()) }

// note records a sale.
func (s *Shop) note(m *message) {
	if m.Sale != nil {
		s.known = append(s.known, *m.Sale)
	}
}

func (s *Shop) hear(from *crew.Member, m *message) {
	s.note(m)
	switch {
	case m.Sale != nil:
		s.Show(len(s.known), s.Stock)
		if !s.killed.IsZero() {
			gap := time.Since(s.killed)
			s.killed = time.Time{}
			s.result.MaxGap = max(s.result.MaxGap, gap)
			if !s.Unsafe { // otherwise no process had to wait
				s.Tell("  ✓ %4d sold  the next sale came %v later", len(s.known), gap.Round(time.Millisecond))
			}
		}
	case m.Halt != "":
		// The seller stands in the middle of its sale, and does not go on.
		from.Kill()
		s.result.Kills++
		s.killed = time.Now()
		s.Mark(len(s.known))
		s.Tell("  ✗ %4d sold  killed process %d %s (%d left)", len(s.known), from.PID(), m.Halt, m.Left)
	case m.Empty:
		if from != s.victim {
			s.empty[from] = true
		}
	case m.Lost:
		s.result.Losses++
		s.Tell("  ! %4d sold  a seller lost the lock in the middle of a sale, noticed, and did not sell", len(s.known))
	}
}

// Sale is one unit handed over: the Number-th by that Seller. Token is the
// fencing token of the lock it was sold under.
type Sale struct {
	Seller int
	Number int
	Token  int64
}

// Ledger is the content of the file.
type Ledger struct {
	Left  int
	Sales []Sale
}

// ReadLedger reads the file at path.
func ReadLedger(path string) (l Ledger, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return Ledger{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Write replaces the file at path as a whole. It writes to scratch first, a
// file next to it that is the caller's own. It is not flushed to the disk: a
// killed process loses nothing by that, and the demonstration does not cut the
// power.
func (l Ledger) Write(path, scratch string) error {
	data, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(scratch, data, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(scratch, path)
}

// sold is the number of units handed over, by the file and by the known reports
// of sellers.
func (l Ledger) sold(known []Sale) int {
	type key struct{ seller, number int }
	all := map[key]bool{}
	for _, s := range slices.Concat(l.Sales, known) {
		all[key{s.Seller, s.Number}] = true
	}
	return len(all)
}

// growing reports whether each sale was made under a higher token than the one
// before.
func (l Ledger) growing() bool {
	for i := 1; i < len(l.Sales); i++ {
		if l.Sales[i].Token <= l.Sales[i-1].Token {
			return false
		}
	}
	return true
}
