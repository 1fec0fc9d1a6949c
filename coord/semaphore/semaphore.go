package semaphore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Stored as the limit given to [New] stands for the limit that is stored in
// ZooKeeper, and follows it. A limit that was forgotten, 0, is refused.
const Stored = math.MinInt

// Semaphore is a semaphore at a path. It is configuration, not state: the
// acquiring methods return the state. A Semaphore is safe for concurrent use.
type Semaphore struct {
	client *coord.Client
	path   string
	limit  int
	nodes  layout.SemaphoreNodes
	bound  hold.Bound
}

// Option sets something about a [Semaphore].
type Option func(*Semaphore) error

// MaxHold bounds how long a lease is held through this [Semaphore]: after d the
// holder is asked to give it up, and after grace more it has lost it. See
// [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option {
	return func(s *Semaphore) error { return s.bound.MaxHold(d, grace) }
}

// StopGrace bounds how long the function of [Semaphore.Do] may go on under the
// lease after its context has ended. See [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option {
	return func(s *Semaphore) error { return s.bound.StopGrace(d) }
}

// New returns the semaphore at path, of which at most limit leases are held at
// a time; [Stored] follows the limit that is stored. It does no I/O: whether
// the limit is the stored one is looked up when a lease is wanted. Invalid
// arguments fail with [coord.ErrInvalid].
func New(client *coord.Client, path string, limit int, opts ...Option) (*Semaphore, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	if limit != Stored && (limit < 1 || limit > math.MaxInt32) {
		err := fmt.Errorf("%w: limit %d: it must be at least 1, or semaphore.Stored", coord.ErrInvalid, limit)
		return nil, &coord.OpError{Op: "new", Path: path, Err: err}
	}
	s := &Semaphore{client: client, path: path, limit: limit, nodes: layout.SemaphoreAt(client.Info().Dialect, path)}
	return s, recipe.Configure(s, path, opts)
}

// Acquire waits for a lease until ctx ends. ctx bounds the waiting, not the
// hold. When Acquire returns an error, nothing is left behind: nodes that could
// not be deleted yet are deleted in the background. The hold has a token only
// if the limit is 1.
func (s *Semaphore) Acquire(ctx context.Context) (*coord.Hold, error) {
	return first(s.acquire(ctx, "acquire", 1, false))
}

// TryAcquire takes a lease if one is free and fails with [coord.ErrBusy] if
// none is, which costs one read and no write, once the process knows the limit.
// While no server can be reached, it waits for one until ctx ends.
func (s *Semaphore) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return first(s.acquire(ctx, "try", 1, true))
}

// AcquireN is [Semaphore.Acquire] for n leases together, all or none. The group
// ends when any of them does. More than the limit fail with [coord.ErrInvalid].
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*hold.Set, error) {
	return group(s.acquire(ctx, "acquire", n, false))
}

// TryAcquireN is [Semaphore.TryAcquire] for n leases together, all or none.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*hold.Set, error) {
	return group(s.acquire(ctx, "try", n, true))
}

func first(holds []*coord.Hold, err error) (*coord.Hold, error) {
	if err != nil {
		return nil, err
	}
	return holds[0], nil
}

func group(holds []*coord.Hold, err error) (*hold.Set, error) {
	if err != nil {
		return nil, err
	}
	return hold.NewSet(holds[0], holds[1:]...), nil
}

// Do acquires a lease, runs f, and releases; see [hold.Do] for what it
// returns.
func (s *Semaphore) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return hold.Do(ctx, s.Acquire, f)
}

// Contenders lists the leases, the oldest first, and then the queue for them,
// in order. As many of the oldest leases as the limit allows are said to hold;
// a lease beyond that belongs to the first in the queue, which waits for room.
// Two listings, a read of the limit, and one of each.
func (s *Semaphore) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	seen, err := look(ctx, s.client, s.nodes)
	return seen.Contenders, err
}

// Sight is a semaphore as one look shows it.
type Sight struct {
	Exists     bool                // the directory of the leases does
	Limit      int                 // 0: none is stored, or it is not for this client to read
	Contenders []inspect.Contender // as [Semaphore.Contenders] lists them
}

// Look reads a semaphore of either dialect: two listings, a read of the limit,
// and one of each contender. Without a limit, all leases are said to hold but
// one, which the first in the queue may have made and waits for.
func Look(ctx context.Context, c *coord.Client, d coord.Dialect, path string) (Sight, error) {
	return look(ctx, c, layout.SemaphoreAt(d, path))
}

func look(ctx context.Context, c *coord.Client, at layout.SemaphoreNodes) (seen Sight, err error) {
	names, err := c.Children(ctx, at.Leases.Dir)
	seen.Exists = err == nil
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return seen, err
	}
	line := at.Order(names)
	for _, name := range names {
		if !at.Kazoo && !slices.ContainsFunc(line, func(c coord.Contender) bool { return c.Name == name }) {
			line = append(line, coord.Contender{Name: name, Kind: Kind, Dialect: coord.Curator})
		}
	}
	leases, err := inspect.Describe(ctx, c, at.Leases.Dir, line)
	if err != nil {
		return seen, err
	}
	slices.SortFunc(leases, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	data, _, err := c.Get(ctx, at.Limit)
	if err != nil && !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNoAuth) {
		return seen, err
	}
	seen.Limit, _ = decode(data, at)
	queue, err := inspect.Contenders(ctx, c, at.Queue.Dir, at.Queue.Kinds...)
	holding := seen.Limit
	if holding == 0 {
		holding = len(leases) - min(1, len(queue))
	}
	seen.Contenders = append(leases, queue...)
	for i := range seen.Contenders { // the first in the queue holds the right to make leases, and no lease
		seen.Contenders[i].Holds = i < min(holding, len(leases))
	}
	return seen, err
}

