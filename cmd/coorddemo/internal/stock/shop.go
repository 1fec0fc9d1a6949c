package stock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"
)

// maxFailures is how many sellers may end by themselves, with an error, before the shop gives up.
const maxFailures = 5

// Shop runs sellers, kills some, and counts.
type Shop struct {
	Sellers int
	Stock   int
	Kills   int
	File    string                          // will be made
	Command func(id int) (*exec.Cmd, error) // starts a Seller on its stdin and stdout
	Watch   func(Progress)                  // told of everything that happens; called by one goroutine

	staff  map[int]*employee
	events chan event
	hired  int
	victim *employee // has been ordered to halt
	killed time.Time // the last kill, until a sale follows
	known  []Sale    // as the sellers told
	result Result
}

// Progress is one thing that happened.
type Progress struct {
	Kind   string        // "sold", "killed", "resumed" (the first sale after a kill), "lost", "failed"
	Sold   int           // so far, as far as the sellers told
	Killed int           // so far
	PID    int           // killed
	Point  Point         // killed
	Left   int           // killed: what the victim had read
	Gap    time.Duration // resumed: since the kill
	Err    error         // failed
}

// Result is the outcome.
type Result struct {
	Sold    int
	Left    int
	Kills   int
	Losses  int           // holds lost in the middle of a sale
	Growing bool          // the tokens grew from sale to sale
	MaxGap  time.Duration // the longest time from a kill to the next sale
	Took    time.Duration
}

// Oversold is the number of units sold that were not there.
func (r Result) Oversold(stock int) int { return r.Sold + r.Left - stock }

// employee is a selling process as the shop sees it.
type employee struct {
	id    int
	cmd   *exec.Cmd
	in    io.WriteCloser
	empty bool // it waits for orders
	dead  bool // it was killed
}

// event is a message from a seller, or its end if message is nil.
type event struct {
	from    *employee
	message *message
	err     error
}

// Run opens the shop until everything is sold, or ctx ends, which is an error. The result is good in any case.
func (s *Shop) Run(ctx context.Context) (Result, error) {
	begin := time.Now()
	if err := (Ledger{Left: s.Stock}).Write(s.File, s.File+".new"); err != nil {
		return Result{}, err
	}
	s.staff, s.events = map[int]*employee{}, make(chan event)
	err := s.trade(ctx)
	s.close()
	s.result.Took = time.Since(begin)
	ledger, readErr := ReadLedger(s.File)
	s.result.Left, s.result.Sold, s.result.Growing = ledger.Left, ledger.sold(s.known), ledger.growing()
	return s.result, errors.Join(err, readErr)
}

func (s *Shop) trade(ctx context.Context) error {
	for range s.Sellers {
		if err := s.hire(); err != nil {
			return err
		}
	}
	failures := 0
	for !s.over() {
		s.choose()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-s.events:
			if e.message != nil {
				s.hear(e)
				continue
			}
			delete(s.staff, e.from.id)
			if !e.from.dead {
				failures++
				s.Watch(Progress{Kind: "failed", Err: e.err})
			}
			if failures > maxFailures {
				return fmt.Errorf("too many sellers failed; the last one: %w", e.err)
			}
			if s.victim == e.from {
				s.victim = nil
			}
			if err := s.hire(); err != nil {
				return err
			}
		}
	}
	return nil
}

// over tells whether nothing is left to do: every seller has seen the empty stock, and every kill was made.
func (s *Shop) over() bool {
	if s.result.Kills < s.Kills {
		return false
	}
	return s.allEmpty()
}

// choose orders some seller to halt, when it is time for the next kill. The kills are spread over the stock.
func (s *Shop) choose() {
	next := s.result.Kills + 1
	if s.victim != nil || next > s.Kills || len(s.known) < s.Stock*next/(s.Kills+1) && !s.allEmpty() {
		return
	}
	choice := rand.N(len(s.staff))
	for _, e := range s.staff {
		if choice--; choice < 0 {
			s.victim = e
			e.empty = false
			fmt.Fprintln(e.in, points[s.result.Kills%len(points)])
			return
		}
	}
}

func (s *Shop) allEmpty() bool {
	for _, e := range s.staff {
		if !e.empty {
			return false
		}
	}
	return true
}

func (s *Shop) hear(e event) {
	switch m := e.message; {
	case m.Sale != nil:
		s.known = append(s.known, *m.Sale)
		s.Watch(Progress{Kind: "sold", Sold: len(s.known), Killed: s.result.Kills})
		if !s.killed.IsZero() {
			gap := time.Since(s.killed)
			s.killed = time.Time{}
			s.result.MaxGap = max(s.result.MaxGap, gap)
			s.Watch(Progress{Kind: "resumed", Sold: len(s.known), Killed: s.result.Kills, Gap: gap})
		}
	case m.Halt != "":
		// It stands in the middle of its sale, and will not move on.
		e.from.dead = true
		_ = e.from.cmd.Process.Kill()
		s.result.Kills++
		s.killed = time.Now()
		s.Watch(Progress{
			Kind: "killed", Sold: len(s.known), Killed: s.result.Kills,
			PID: e.from.cmd.Process.Pid, Point: m.Halt, Left: m.Left,
		})
	case m.Empty:
		e.from.empty = e.from != s.victim
	case m.Lost:
		s.result.Losses++
		s.Watch(Progress{Kind: "lost", Sold: len(s.known), Killed: s.result.Kills})
	}
}

// hire starts a further seller.
func (s *Shop) hire() error {
	s.hired++
	cmd, err := s.Command(s.hired)
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// A pipe of our own: what a killed seller has told is still in it, and must be read to its end.
	out, sellerOut, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = sellerOut
	err = cmd.Start()
	_ = sellerOut.Close()
	if err != nil {
		_ = out.Close()
		return fmt.Errorf("starting a seller: %w", err)
	}
	e := &employee{id: s.hired, cmd: cmd, in: in}
	s.staff[e.id] = e
	go s.listen(e, out)
	return nil
}

// listen passes on what a seller tells, and its end after the last word.
func (s *Shop) listen(e *employee, out io.ReadCloser) {
	defer out.Close()
	for from := json.NewDecoder(bufio.NewReader(out)); ; {
		m := &message{}
		if from.Decode(m) != nil {
			break
		}
		s.events <- event{from: e, message: m}
	}
	s.events <- event{from: e, err: e.cmd.Wait()}
}

// close sends everybody home and waits for them. Those that do not go are killed.
func (s *Shop) close() {
	for _, e := range s.staff {
		_ = e.in.Close()
	}
	for late := time.After(5 * time.Second); len(s.staff) > 0; {
		select {
		case e := <-s.events:
			if e.message == nil {
				delete(s.staff, e.from.id)
			} else if e.message.Sale != nil {
				s.known = append(s.known, *e.message.Sale)
			}
		case <-late:
			for _, e := range s.staff {
				_ = e.cmd.Process.Kill()
			}
		}
	}
}
