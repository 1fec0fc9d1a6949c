package slots

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// acquire attempts until it succeeds, fails for good, or ctx ends. An attempt
// that loses its place in the line is followed by another.
func (s *Slots) acquire(ctx context.Context, op string, try bool) (slot *Slot, err error) {
	err = recipe.Retry(ctx, s.client, func(ctx context.Context) (err error) {
		for {
			slot, err = s.attempt(ctx, try)
			switch {
			case !errors.Is(err, coord.ErrLost):
				return err
			case ctx.Err() != nil:
				return recipe.Ended(ctx, err)
			}
			ctx = recipe.Patient(ctx)
		}
	})
	return slot, recipe.Failure(s.client, op, string(s.nodes), err)
}

// attempt chooses numbers, and claims them, until it has one. Only the first in
// line chooses, but for a try, and for an owner that knows its number.
func (s *Slots) attempt(ctx context.Context, try bool) (slot *Slot, err error) {
	a := &attempt{Slots: s, client: s.client, try: try}
	if s.owner != "" {
		a.client = s.client.Synced() // it must not miss the number that it had
	}
	defer a.leave() // the caller need not wait for the deletion
	for {
		if err := a.choose(ctx); err != nil {
			return nil, recipe.InVain(ctx, s.client, err, a.holders)
		}
		if a.chosen == nil {
			if a.place, err = a.enter(ctx); err != nil {
				return nil, recipe.InVain(ctx, s.client, err, a.holders)
			}
			continue
		}
		slot, err := a.claim(ctx)
		if slot != nil || err != nil {
			return slot, err
		}
	}
}

// holders says in an error why there was no number: who holds them, or the one
// that is this owner's. One request, and one for each of the first few.
func (a *attempt) holders(ctx context.Context) (string, error) {
	held, err := children(ctx, a.Slots.client, a.nodes.Held())
	held = held.below(a.n)
	if a.waitsFor != nil {
		held = numbers{a.waitsFor.Number}
	}
	var first []inspect.Contender
	for _, number := range held[:min(len(held), recipe.MostNamed)] {
		now := State{Number: number}
		if err = cmp.Or(err, a.describe(ctx, a.Slots.client, &now)); now.Holder != nil {
			first = append(first, *now.Holder)
		}
	}
	said := recipe.HeldBy(first, len(held))
	switch {
	case a.waitsFor != nil && said != "":
		said = fmt.Sprintf("the number of %q, %d, is %s", a.owner, a.waitsFor.Number, said)
	case len(held) < a.n && said != "":
		said += fmt.Sprintf("; %d of %d numbers, and the rest is kept for owners that are away", len(held), a.n)
	case len(held) == 0:
		said = "all numbers are kept for owners that are away"
	}
	return said, err
}

type attempt struct {
	*Slots
	client   *coord.Client
	try      bool
	place    *coord.Hold // in the line; nil without
	waitsFor *State      // the number of this owner, as long as another has it
	chosen   *State      // the number to claim; nil: it takes a place in the line first
	held     numbers     // when a number was looked for
}

// data are of a holder's node: its identity, what makes them unlike any other
// claim's, and how many numbers there are for it.
func (a *attempt) data() []byte {
	return []byte(a.client.Info().Identity + "\n" + rand.Text() + " " + strconv.Itoa(a.n))
}

// enter takes a place in the line.
func (a *attempt) enter(ctx context.Context) (*coord.Hold, error) {
	enter := recipe.Acquire
	if a.try {
		enter = recipe.TryAcquire
	}
	return enter(ctx, a.client, &coord.Spec{Line: a.nodes.Line(), Kind: "lock", Recipe: string(a.nodes)}, coord.First)
}

// choose waits until there is a number to claim, or until a place in the line
// is wanted.
func (a *attempt) choose(ctx context.Context) error {
	return a.client.Wait(ctx, func(v *coord.View) (done bool, err error) {
		a.chosen = nil
		if a.place == nil && !a.try && a.owner == "" {
			return true, nil
		}
		names, err := v.ChildrenIfAny(a.nodes.Numbers())
		if err != nil {
			return false, err
		}
		known := parse(names).below(a.n)
		own, err := a.own(v, known)
		if err != nil {
			return false, err
		}
		if own != nil {
			a.leave()
			a.waitsFor = own
			_, _, err := v.Get(a.nodes.Holder(own.Number))
			switch {
			case errors.Is(err, coord.ErrNoNode):
				a.chosen = own
				return true, nil
			case err == nil && a.try:
				err = coord.ErrBusy
			}
			return false, err
		}
		if a.place == nil && a.owner != "" {
			return true, nil
		}
		if a.place != nil {
			v.RecheckOn(a.place.Done())
		}
		if a.chosen, err = a.free(ctx, v, known); a.chosen != nil || err != nil {
			return true, err
		}
		if a.try {
			return false, coord.ErrBusy
		}
		return false, a.place.Err()
	})
}

// leave gives the place in the line up: who waits for its own number keeps
// nobody waiting.
func (a *attempt) leave() {
	if a.place != nil {
		a.place.Abandon()
		a.place = nil
	}
}

// own returns the number of this owner; nil if it has none.
func (a *attempt) own(v *coord.View, known numbers) (*State, error) {
	if a.owner == "" {
		return nil, nil
	}
	paths := make([]string, len(known))
	for i, number := range known {
		paths[i] = a.nodes.Number(number)
	}
	v.Prefetch(paths...)
	for _, number := range known {
		now, err := a.look(v, number)
		if err != nil {
			return nil, err
		}
		if now.Owner == a.owner {
			return &now, nil
		}
	}
	return nil, nil
}

