package shards

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// SetKeys replaces the list of keys, or makes the first one. Members that run
// follow it, and so do members that start with an older one: keys in both lists
// stay where they are, keys that are no longer in it are drained and released,
// and new ones are distributed. The list gets the next version. It fails with
// [coord.ErrTooLarge] if the plan has no room for it with the members there
// are. Two requests, and one reading of the plan by every member.
func (s *Shards) SetKeys(ctx context.Context, keys ...string) error {
	l, err := newList(keys)
	return recipe.Failure(s.client, "set keys", s.path, s.set(ctx, l, err))
}

// SetRanges is [Shards.SetKeys] with [Ranges]. Another number of ranges is
// another list: items then have another key.
func (s *Shards) SetRanges(ctx context.Context, n int) error {
	l, err := newRanges(n)
	return recipe.Failure(s.client, "set ranges", s.path, s.set(ctx, l, err))
}

func (s *Shards) set(ctx context.Context, l list, err error) error {
	if err != nil {
		return err
	}
	newest := int64(-1) // version that members know, once it was looked up
	return s.change(ctx, func(p *Plan) (*Plan, error) {
		if p == nil && newest < 0 {
			there, err := s.members().read(ctx, s.client.Synced())
			if err != nil {
				return nil, err
			}
			newest = 0
			for _, m := range there {
				newest = max(newest, m.Version)
			}
		}
		if p == nil {
			p = &Plan{Version: newest}
		} else if p.Version > 0 && p.list().hash() == l.hash() {
			return p, nil
		}
		l.version = p.Version + 1
		return p.relist(l), nil
	})
}

// bring sets the list of all members, unless theirs is as new.
func (s *Shards) bring(ctx context.Context, l list) error {
	return s.change(ctx, func(p *Plan) (*Plan, error) {
		switch {
		case p == nil:
			p = new(Plan)
		case p.Version >= l.version:
			return p, nil
		}
		return p.relist(l), nil
	})
}

// change replaces the plan, or what stands in its place, by what decide
// returns; that may be the plan itself. decide is called with nil if there is
// none.
func (s *Shards) change(ctx context.Context, decide func(*Plan) (*Plan, error)) error {
	return recipe.Retry(ctx, s.client, func(ctx context.Context) error {
		return recipe.NewRecord(s.client, s.planNode()).
			Change(ctx, s.client.Txn, func(data []byte, stat coord.Stat) ([]byte, error) {
				var old *Plan
				if stat.Czxid != 0 {
					var err error
					if old, err = decode(data); errors.Is(err, errNewerPlan) {
						return nil, err
					}
				}
				next, err := decide(old)
				if err != nil || next == old {
					return data, err
				}
				return next.encode(), s.fits(next, next.Members...)
			})
	})
}