// leases lists the names of the leases.
func (s *Semaphore) leases(ctx context.Context) ([]string, error) {
	names, err := s.client.Children(ctx, s.nodes.Leases.Dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// Kind is the kind of a lease.
const Kind string = layout.Lease

// makeLease makes a lease, and lists them along with it if that is of use.
// Kazoo's has no number.
func (s *Semaphore) makeLease(ctx context.Context, exclusive, list bool) (h *coord.Hold, names []string, err error) {
	if !s.nodes.Kazoo {
		return recipe.Join(ctx, s.client,
			&coord.Spec{Line: s.nodes.Leases, Kind: Kind, Recipe: s.path, Exclusive: exclusive, Unlisted: !list})
	}
	var id [layout.GUIDBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	h, err = recipe.AcquireName(ctx, s.client,
		coord.NameSpec{Path: s.nodes.Leases.Dir + "/" + hex.EncodeToString(id[:]), Recipe: s.path, Exclusive: exclusive})
	if err == nil && list {
		if names, err = s.client.Children(ctx, s.nodes.Leases.Dir); err != nil {
			h.Abandon()
		}
	}
	return h, names, err
}

func encode(limit int, at layout.SemaphoreNodes) []byte {
	if at.Kazoo {
		return strconv.AppendInt(nil, int64(limit), 10)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(limit))
}

// decode reads a limit; it is 0 if none was stored.
func decode(data []byte, at layout.SemaphoreNodes) (limit int, err error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case at.Kazoo:
		limit, err = strconv.Atoi(strings.TrimSpace(string(data)))
	case len(data) == 4:
		limit = int(int32(binary.BigEndian.Uint32(data)))
	}
	if err != nil || limit < 1 || limit > math.MaxInt32 {
		return 0, fmt.Errorf("%w: the data %.40q of %s are no limit; SetLimit replaces them", coord.ErrDisagree,
			data, at.Limit)
	}
	return limit, nil
}

// Limit returns the stored limit. One request, or none when this process
// watches the limit already; three more before it says that none is stored.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	stored := *s
	stored.limit = Stored
	limit, err := stored.agree(ctx, 1)
	return limit, recipe.Failure(s.client, "limit", s.path, err)
}

// SetLimit changes the limit, or stores the first. Programs that ask for
// another number are refused from then on ([coord.ErrDisagree]), waiters when
// their turn comes; programs that follow the stored one ([Stored]) follow
// immediately, also while they wait. Leases that are held stay held: after
// lowering the limit, no acquire succeeds until enough have been released. It
// repeats itself over lost connections until ctx ends: if the reply is lost and
// another program sets a different limit meanwhile, the retry overwrites it.
func (s *Semaphore) SetLimit(ctx context.Context, limit int) error {
	if limit < 1 || limit > math.MaxInt32 {
		return recipe.Failure(s.client, "set limit", s.path,
			fmt.Errorf("%w: limit %d: it must be at least 1", coord.ErrInvalid, limit))
	}
	err := recipe.Retry(ctx, s.client, func(ctx context.Context) error {
		return recipe.NewRecord(s.client, s.nodes.Limit).
			Change(ctx, s.client.Txn, func([]byte, coord.Stat) ([]byte, error) { return encode(limit, s.nodes), nil })
	})
	return recipe.Failure(s.client, "set limit", s.path, err)
}

// agree returns the limit in force for a claim to so many leases. The first
// program stores its own. A refusal is of the latest state.
func (s *Semaphore) agree(ctx context.Context, want int) (limit int, err error) {
	for _, c := range []*coord.Client{s.client, s.client.Synced()} { // the server may lag behind a change of the limit
		err = c.Wait(ctx, func(v *coord.View) (bool, error) {
			limit, err = s.look(ctx, v, want)
			return true, err
		})
		if !errors.Is(err, coord.ErrDisagree) && !errors.Is(err, coord.ErrInvalid) {
			break
		}
	}
	return limit, err
}

func (s *Semaphore) look(ctx context.Context, v *coord.View, want int) (int, error) {
	var own []byte
	if s.limit != Stored {
		own = encode(s.limit, s.nodes)
	}
	record := recipe.NewRecord(s.client, s.nodes.Limit)
	for {
		data, _, err := record.Look(v, own)
		if err != nil {
			return 0, err
		}
		limit, err := decode(data, s.nodes)
		switch {
		case err != nil:
			return 0, err
		case limit == 0 && s.limit == Stored:
			return 0, fmt.Errorf("%w: no limit is stored in %s yet; SetLimit stores one", coord.ErrDisagree, s.nodes.Limit)
		case limit == 0: // Kazoo has made the node and left it empty
			err = record.Change(ctx, s.client.Txn, func(data []byte, _ coord.Stat) ([]byte, error) {
				if len(data) > 0 {
					return data, nil // another program was faster
				}
				return own, nil
			})
			if err != nil {
				return 0, err
			}
		case s.limit != Stored && s.limit != limit:
			return 0, fmt.Errorf("%w: %s says %d, this program %d", coord.ErrDisagree, s.nodes.Limit, limit, s.limit)
		case want > limit:
			return 0, fmt.Errorf("%w: %d leases at once, of a semaphore of %d", coord.ErrInvalid, want, limit)
		default:
			return limit, nil
		}
	}
}
