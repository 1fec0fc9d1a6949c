package slots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Slots are the numbers from 0 to n-1 at a path. A Slots is configuration, not
// state, and safe for concurrent use.
type Slots struct {
	client   *coord.Client
	nodes    layout.SlotNodes
	n        int
	owner    string
	cooldown time.Duration
	bound    hold.Bound
}

// Option sets something about [Slots].
type Option func(*Slots) error

// Durable gives the owner of this name the number that it had before, even
// after its process or its session ended. Nobody else is given that number
// before the owner has been away for the cooldown, nor while another number is
// free. The owner counts as away once another client that acquires finds the
// number free; times are the servers'. Two processes that go by one name wait
// for each other.
func Durable(owner string, cooldown time.Duration) Option {
	return func(s *Slots) error {
		switch {
		case owner == "" || len(owner) > longest || !utf8.ValidString(owner):
			return fmt.Errorf("%w: owner %.40q: it must have 1 to %d bytes of UTF-8", coord.ErrInvalid, owner, longest)
		case cooldown < 0:
			return fmt.Errorf("%w: cooldown %v: it must not be negative", coord.ErrInvalid, cooldown)
		}
		s.owner, s.cooldown = owner, cooldown
		return nil
	}
}

// MaxHold bounds how long a number is held through these [Slots]: after d the
// holder is asked to give it up, and after grace more it has lost it. See
// [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option {
	return func(s *Slots) error { return s.bound.MaxHold(d, grace) }
}

// StopGrace bounds how long the function of [Slots.Do] may go on with its
// number after its context has ended. See [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option {
	return func(s *Slots) error { return s.bound.StopGrace(d) }
}

// longest is how long the name of an owner may be, in bytes.
const longest = 1000

// New returns the slots at path, of which this client is given numbers below n.
// It does no I/O. Invalid arguments fail with [coord.ErrInvalid].
func New(client *coord.Client, path string, n int, opts ...Option) (*Slots, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, &coord.OpError{
			Op: "new", Path: path, Err: fmt.Errorf("%w: %d slots: it must be at least 1", coord.ErrInvalid, n),
		}
	}
	s := &Slots{client: client, nodes: layout.SlotNodes(path), n: n}
	return s, recipe.Configure(s, path, opts)
}

// Slot is a number of one's own: an exclusive hold, whose token is larger than
// those of all who had the number before.
type Slot struct {
	coord.Held
	Number int

	hold *coord.Hold
}

// Release gives the number up. It answers and waits as [coord.Hold.Release]
// does.
func (s *Slot) Release(ctx context.Context) error { return s.hold.Release(ctx) }

// Acquire waits for a number until ctx ends: this owner's number, if it has one
// ([Durable]), otherwise the lowest free one. ctx bounds the waiting, not the
// hold. When Acquire returns an error, nothing is held, and nodes that could
// not be deleted yet are deleted in the background.
func (s *Slots) Acquire(ctx context.Context) (*Slot, error) { return s.acquire(ctx, "acquire", false) }

// TryAcquire takes a number if there is one for this client, and fails with
// [coord.ErrBusy] otherwise. It does not queue, and may pass those who do; but
// an owner that has no number yet takes none while others queue. While no
// server can be reached, it waits for one until ctx ends.
func (s *Slots) TryAcquire(ctx context.Context) (*Slot, error) { return s.acquire(ctx, "try", true) }

// Do acquires, runs f, and releases; see [hold.Do] for what it returns.
func (s *Slots) Do(ctx context.Context, f func(ctx context.Context, slot *Slot) error) error {
	return hold.Do(ctx, s.Acquire, f)
}

// Forget takes its number from the owner of this name. It fails with
// [coord.ErrBusy] while anyone holds the number. An owner without a number is
// forgotten already.
func (s *Slots) Forget(ctx context.Context, owner string) error {
	err := recipe.Retry(ctx, s.client, func(ctx context.Context) error {
		for {
			err := s.forget(ctx, owner)
			if !errors.Is(err, coord.ErrBadVersion) {
				return err
			}
		}
	})
	return recipe.Failure(s.client, "forget", string(s.nodes), err)
}

func (s *Slots) forget(ctx context.Context, owner string) error {
	all, err := s.list(ctx, s.client.Synced())
	for _, now := range all {
		if err == nil && now.Owner == owner {
			err = s.write(ctx, now, entry{})
		}
	}
	if errors.Is(err, coord.ErrNodeExists) {
		return fmt.Errorf("%w: %q has its number", coord.ErrBusy, owner)
	}
	return err
}

// State is what is known of a number.
type State struct {
	Number   int
	Holder   *inspect.Contender // nil: nobody holds it
	N        int                // how many there are, as the holder was told; 0: it does not say
	Owner    string             // whose it is, if it is anyone's ([Durable])
	Cooldown time.Duration      // before another owner is given it
	Away     time.Time          // since when the owner is known to be, by the servers' clock; zero: it is not

	version int32 // of the node with the entry; -1: there is none
}

// List returns all numbers that are held, or were, in order. Two listings, and
// a read or two for each number.
func (s *Slots) List(ctx context.Context) ([]State, error) {
	all, err := s.list(ctx, s.client)
	return all, recipe.Failure(s.client, "list", string(s.nodes), err)
}

func (s *Slots) list(ctx context.Context, c *coord.Client) (all []State, err error) {
	known, err := children(ctx, c, s.nodes.Numbers())
	if err != nil {
		return nil, err
	}
	held, err := children(ctx, c, s.nodes.Held())
	if err != nil {
		return nil, err
	}
	both := slices.Sorted(slices.Values(slices.Concat(known, held)))
	for _, number := range slices.Compact(both) {
		data, stat, err := c.Get(ctx, s.nodes.Number(number))
		now, err := state(number, data, stat, err)
		if err != nil {
			return nil, err
		}
		if held.has(number) {
			if err := s.describe(ctx, c, &now); err != nil {
				return nil, err
			}
		}
		all = append(all, now)
	}
	return all, nil
}

// describe reads the node of a number's holder, if there still is one.
func (s *Slots) describe(ctx context.Context, c *coord.Client, now *State) error {
	holders, err := inspect.Describe(ctx, c, s.nodes.Held(),
		[]coord.Contender{{Name: name(now.Number), Kind: Kind, Dialect: c.Info().Dialect}})
	for _, h := range holders {
		h.Holds = true
		h.Owner, now.N = said(h.Owner)
		now.Holder = &h
	}
	return err
}

// said takes a holder's data apart: who it is, and how many numbers there are
// for it.
func said(data string) (owner string, n int) {
	owner, rest, _ := strings.Cut(data, "\n")
	_, count, _ := strings.Cut(rest, " ")
	n, _ = strconv.Atoi(count) // 0: another version
	return owner, n
}

// state is what a read of a number's entry says, which may be missing.
func state(number int, data []byte, stat coord.Stat, err error) (State, error) {
	if errors.Is(err, coord.ErrNoNode) {
		return State{Number: number, version: -1}, nil
	}
	e := decode(data)
	now := State{Number: number, Owner: e.Owner, Cooldown: e.Cooldown, version: stat.Version}
	if e.Away {
		now.Away = stat.Modified
	}
	return now, err
}

// due is when another owner may be given the number.
func (s *State) due() time.Time { return s.Away.Add(s.Cooldown) }

// later orders numbers by due.
func later(a, b State) int { return cmp.Or(a.due().Compare(b.due()), cmp.Compare(a.Number, b.Number)) }
