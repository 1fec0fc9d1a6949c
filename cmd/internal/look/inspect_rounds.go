package look

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
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

// inRounds finds out whether there is a double barrier at path, and how it
// stands.
func (r *Report) inRounds(ctx context.Context, client *coord.Client, path conn.NodePath, line []inspect.Contender) (bool, error) {
	b, err := doublebarrier.New(client, string(path), 1) // the number that is stored counts
	if err != nil {
		return false, err
	}
	status, err := b.Status(ctx)
	switch {
	case errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrForeign):
		return len(line) > 0, nil // members who have not come to a round yet
	case err != nil:
		return false, err
	}
	r.is(roundsKind)
	r.Round = &RoundReport{Number: status.Round, Open: status.Open, Members: status.Size, inside: status.Inside}
	return true, nil
}

// RoundOf is a report of the round that is under way, if one is.
func RoundOf(status doublebarrier.Status) *Report {
	return &Report{Round: &RoundReport{Open: status.Open, inside: status.Inside}}
}

// place returns where in the barrier a member is, and counts it.
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
// and the next one to come closes it.
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

// SlotsKind is the kind of a path whose lock has slots.
const SlotsKind = "semaphore"

var dialects = []coord.Dialect{coord.Curator, coord.Kazoo}

// inSlots finds out whether there is a semaphore at path, of either dialect,
// and who has or wants a slot. A semaphore of Curator's that no client uses is
// known by its limit; one of Kazoo's looks like any other node then.
func (r *Report) inSlots(ctx context.Context, client *coord.Client, path conn.NodePath, names []string) ([]inspect.Contender, error) {
	isPart := func(name string) bool { return slices.Contains(parts[SlotsKind], name) }
	for _, d := range dialects {
		if r.Kind != "" && (d == coord.Kazoo || !slices.ContainsFunc(names, isPart)) {
			continue
		}
		seen, err := semaphore.LayoutOf(d, string(path)).Look(ctx, client)
		if err != nil {
			return nil, err
		}
		// A node whose name does not say what it is may be anything; but a
		// lease belongs to a session.
		line := slices.DeleteFunc(seen.Contenders, func(c inspect.Contender) bool { return c.Session == 0 && c.GUID == "" })
		idle := seen.Limit > 0 && (len(line) > 0 || d == coord.Curator && (seen.Exists || len(names) == 1))
		if idle || slices.ContainsFunc(line, func(c inspect.Contender) bool { return c.Kind == semaphore.Kind }) {
			r.is(SlotsKind)
			r.Limit = seen.Limit
			return line, nil
		}
	}
	return nil, nil
}

func isKazooLease(name string) bool {
	return len(semaphore.LayoutOf(coord.Kazoo, "").Order([]string{name})) > 0
}

// fewLeft is how many sequence numbers a directory has left when reports begin
// to warn of their end.
const fewLeft = math.MaxInt32 / 10

func newReport(path string) Report {
	return Report{Path: path, Contenders: []Contender{}, Left: math.MaxInt32, Odd: []string{}}
}

// used notes a sequence number that was given to a node.
func (r *Report) used(number int64) { r.Left = min(r.Left, math.MaxInt32-number) }

// Count reads the counters of the directories in which the recipe makes its
// numbered nodes. The servers number a new node by the count of all nodes ever
// made in its directory. The directory's child version is twice that count less
// its children, in 32 bits.
func (r *Report) Count(ctx context.Context, client *coord.Client) error {
	directories := []string{r.Path}
	switch r.Kind {
	case SlotsKind:
		for _, d := range dialects {
			l := semaphore.LayoutOf(d, r.Path)
			directories = append(directories, l.Leases.Dir, l.Queue.Dir)
		}
	case NumbersKind:
		directories = []string{slots.LayoutOf(r.Path).Line().Dir}
	case QueueKind:
		directories = nil
		for _, d := range dialects {
			l := queue.LayoutOf(d, r.Path)
			directories = append(directories, l.Entries, l.Waiting.Dir)
		}
	}
	slices.Sort(directories)
	for _, dir := range slices.Compact(directories) {
		stat, there, err := client.Exists(ctx, dir)
		if err != nil {
			return err
		}
		if made := uint32(stat.Cversion+stat.Children) / 2; there && made > 0 {
			r.used(int64(made) - 1)
		}
	}
	return nil
}