// look reads the entry of a number.
func (a *attempt) look(v *coord.View, number int) (State, error) {
	data, stat, err := v.Get(a.nodes.Number(number))
	return state(number, data, stat, err)
}

// free returns the lowest number that nobody holds, and that is no other
// owner's; or the one whose owner has been away for the longest time beyond its
// cooldown; or nil, and the look is called again when there may be one.
func (a *attempt) free(ctx context.Context, v *coord.View, known numbers) (*State, error) {
	names, err := v.ChildrenIfAny(a.nodes.Held())
	if err != nil {
		return nil, err
	}
	held := parse(names)
	a.held = held
	var owned []State
	for number := range a.n {
		if held.has(number) {
			continue
		}
		now := State{Number: number, version: -1}
		if known.has(number) {
			if now, err = a.look(v, number); err != nil {
				return nil, err
			}
		}
		if now.Owner == "" {
			return &now, nil
		}
		owned = append(owned, now)
	}
	if len(owned) == 0 {
		return nil, nil
	}
	clock, err := recipe.EnsembleTime(ctx, a.Slots.client, a.nodes.Numbers(), time.Minute)
	if err != nil {
		return nil, err
	}
	for i := range owned {
		if err := a.mark(ctx, &owned[i], clock); isOutdated(err) {
			v.RecheckNow()
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	first := slices.MinFunc(owned, later)
	if left := first.due().Sub(clock); left > 0 {
		v.RecheckAt(time.Now().Add(left))
		return nil, nil
	}
	return &first, nil
}

// mark notes that the owner of a free number is away.
func (a *attempt) mark(ctx context.Context, now *State, clock time.Time) error {
	if !now.Away.IsZero() {
		return nil
	}
	err := recipe.Retry(ctx, a.Slots.client,
		func(ctx context.Context) error { return a.write(ctx, *now, entry{now.Owner, now.Cooldown, true}) })
	now.Away = clock
	now.version++
	return err
}

// write writes the entry of a number that nobody holds: the node of a holder is
// made and deleted, which fails with [coord.ErrNodeExists] if there is one.
func (s *Slots) write(ctx context.Context, now State, e entry) error {
	hold := s.nodes.Holder(now.Number)
	_, err := recipe.TxnIn(ctx, s.client, s.nodes.Held(), coord.EphemeralOp(hold, nil), coord.DeleteOp(hold, 0),
		coord.SetOp(s.nodes.Number(now.Number), e.encode(), now.version))
	return err
}

// isOutdated reports whether what was read is so no longer.
func isOutdated(err error) bool {
	return errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrBadVersion)
}

// claim takes the chosen number, if its entry is still as it was read. It
// returns neither a slot nor an error if another was faster.
func (a *attempt) claim(ctx context.Context) (*Slot, error) {
	number := a.nodes.Number(a.chosen.Number)
	data := entry{Owner: a.owner, Cooldown: a.cooldown}.encode()
	with := []coord.Op{coord.SetOp(number, data, a.chosen.version)}
	if a.chosen.version < 0 {
		with[0] = coord.CreateOp(number, data)
	}
	if a.place != nil {
		with = append(with, coord.CheckOp(a.place.Node(), -1))
	}
	wait := a.compare(ctx)
	holds, err := recipe.AcquireNames(ctx, a.client, coord.NameSpec{
		Path: a.nodes.Holder(a.chosen.Number), Data: a.data(),
		Recipe: string(a.nodes), Exclusive: true, With: with, Proof: []coord.Op{coord.CheckOp(number, a.chosen.version+1)},
	})
	wait()
	if err == nil {
		err = holds[0].Err()
	}
	switch {
	case err == nil:
		a.bound.Granted(ctx, a.Slots.client, holds[0])
		return &Slot{holds[0], a.chosen.Number, holds[0]}, nil
	case !isOutdated(err):
		return nil, err
	case a.place != nil && a.place.Err() != nil:
		return nil, a.place.Err()
	case errors.Is(err, coord.ErrNoNode):
		err = cmp.Or(a.client.EnsureDir(ctx, a.nodes.Held()), a.client.EnsureDir(ctx, a.nodes.Numbers()))
		return nil, err
	}
	return nil, nil
}

// compare reports, once, a holder that was told another number of slots: more,
// or fewer, than this client counts on. It asks the holder of the highest,
// while the claim is under way: so the first that comes with another number to
// those who hold reports that. What cannot be read is left out.
func (a *attempt) compare(ctx context.Context) (wait func()) {
	if a.chosen != a.waitsFor && len(a.held) == 0 {
		return func() {}
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, a.client.Info().SessionTimeout/3) // a grant waits no longer
		defer cancel()
		held := a.held
		if a.chosen == a.waitsFor { // its own number, for which it looked at no others
			held, _ = children(ctx, a.Slots.client, a.nodes.Held())
			held = slices.DeleteFunc(held, func(number int) bool { return number == a.chosen.Number })
		}
		if len(held) == 0 {
			return
		}
		now := State{Number: held[len(held)-1]}
		if err := a.describe(ctx, a.Slots.client, &now); err == nil && now.N > 0 && now.N != a.n {
			recipe.ReportOnce(a.Slots.client, slog.LevelWarn,
				event.Event{Kind: event.Differs, Path: string(a.nodes), Err: fmt.Errorf(
					"a holder was told that there are %d slots here; this client, %d: each is given numbers below its own",
					now.N, a.n)})
		}
	})
	return asking.Wait
}
