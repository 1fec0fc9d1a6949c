package stock

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

// think is the longest time between reading the file and writing it.
const think = 4 * time.Millisecond

// Point is where in a sale a seller halts, to be killed there.
type Point string

// The points of a sale.
const (
	BeforeThinking Point = "after it had read the file"
	BeforeWriting  Point = "just before it wrote the file"
	BeforeTelling  Point = "just after it had written the file"
)

var points = []Point{BeforeThinking, BeforeWriting, BeforeTelling}

// Lock runs do while holding the lock, with the fencing token of the hold and a
// function that reports whether it has been lost. It returns its own errors, or
// the result of do.
type Lock func(ctx context.Context, do func(token int64, lost func() error) error) error

// message is what a seller reports to the shop.
type message struct {
	Sale  *Sale `json:"sale,omitempty"`  // a unit was handed over
	Halt  Point `json:"halt,omitempty"`  // it stands there, in the middle of a sale, until it is killed
	Left  int   `json:"left,omitempty"`  // with Halt: what the file said when the seller read it
	Empty bool  `json:"empty,omitempty"` // it found no stock left, and waits for orders
	Lost  bool  `json:"lost,omitempty"`  // it lost the lock in the middle of a sale, and gave the sale up
}

// Seller is one selling process.
type Seller struct {
	ID   int
	File string
	Lock Lock
	In   io.Reader // from the shop: a line with a Point is the order to halt there; at its end the seller ends
	Out  io.Writer // to the shop

	orders  <-chan string // from the shop
	ordered Point         // the last order
	number  int
}

// Run sells until In ends.
func (s *Seller) Run(ctx context.Context) error {
	ctx, orders, cancel := crew.Orders(ctx, s.In)
	defer cancel()
	s.orders = orders
	for {
		empty := false
		err := s.Lock(ctx, func(token int64, lost func() error) (err error) {
			empty, err = s.sell(ctx, token, lost)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil // the shop is closed
		case err != nil:
			return err
		case empty:
			s.tell(message{Empty: true})
			select {
			case order := <-orders:
				s.ordered = Point(order)
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// sell sells one unit: read, think, write. There is no other synchronisation
// than the lock around it.
func (s *Seller) sell(ctx context.Context, token int64, lost func() error) (empty bool, err error) {
	ledger, err := ReadLedger(s.File)
	if err != nil {
		return false, err
	}
	left := ledger.Left
	if s.halt(ctx, left, BeforeThinking) {
		return false, nil
	}
	if left == 0 {
		return !s.halt(ctx, left, points...), nil
	}
	time.Sleep(rand.N(think))
	sale := Sale{Seller: s.ID, Number: s.number + 1, Token: token}
	ledger.Left--
	ledger.Sales = append(ledger.Sales, sale)
	if s.halt(ctx, left, BeforeWriting) {
		return false, nil
	}
	if lost() != nil {
		s.tell(message{Lost: true})
		return false, nil
	}
	if err := ledger.Write(s.File, fmt.Sprintf("%s.%d", s.File, s.ID)); err != nil {
		return false, err
	}
	s.number++
	if !s.halt(ctx, left, BeforeTelling) {
		s.tell(message{Sale: &sale})
	}
	return false, nil
}

// halt stands still until the shop is closed, and returns true, if a halt was
// ordered for one of these points. Otherwise it returns false.
func (s *Seller) halt(ctx context.Context, left int, at ...Point) bool {
	select {
	case order := <-s.orders:
		s.ordered = Point(order)
	default:
	}
	if !slices.Contains(at, s.ordered) {
		return false
	}
	s.tell(message{Halt: s.ordered, Left: left})
	<-ctx.Done()
	return true
}

func (s *Seller) tell(m message) { crew.Tell(s.Out, m) }
