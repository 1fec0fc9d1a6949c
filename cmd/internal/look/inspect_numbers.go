package look

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// NumbersKind is the kind of a path whose holders have numbers of their own.
const NumbersKind = "slots"

// NumbersReport is what inspect shows of numbers besides who holds them.
type NumbersReport struct {
	Counts []int  `json:"counts"` // how many there are, as holders were told; several: they disagree; none: not known
	Free   *int   `json:"free"`   // numbers that anybody may be given; null: it is not known how many there are
	Kept   []Kept `json:"kept"`   // numbers kept for owners that are away
}

// Kept is a number that is kept for its owner.
type Kept struct {
	Number int      `json:"slot"`
	Owner  string   `json:"owner"`
	Away   *float64 `json:"away_for"` // seconds; null: not noted yet
	Left   float64  `json:"left"`     // seconds, at least, until others are given it
	Node   string   `json:"node"`     // that records it
}

func (k Kept) String() string {
	return fmt.Sprintf("%d for %s, for %s more", k.Number, strconv.Quote(term.Middle(k.Owner, mostOwner)),
		term.Age(k.Left))
}

// kept are the numbers that nobody holds, and that only their owners may be
// given yet.
func kept(path string, all []slots.State) (found []Kept) {
	for _, now := range all {
		if now.Holder != nil || now.Owner == "" {
			continue
		}
		left := now.Cooldown
		if !now.Away.IsZero() {
			left = time.Until(now.Away.Add(now.Cooldown))
		}
		if left > 0 {
			found = append(found,
				Kept{
					now.Number, now.Owner, term.SinceThen(now.Away), term.Seconds(left), layout.SlotNodes(path).Number(now.Number),
				})
		}
	}
	return found
}

func newNumbersReport(path string, all []slots.State) *NumbersReport {
	n := &NumbersReport{Counts: []int{}, Kept: append([]Kept{}, kept(path, all)...)}
	for _, now := range all {
		if now.N > 0 {
			n.Counts = append(n.Counts, now.N)
		}
	}
	slices.Sort(n.Counts)
	n.Counts = slices.Compact(n.Counts)
	if len(n.Counts) > 0 {
		count := n.Counts[len(n.Counts)-1]
		taken := len(n.Kept)
		for _, now := range all {
			if now.Holder != nil {
				taken++
			}
		}
		free := max(0, count-taken)
		n.Free = &free
	}
	return n
}

func (n *NumbersReport) String() string {
	switch {
	case n == nil, n.Free == nil && len(n.Kept) == 0:
		return ""
	case n.Free == nil:
		return fmt.Sprintf("; %d kept", len(n.Kept))
	case len(n.Kept) == 0:
		return fmt.Sprintf(" of %d; %d free", slices.Max(n.Counts), *n.Free)
	}
	return fmt.Sprintf(" of %d; %d free, %d kept", slices.Max(n.Counts), *n.Free, len(n.Kept))
}

// inNumbers finds out whether there are slots at path, and who has or wants a
// number. It knows slots by the numbers that were given.
func (r *Report) inNumbers(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	if !slices.Contains(names, parts[NumbersKind][0]) {
		return nil, nil
	}
	s, err := slots.New(client, string(path), 1) // numbers of any N are listed
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	r.is(NumbersKind)
	r.Numbers = newNumbersReport(string(path), all)
	var line []inspect.Contender
	for _, now := range all {
		if now.Holder != nil {
			line = append(line, *now.Holder)
		}
	}
	waiting := layout.SlotNodes(path).Line()
	queue, err := inspect.Contenders(ctx, client, waiting.Dir, waiting.Kinds...)
	for _, c := range queue { // the first holds the right to choose, and no number
		c.Holds = false
		line = append(line, c)
	}
	return line, err
}
