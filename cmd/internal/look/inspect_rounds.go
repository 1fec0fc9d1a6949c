package look

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

const roundsKind = "doublebarrier"

// RoundReport is what inspect shows of a double barrier.
type RoundReport struct {
	Number   int64 `json:"number"` // of the current round, or if none is open, the last; 0 before the first
	Open     bool  `json:"open"`
	Members  int   `json:"members"`  // of a round
	Inside   int   `json:"inside"`   // members of the current round that are there and have not finished
	Finished int   `json:"finished"` // members that have finished, and wait for the others
	Waiting  int   `json:"waiting"`  // for the next round

	inside  []string
	crashed bool // it was never closed, and none of its members is left
}

// inRounds finds out whether there is a double barrier at path, and its state.
func (r *Report) inRounds(
	ctx context.Context, client *coord.Client, path conn.NodePath, line []inspect.Contender,
) (bool, error) {
	b, err := doublebarrier.New(client, string(path), 1) // the stored number counts
	if err != nil {
		return false, err
	}
	status, err := b.Status(ctx)
	switch {
	case errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrForeign):
		return len(line) > 0, nil // their first round has not begun
	case err != nil:
		return false, err
	}
	r.is(roundsKind)
	r.Round = &RoundReport{Number: status.Round, Open: status.Open, Members: status.Size, inside: status.Inside}
	return true, nil
}

// RoundOf is a report of the round under way, if there is one.
func RoundOf(status doublebarrier.Status) *Report {
	return &Report{Round: &RoundReport{Open: status.Open, inside: status.Inside}}
}

// place sets a member's state in the barrier, and counts the member.
func (r *RoundReport) place(c *Contender) {
	owner, finished := doublebarrier.ParseOwner(c.Owner)
	c.Owner, c.Holds = owner, r.Open && slices.Contains(r.inside, c.Node)
	switch {
	case c.Holds && finished:
		c.State = "finished"
		r.Finished++
	case c.Holds:
		c.State = "inside"
		r.Inside++
	case slices.Contains(r.inside, c.Node):
		c.State = "leaves" // the round is over
	default:
		c.State = "waits"
		r.Waiting++
	}
}

// conclude ends a round that is open on record only: its members have all died,
// and the next member to come will close it.
func (r *RoundReport) conclude() {
	if r.Open && r.Inside+r.Finished == 0 {
		r.Open, r.crashed = false, true
	}
}

func (r *RoundReport) String() string {
	about := fmt.Sprintf("double barrier of %d", r.Members)
	switch {
	case r.Open:
		about += fmt.Sprintf(", round %d is open: %d inside, %d finished, %d gone", r.Number, r.Inside, r.Finished,
			r.Members-r.Inside-r.Finished)
		if r.Waiting > 0 {
			about += fmt.Sprintf("; %d for the next round", r.Waiting)
		}
		return about
	case r.crashed:
		about += fmt.Sprintf(", round %d broke off: all its members are gone", r.Number)
	case r.Number > 0:
		about += fmt.Sprintf(", round %d is over", r.Number)
	default:
		about += ", no round yet"
	}
	if r.Waiting == 0 {
		return about + "; nobody waits"
	}
	return about + fmt.Sprintf("; %d of %d have come", r.Waiting, r.Members)
}

var dialects = []coord.Dialect{coord.Curator, coord.Kazoo}
