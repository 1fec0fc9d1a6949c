package look

import (
	"context"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// Remover deletes what a recipe has left behind, if nobody is there.
type Remover = func(ctx context.Context) error

// removable is a recipe with a Remove.
type removable interface {
	Remove(ctx context.Context) error
}

// removables are the kinds of recipes that leave something behind.
var removables = map[string]func(c *coord.Client, path string) (removable, error){
	SlotsKind:   func(c *coord.Client, path string) (removable, error) { return semaphore.New(c, path, semaphore.Stored) },
	NumbersKind: func(c *coord.Client, path string) (removable, error) { return slots.New(c, path, 1) },
	roundsKind:  func(c *coord.Client, path string) (removable, error) { return doublebarrier.New(c, path, 1) },
	QueueKind:   func(c *coord.Client, path string) (removable, error) { return queue.New(c, path) },
	onceKind:    func(c *coord.Client, path string) (removable, error) { return once.New(c, path) },
	cronKind:    func(c *coord.Client, path string) (removable, error) { return cron.New(c, path, never{}) },
	shardsKind:  func(c *coord.Client, path string) (removable, error) { return shards.New(c, path) },
}

// RemoverOf returns the remover of the recipe in a report, or nil for a kind
// that leaves nothing behind.
func RemoverOf(c *coord.Client, r Report) (Remover, error) {
	if r.Kind == mixed {
		return nil, term.ExitWith(term.ExitFailed, "several recipes are at %s: %s; nothing was removed", r.Path,
			strings.Join(r.kinds, ", "))
	}
	construct := removables[r.Kind]
	if construct == nil {
		return nil, nil
	}
	is, err := construct(c, r.Path)
	if err != nil {
		return nil, err
	}
	return is.Remove, nil
}
