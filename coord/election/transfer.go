package election

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrNoCandidate: no such candidate stands in the line, or it does no more.
var ErrNoCandidate = errors.New("no such candidate")

// Transfer hands the lead to a candidate, named by its node (Node of
// [Election.Contenders]), and returns when that leads (in Kazoo's dialect, and
// for another library's candidate: when it is first in line). It names the
// candidate in the directory's data and resigns; the candidates before it step
// behind it, once each, when their turn comes.
//
// The term goes on when Transfer fails because the candidate has left the line
// ([ErrNoCandidate]), or because one before it would not step aside, such as
// one of Curator's or Kazoo's ([errors.ErrUnsupported]): nothing is changed
// then. [coord.Hold.Err] says whether the term is over. The candidate may go
// after the resignation, before it leads: Transfer fails with [ErrNoCandidate],
// and the next in line leads. When ctx ends after the resignation, the
// candidate may still be elected.
//
// Stop what acts under the term before the call, or when the term's context
// ends, which is before the candidate leads. A function that [Election.Run]
// calls returns nil after it. To name the leader changes nothing.
//
// A write, a list, a read, a transaction and the resignation, one after the
// other; then the cost of stepping aside for each candidate before it.
func (t *Term) Transfer(ctx context.Context, candidate string) error {
	e := t.election
	leader, err := e.name(ctx, candidate, true, func(ctx context.Context, _ string, ops ...coord.Op) error {
		_, err := t.Txn(ctx, ops...)
		return err
	})
	if err == nil && leader != candidate {
		if err = t.Resign(ctx); err == nil {
			err = e.awaitTerm(ctx, candidate)
		}
	}
	return recipe.Failure(e.client, "transfer", e.line.Dir, err)
}

// Transfer has the leader, of whichever process, hand the lead to a candidate,
// as [Term.Transfer] does: it names the candidate, and asks the leader to step
// down ([inspect.Revoke]). A leader that does not obey leads on, and Transfer
// waits until ctx ends; the candidate stays named for when that term is over.
// The leader must be one by this package: no other can be asked.
func (e *Election) Transfer(ctx context.Context, candidate string) error {
	leader, err := e.name(ctx, candidate, false, func(ctx context.Context, leader string, ops ...coord.Op) error {
		_, err := e.client.Txn(ctx, append([]coord.Op{coord.CheckOp(leader, -1)}, ops...)...)
		return err
	})
	if err == nil && leader != candidate {
		err = e.ask(ctx, leader)
	}
	if err == nil {
		err = e.awaitTerm(ctx, candidate)
	}
	return recipe.Failure(e.client, "transfer", e.line.Dir, err)
}

// ask asks the leader to step down, as soon as it can be asked: its notice
// comes shortly after it has begun to lead.
func (e *Election) ask(ctx context.Context, leader string) error {
	err := inspect.Revoke(ctx, e.client, leader)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	err = e.client.Wait(ctx, func(v *coord.View) (bool, error) {
		_, noticed, err := v.Exists(inspect.Notice(leader))
		if err != nil || noticed {
			return noticed, err
		}
		_, there, err := v.Exists(leader)
		return !there, err
	})
	if err != nil {
		return err
	}
	return inspect.Revoke(ctx, e.client, leader)
}

// name notes in the directory's data, by txn, that a candidate is to lead after
// the leader, which it returns. It writes nothing if the candidate leads
// already, is not in line, or has others before it that would not step aside;
// the leader of another process must be one that can be asked.
func (e *Election) name(
	ctx context.Context, candidate string, own bool, txn func(ctx context.Context, leader string, ops ...coord.Op) error,
) (leader string, err error) {
	c := e.client.Synced()
	err = recipe.Retry(ctx, c, func(ctx context.Context) error {
		for {
			names, err := c.Children(ctx, e.line.Dir)
			line, at, err := e.find(candidate, names, err)
			if err != nil {
				return err
			}
			leader = e.line.Dir + "/" + line[0].Name
			if at == 0 {
				return nil
			}
			before := line[:at]
			if own {
				before = line[1:at]
			}
			for _, other := range before {
				if !inspect.IsOurs(other) {
					return fmt.Errorf("%w: %s is another library's, and does not step aside for %s", errors.ErrUnsupported, other.Name,
						path.Base(candidate))
				}
			}
			data, stat, err := c.Get(ctx, e.line.Dir)
			if err != nil {
				return err
			}
			note := inspect.Note(inspect.OwnData(data), nextKey, path.Base(candidate))
			err = txn(ctx, leader, coord.CheckOp(candidate, -1), coord.SetOp(e.line.Dir, note, stat.Version))
			if !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrBadVersion) {
				return err
			}
		}
	})
	return leader, err
}

// find returns the line, and the candidate's place in it, by a listing.
func (e *Election) find(candidate string, names []string, err error) (line []coord.Contender, at int, _ error) {
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return nil, 0, err
	}
	line = e.line.Order(names, e.client.Info().Dialect)
	at = slices.IndexFunc(line, func(c coord.Contender) bool { return e.line.Dir+"/"+c.Name == candidate })
	if at < 0 {
		return nil, 0, fmt.Errorf("%w: %s", ErrNoCandidate, candidate)
	}
	return line, at, nil
}

// awaitTerm waits until a candidate's term has begun: it is first in line, and
// if it is to have a notice, that is there.
func (e *Election) awaitTerm(ctx context.Context, candidate string) error {
	notice := inspect.Notice(candidate)
	return e.client.Synced().Wait(ctx, func(v *coord.View) (begun bool, err error) {
		names, err := v.ChildrenIfAny(e.line.Dir)
		line, at, err := e.find(candidate, names, err)
		if err != nil || at > 0 {
			return false, err
		}
		return notice == candidate || !inspect.IsOurs(line[0]) || slices.Contains(names, path.Base(notice)), nil
	})
}
