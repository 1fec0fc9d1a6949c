package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Owner is who has a key.
type Owner struct {
	Member  Member    // zero if a lock of another program has the key, or its member has gone
	Token   int64     // of the hold: see [coord.Hold.Token]
	Since   time.Time // when it came into the key's line, by the server's clock
	Node    string    // of the hold
	Revoked bool      // to let the key go
}

// holder returns the member whose hold a claim was made under.
func (p *Plan) holder(c inspect.Contender) Member {
	for _, node := range c.Under {
		if i := slices.IndexFunc(p.Members, func(m Member) bool { return m.Node == node }); i >= 0 {
			return p.Members[i]
		}
	}
	return Member{}
}

// current returns the plan. It costs no request while nothing has changed:
// this client watches it from the first call on.
func (s *Shards) current(ctx context.Context, c *coord.Client) (p *Plan, err error) {
	err = c.Wait(ctx, func(v *coord.View) (bool, error) {
		p, _, err = s.look(v)
		return true, err
	})
	if err == nil && p == nil {
		err = fmt.Errorf("%w: there is no plan", ErrNoOwner)
	}
	return p, err
}

// Owner returns who has a key, whatever the plan says. The owner reported was
// the first in the key's line at a moment since the call. It may have lost the
// key since: send the Token along, and have the receiver compare it with its
// own hold's. [ErrNoOwner] if nobody has the key, or the plan has no such key.
// Four requests at most, and the plan if it is not watched yet.
func (s *Shards) Owner(ctx context.Context, key string) (Owner, error) {
	fresh := s.client.Synced()
	p, err := s.current(ctx, fresh)
	var o Owner
	if err == nil {
		o, err = s.owner(ctx, fresh, p, key)
	}
	return o, recipe.Failure(s.client, "owner of "+nodeName(key), s.path, err)
}

func (s *Shards) owner(ctx context.Context, c *coord.Client, p *Plan, key string) (Owner, error) {
	if p.Place(key) < 0 {
		return Owner{}, fmt.Errorf("%w: the plan has no key %.40q", ErrNoOwner, key)
	}
	line := s.Line(key)
	for {
		names, err := c.Children(ctx, line.Dir)
		order := line.Order(names, c.Info().Dialect)
		if errors.Is(err, coord.ErrNoNode) || err == nil && len(order) == 0 {
			return Owner{}, ErrNoOwner
		} else if err != nil {
			return Owner{}, err
		}
		infos, err := inspect.Describe(ctx, c, line.Dir, order[:1])
		if err != nil {
			return Owner{}, err
		}
		for _, first := range infos { // none, if it has gone since
			m := p.holder(first)
			if m.Node == "" {
				m, err = s.unplanned(ctx, c, first)
			}
			return Owner{m, first.Token, first.Since, first.Node, first.Revoked}, err
		}
	}
}

// unplanned finds the member of a claim where the plan does not name it.
func (s *Shards) unplanned(ctx context.Context, c *coord.Client, claim inspect.Contender) (m Member, err error) {
	for _, node := range claim.Under {
		data, _, err := c.Get(ctx, s.members().Dir+"/"+node)
		if err == nil && json.Unmarshal(data, &m) == nil {
			m.Node = node
			return m, nil
		} else if err != nil && !errors.Is(err, coord.ErrNoNode) {
			return m, err
		}
	}
	return m, nil
}

// statusReaders is how many keys are looked at at a time.
const statusReaders = 64

// Plan returns the current plan, and the plan that would follow from the
// current members except those whose IDs are named, and from the list of keys
// of the options, if they have one. It changes nothing. The two plans are the
// same if nothing would change.
func (s *Shards) Plan(ctx context.Context, without ...string) (now, next *Plan, err error) {
	var there []record
	err = s.client.Synced().Wait(ctx, func(v *coord.View) (bool, error) {
		if now, _, err = s.look(v); err == nil {
			there, err = s.members().look(v)
		}
		return true, err
	})
	if err != nil {
		return nil, nil, recipe.Failure(s.client, "plan", s.path, err)
	}
	base := now
	if base == nil {
		now = new(Plan)
		base = now
	}
	if s.list.known() && s.list.hash() != base.list().hash() {
		base = base.relist(list{s.list.keys, s.list.ranges, base.Version + 1})
	}
	among := slices.DeleteFunc(base.admit(there), func(m Member) bool { return slices.Contains(without, m.ID) })
	if next = base.next(among, now.By, limits{}, nil, time.Now()); next == nil {
		next = base
	}
	return now, next, nil
}
