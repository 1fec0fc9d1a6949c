package look

import (
	"context"
	"math"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// fewLeft is from when on it is told that a directory's sequence numbers come
// to their end.
const fewLeft = math.MaxInt32 / 10

func newReport(path string) Report {
	return Report{Path: path, Contenders: []Contender{}, Left: math.MaxInt32, Odd: []string{}}
}

// used notes a sequence number that was given to a node.
func (r *Report) used(number int64) { r.Left = min(r.Left, math.MaxInt32-number) }

// Count reads the counters of the directories in which the recipe makes its
// numbered nodes. The servers give a new node the count of all that were made
// in its directory, and tell twice that count less the children as its version,
// of 32 bits.
func (r *Report) Count(ctx context.Context, client *coord.Client) error {
	directories := []string{r.Path}
	switch r.Kind {
	case SlotsKind:
		for _, d := range dialects {
			l := semaphore.LayoutOf(d, r.Path)
			directories = append(directories, l.Leases.Dir, l.Queue.Dir)
		}
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
