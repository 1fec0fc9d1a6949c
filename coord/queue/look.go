package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Peeked is an item as [Queue.Peek] saw it.
type Peeked struct {
	Name       string // of its node
	Data       []byte
	Priority   int
	Deliveries int       // so far
	Put        time.Time // by the server's clock
}

func peeked(e store.Entry) Peeked {
	return Peeked{e.Name, e.Data, store.Priority(e.Name), e.Deliveries(), e.Stat.Created}
}

// Items lists the names of all items in the queue's order, and of the items
// that consumers have. It fails with [coord.ErrNoNode] for a queue that was
// never used. Two requests, in one round trip.
func (q *Queue) Items(ctx context.Context) (all, taken []string, err error) {
	entries, claims, err := q.at.list(ctx)
	slices.Sort(claims)
	return store.Unclaimed(entries, nil), claims, recipe.Failure(q.client, "list", q.path, err)
}

// PeekAt reads the items of these names, and leaves out items that are gone.
// One request for each, 128 at a time. A name that is no item's fails with
// [coord.ErrInvalid].
func (q *Queue) PeekAt(ctx context.Context, names ...string) ([]Peeked, error) {
	if i := slices.IndexFunc(names, func(name string) bool { return !store.IsItem(name) }); i >= 0 {
		return nil, recipe.Failure(q.client, "peek", q.path,
			fmt.Errorf("%w: %q is no item's name", coord.ErrInvalid, names[i]))
	}
	entries, err := q.at.readEach(ctx, q.at.Entries, names, q.client.Get)
	items := make([]Peeked, len(entries))
	for i, e := range entries {
		items[i] = peeked(e)
	}
	return items, recipe.Failure(q.client, "peek", q.path, err)
}

// ConsumerKind is the kind of the contenders that [Queue.Claims] and
// [Queue.Consumers] return.
const ConsumerKind string = "consumer"

// Claims reads who has the items of these names, and leaves out free items. The
// claims have the items' names. One request for each.
func (q *Queue) Claims(ctx context.Context, names ...string) ([]inspect.Contender, error) {
	claims, err := q.describe(ctx, q.at.Taken, names)
	for i, c := range claims {
		owner, _, named := strings.Cut(c.Owner, "\n")
		claims[i].Owner = owner
		if !named {
			claims[i].Owner = "" // of a claim of another program
		}
		claims[i].Holds = true
	}
	return claims, err
}

// Consumers lists the consumers that share the queue or wait, by age. A
// consumer alone that has enough to do is not among them. One listing, and one
// read for each.
func (q *Queue) Consumers(ctx context.Context) ([]inspect.Contender, error) {
	names, err := q.client.Children(ctx, q.at.Consumers)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := q.describe(ctx, q.at.Consumers, names)
	slices.SortFunc(all, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	return all, err
}

func (q *Queue) describe(ctx context.Context, dir string, names []string) ([]inspect.Contender, error) {
	line := make([]coord.Contender, len(names))
	for i, name := range names {
		line[i] = coord.Contender{Name: name, Kind: ConsumerKind, Dialect: q.client.Info().Dialect}
	}
	return inspect.Describe(ctx, q.client, dir, line)
}
