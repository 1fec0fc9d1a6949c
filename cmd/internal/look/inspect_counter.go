package look

import (
	"context"
	"math"

	"github.com/zkcoord/zkcoord/coord"
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
		directories = append(directories, r.Path+"/leases", r.Path+"/locks", r.Path+"-__lock__")
	case QueueKind:
		directories = []string{r.Path + "/entries", r.Path + "/waiting", r.Path + "/waiting-kazoo"}
	}
	for _, dir := range directories {
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
