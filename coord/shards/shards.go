package shards

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

var (
	// ErrReplaced: a member that came later has the same ID.
	ErrReplaced = errors.New("another member has the ID")
	// ErrDrainTimeout: a function has not returned in time; see [DrainTimeout].
	ErrDrainTimeout = errors.New("a function has not returned in time")
	// ErrNoOwner: nobody has the key.
	ErrNoOwner = errors.New("the key has no owner")
)

// Shards is a set of keys that members share among themselves, at a path, and
// one of its members, once [Shards.Run] is called. It is safe for concurrent
// use.
type Shards struct {
	client   *coord.Client
	path     string
	self     Member
	list     list // that the member comes with; without keys, any
	limits   limits
	drain    time.Duration
	failFast bool
	onEvent  func(Event)
	runs     atomic.Pointer[run] // or nil
}

// Option sets something about [Shards].
type Option func(*Shards) error

// Keys is the list of keys. The first member makes it; a member that comes with
// another one while members with the former run is refused
// ([coord.ErrDisagree]), unless one of the two lists is newer ([ListVersion],
// [Shards.SetKeys]). Without a list, a member takes the one that there is, and
// waits until there is one.
func Keys(keys ...string) Option {
	return func(s *Shards) error { return s.setOwn(newList(keys)) }
}

// Ranges is [Keys] for n ranges of a hash: [RangeOf] tells the range of an
// item.
func Ranges(n int) Option {
	return func(s *Shards) error { return s.setOwn(newRanges(n)) }
}

func (s *Shards) setOwn(l list, err error) error {
	s.list.keys, s.list.ranges = l.keys, l.ranges
	return err
}

// ListVersion says which version of the list [Keys] or [Ranges] are. A member
// that comes with a newer version sets the list of all, as [Shards.SetKeys]
// does, which counts versions from 1. A member that comes with an older one
// follows the newer list, and reports that ([ListIsNewer]). So a list is
// changed by a rolling deployment, and back by another with a still higher
// version. By default the version is 0, which is older than all others.
func ListVersion(v int64) Option {
	return func(s *Shards) error {
		if v < 0 {
			return fmt.Errorf("%w: version %d of the list: it must not be negative", coord.ErrInvalid, v)
		}
		s.list.version = v
		return nil
	}
}

