package shards

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

var (
	// ErrKeys: members that run have another list of keys, or there is none.
	ErrKeys = errors.New("another list of keys")
	// ErrReplaced: a member that came later has the same ID.
	ErrReplaced = errors.New("another member has the ID")
	// ErrDrainTimeout is the cause of the end of a function's context that has
	// not drained its key in time; see [DrainTimeout].
	ErrDrainTimeout = errors.New("the key was not drained in time")
	// ErrNoOwner: nobody has the key.
	ErrNoOwner = errors.New("the key has no owner")
)

// Shards is a set of keys that members share among themselves, at a path, and
// one of its members, once [Shards.Run] is called. It is safe for concurrent
// use.
type Shards struct {
	client *coord.Client
	path   string
	self   Member
	list   list // that the member comes with; without keys, any
	limits limits
	drain  time.Duration
	runs   atomic.Pointer[run] // or nil
}

// Option sets something about [Shards].
type Option func(*Shards) error

// Keys is the list of keys. The first member makes it; a member that comes with
// another one while members with the former run is refused ([ErrKeys]). Without
// a list, a member takes the one that there is. See [Shards.SetKeys].
func Keys(keys ...string) Option {
	return func(s *Shards) (err error) {
		s.list, err = newList(keys)
		return err
	}
}

// Ranges is [Keys] for n ranges of a hash: [RangeOf] tells the range of an
// item.
func Ranges(n int) Option {
	return func(s *Shards) (err error) {
		s.list, err = newRanges(n)
		return err
	}
}

// ID names the member. A member that starts again under its ID gets the keys
// back that it had, if it is there before the plan has changed; by default each
// has a new ID. IDs must be unique: a member whose ID another takes loses its
// keys to that one, and ends within the session time-out ([ErrReplaced]).
func ID(id string) Option {
	return func(s *Shards) error {
		if id == "" || len(id) > maxName || strings.ContainsAny(id, "\n\r") || !utf8.ValidString(id) {
			return fmt.Errorf("%w: ID %.40q: it must be one line of 1 to %d bytes of UTF-8", coord.ErrInvalid, id, maxName)
		}
		s.self.ID = id
		return nil
	}
}

// Weight is the member's share of the keys, relative to other members': 1 by
// default. A member of weight 0 owns none.
func Weight(w int) Option {
	return func(s *Shards) error {
		if w < 0 || w > maxWeight {
			return fmt.Errorf("%w: weight %d: it must be between 0 and %d", coord.ErrInvalid, w, maxWeight)
		}
		s.self.Weight = w
		return nil
	}
}

// Zone says where the member is. A key that must move prefers a member of the
// zone that it comes from.
func Zone(zone string) Option {
	return func(s *Shards) error {
		if !utf8.ValidString(zone) {
			return fmt.Errorf("%w: zone %.40q: it must be UTF-8", coord.ErrInvalid, zone)
		}
		s.self.Zone = zone
		return nil
	}
}

// Data are for others to see, such as the member's address: see [Shards.Owner].
// They are part of the plan, which every member reads: at most 1024 bytes.
func Data(data []byte) Option {
	return func(s *Shards) error {
		if len(data) > 1024 {
			return fmt.Errorf("%w: %d bytes of data; a member has at most 1024", coord.ErrInvalid, len(data))
		}
		s.self.Data = data
		return nil
	}
}

// MovesAtATime bounds how many keys move from one member to another at the same
// time. Keys that nobody has, as after a crash, count for nothing. By default
// all that are to move do so at once. The option of the planner, which is the
// first member, counts.
func MovesAtATime(n int) Option {
	return func(s *Shards) error {
		if n < 1 {
			return fmt.Errorf("%w: %d moves at a time: it must be 1 or more", coord.ErrInvalid, n)
		}
		s.limits.moves = n
		return nil
	}
}

// Cooldown is how long a key that has moved is left where it is, unless its
// owner leaves or dies; by the planner's clock, in whole seconds. The option of
// the planner counts.
func Cooldown(d time.Duration) Option {
	return func(s *Shards) error {
		if d < 0 {
			return fmt.Errorf("%w: cooldown %v: it must not be negative", coord.ErrInvalid, d)
		}
		s.limits.cooldown = d
		return nil
	}
}

// DrainTimeout is how long this member's function may take to drain a key that
// is to move: 30 s by default. Then its context ends, and the key is released.
func DrainTimeout(d time.Duration) Option {
	return func(s *Shards) error {
		if d <= 0 {
			return fmt.Errorf("%w: drain time-out %v: it must be positive", coord.ErrInvalid, d)
		}
		s.drain = d
		return nil
	}
}