// ID names the member. A member that starts again under its ID gets the keys
// back that it had, if it is there before the plan has changed; by default each
// has a new ID. IDs must be unique: a member whose ID another one takes loses
// its keys to it, and ends if the other is there for a session timeout
// ([ErrReplaced]).
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
		if len(zone) > maxName || !utf8.ValidString(zone) {
			return fmt.Errorf("%w: zone %.40q: it must have at most %d bytes of UTF-8", coord.ErrInvalid, zone, maxName)
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
// time. Keys that no member has, as after a crash, count for nothing, and
// neither does a move that has not ended within the planner's [DrainTimeout]
// and a session timeout. By default all that are to move do so at once. The
// option of the planner, which is the first member, counts.
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
// owner leaves or dies; by the ensemble's clock, in whole seconds, and up to a
// thirtieth longer. The option of the planner counts.
func Cooldown(d time.Duration) Option {
	return func(s *Shards) error {
		if d < 0 {
			return fmt.Errorf("%w: cooldown %v: it must not be negative", coord.ErrInvalid, d)
		}
		s.limits.cooldown = d
		return nil
	}
}

// DrainTimeout is how long this member's functions may take to return, once
// their key is to move or their context has ended: 30 s by default. Then the
// context ends ([ErrDrainTimeout]), and a second later the key is given up: it
// is released, the planner gives it to another member, and this one takes it no
// more before the function has returned.
func DrainTimeout(d time.Duration) Option {
	return func(s *Shards) error {
		if d <= 0 {
			return fmt.Errorf("%w: drain timeout %v: it must be positive", coord.ErrInvalid, d)
		}
		s.drain = d
		return nil
	}
}

// FailFast has the first error of a function end Run, which returns it. By
// default that key alone waits, and its function is called again.
func FailFast() Option {
	return func(s *Shards) error {
		s.failFast = true
		return nil
	}
}

// OnEvent calls f with what goes wrong, and stays wrong, in this member: see
// [Event]. The client's log has it, too, at Warn. f is called from several
// goroutines, and must not block.
func OnEvent(f func(Event)) Option {
	return func(s *Shards) error {
		if f == nil {
			return fmt.Errorf("%w: the function for events is nil", coord.ErrInvalid)
		}
		s.onEvent = f
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
	id := strings.ReplaceAll(client.Info().Identity, " ", "-") + "-" + hex.EncodeToString(suffix[:])
	s := &Shards{client: client, path: path, self: Member{ID: id, Weight: 1}, drain: 30 * time.Second}
	if err := recipe.Configure(s, path, opts); err != nil {
		return nil, err
	}
	return s, recipe.Failure(client, "new", path, s.mayPlan())
}

// mayPlan returns an error if the plan might not fit into the node with this
// member alone.
func (s *Shards) mayPlan() error {
	if !s.list.known() {
		if s.list.version > 0 {
			return fmt.Errorf("%w: version %d of no list; name Keys or Ranges", coord.ErrInvalid, s.list.version)
		}
		return nil
	}
	return s.fits(new(Plan).relist(s.list), s.self)
}

// fits returns an error if the plan of a list might not fit into the node. The
// list may take three quarters of it.
func (s *Shards) fits(p *Plan, members ...Member) error {
	bare := p.list().size()
	if most := s.client.Info().MaxPacket / 4 * 3; bare > most {
		return fmt.Errorf("%w: %w: the list of %d keys takes %d bytes, and one node has room for a list of %d; "+
			"use fewer or shorter keys, or Ranges", coord.ErrInvalid, coord.ErrTooLarge, len(p.Keys), bare, most)
	}
	room := *p
	room.Room = cmp.Or(p.Room, s.room())
	if err := room.hasRoom(members); err != nil {
		return fmt.Errorf("%w: %w", coord.ErrInvalid, err)
	}
	return nil
}

// room is how large a plan this member can write: a packet, without the names
// around the plan.
func (s *Shards) room() int { return s.client.Info().MaxPacket - 1024 - 4*len(s.path) }

// ID returns the member's ID.
func (s *Shards) ID() string { return s.self.ID }

func (s *Shards) planNode() string { return s.path + "/plan" }

// Line returns the line of a key's lock. Its first contender owns the key.
func (s *Shards) Line(key string) coord.Line {
	return inspect.LockLine(s.path + "/keys/" + nodeName(key))
}

// Run is a member until ctx ends, [Shards.Leave] is called, or the member is
// refused. It calls f for each key that the member owns, each in a goroutine of
// its own, and never twice at a time for one key. When [Draining] is closed, f
// finishes and returns; then the key is released, and the member that the plan
// names has it. A function that returns nil earlier has nothing more to do: the
// member keeps the key, and calls it no more until it gets the key anew.
//
// A function that returns an error, panics or exits (runtime.Goexit) fails. The
// member keeps the key, and calls the function again after 1 s, then after
// twice as long each time, up to a minute; it tells so ([OnEvent],
// [Shards.Status]). No other key is touched. See [FailFast] for the
// alternative. If another program's node or an ACL keeps the member from a key,
// it tries again in the same way.
//
// When ctx ends, the contexts of all functions end at once, and Run returns
// after the last of them has, or [DrainTimeout] and a second later: a planned
// stop calls Leave first. A member whose session or node is lost joins again.
// Run returns nil after Leave. It fails with [coord.ErrDisagree],
// [ErrReplaced], or [coord.ErrTooLarge] (the plan has no room for one more) if
// it is refused; and if the servers do not let it join at all. The error
// matches [ErrDrainTimeout] as well if functions have not returned. One Run at
// a time.
func (s *Shards) Run(ctx context.Context, f Func) error {
	if f == nil {
		return recipe.Failure(s.client, "run", s.path, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	r := &run{
		Shards: s, f: f, leave: make(chan struct{}), left: make(chan struct{}), news: make(chan struct{}, 1), known: s.list,
		troubles: map[string]*trouble{},
	}
	if !s.runs.CompareAndSwap(nil, r) {
		return recipe.Failure(s.client, "run", s.path,
			fmt.Errorf("%w: it runs already; make another Shards for another member", coord.ErrInvalid))
	}
	defer close(r.left)
	defer s.runs.Store(nil)
	err := r.terms(ctx)
	return recipe.Joined(err, recipe.Failure(s.client, "run", s.path, r.notReturned()))
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
		return recipe.Failure(s.client, "leave", s.path, recipe.Ended(ctx))
	}
}

type drainingKey struct{}

// Draining returns a channel that is closed when the key of a function's
// context is to move: the function is to finish and return, within
// [DrainTimeout]. Of any other context it returns nil.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return draining
}