// New returns the shards at path, a directory that is made when it is needed.
// It does no I/O. An invalid argument fails with [coord.ErrInvalid], a list
// that fits into no node with [coord.ErrTooLarge].
func New(client *coord.Client, path string, opts ...Option) (*Shards, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	var suffix [4]byte
	_, _ = rand.Read(suffix[:]) // never fails
	id := strings.ReplaceAll(client.Identity(), " ", "-") + "-" + hex.EncodeToString(suffix[:])
	s := &Shards{client: client, path: path, self: Member{ID: id, Weight: 1}, drain: 30 * time.Second}
	if err := recipe.Configure(s, path, opts); err != nil {
		return nil, err
	}
	s.self.List = s.list.hash()
	return s, client.Failure("new", path, s.list.fits(client))
}

// ID returns the member's ID.
func (s *Shards) ID() string { return s.self.ID }

func (s *Shards) planNode() string { return s.path + "/plan" }

func (s *Shards) members() coord.Line {
	return coord.Line{Dir: s.path + "/members", Kinds: []string{"member"}}
}

// Line returns the line of a key's lock. Its first contender owns the key.
func (s *Shards) Line(key string) coord.Line {
	return inspect.LockLine(s.path + "/keys/" + nodeName(key))
}

// Parts are the names of the nodes below the path of shards.
func Parts() []string { return []string{"plan", "members", "keys"} }

// Func works for one key. Its context ends when the key is lost; see
// [Draining] for how it is asked to let the key go.
type Func = func(ctx context.Context, key string, h *coord.Hold) error

// Run is a member until ctx ends, f fails, or [Shards.Leave] is called: it
// calls f for each key that the member owns, each in a goroutine of its own,
// and never twice at a time for one key. When [Draining] is closed, f finishes
// and returns; then the key is released, and the member that the plan names has
// it. A function that returns nil earlier has nothing more to do: the member
// keeps the key, and calls it no more until it gets the key anew. An error ends
// Run, which returns it, unless the key was lost before.
//
// When ctx ends, the contexts of all functions end at once, and Run returns
// after the last of them has: a planned stop calls Leave first. A member whose
// session is lost joins again. Run returns nil after Leave. It fails with
// [ErrKeys] or [ErrReplaced] if it may not be a member, and with
// [coord.ErrTooLarge] if it is the planner and the plan fits into no node. One
// Run at a time.
func (s *Shards) Run(ctx context.Context, f Func) error {
	if f == nil {
		return s.client.Failure("run", s.path, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	r := &run{Shards: s, f: f, leave: make(chan struct{}), left: make(chan struct{})}
	if !s.runs.CompareAndSwap(nil, r) {
		return s.client.Failure("run", s.path, fmt.Errorf("%w: it runs already; make another Shards for another member", coord.ErrInvalid))
	}
	defer func() { // also when f panics
		s.runs.Store(nil)
		close(r.left)
	}()
	for {
		if over, err := r.term(ctx); over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return s.client.Failure("run", s.path, recipe.Ended(ctx))
		}
	}
}

// Leave gives all keys to other members, one after the other where
// [MovesAtATime] says so, and ends Run. Each key is drained, and released only
// when its next owner stands in line; keys that no other member may take are
// drained and released. When ctx ends first, Leave returns its error, and the
// member goes on leaving. A request to the member's node (inspect.Revoke) has
// the same effect. Two requests, and the moves.
func (s *Shards) Leave(ctx context.Context) error {
	r := s.runs.Load()
	if r == nil {
		return nil
	}
	r.begin.Do(func() { close(r.leave) })
	select {
	case <-r.left:
		return nil
	case <-ctx.Done():
		return s.client.Failure("leave", s.path, recipe.Ended(ctx))
	}
}

// run is a call of [Shards.Run].
type run struct {
	*Shards
	f        Func
	begin    sync.Once
	leave    chan struct{} // closed by Leave
	left     chan struct{} // closed at the end
	admitted bool          // the plan has had the member's list, or the member may follow any
	named    atomic.Bool   // by a plan: the member follows every list from then on
}

func (r *run) leaving() bool {
	select {
	case <-r.leave:
		return true
	default:
		return false
	}
}

// record is what the member's node says.
func (r *run) record() []byte {
	m := r.self
	m.Leaving = r.leaving()
	if r.named.Load() {
		m.List = ""
	}
	data, _ := json.Marshal(m) // never fails
	return data
}

type drainingKey struct{}

// Draining returns a channel that is closed when the key of a function's
// context is to move: the function is to finish and return, within
// [DrainTimeout]. Of any other context it returns nil.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return draining
}
