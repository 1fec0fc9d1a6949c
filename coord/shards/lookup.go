package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Owner is who has a key.
type Owner struct {
	Member Member    // zero if a lock of another program has the key, or its member has gone
	Token  int64     // of the hold: see [coord.Hold.Token]
	Since  time.Time // when it came into the key's line, by the server's clock
	Node   string    // of the hold
	Asked  bool      // to let the key go
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
	fresh := s.client.Fresh()
	p, err := s.current(ctx, fresh)
	var o Owner
	if err == nil {
		o, err = s.owner(ctx, fresh, p, key)
	}
	return o, s.client.Failure("owner of "+nodeName(key), s.path, err)
}

func (s *Shards) owner(ctx context.Context, c *coord.Client, p *Plan, key string) (Owner, error) {
	if p.Place(key) < 0 {
		return Owner{}, fmt.Errorf("%w: the plan has no key %.40q", ErrNoOwner, key)
	}
	line := s.Line(key)
	for {
		names, err := c.Children(ctx, line.Dir)
		order := line.Order(names, c.Dialect())
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

// Router tells the owners of keys to those who send them requests. It watches
// the plan, and remembers owners for as long as the plan does not change for
// them. It is safe for concurrent use, and needs no end.
type Router struct {
	shards *Shards

	mu     sync.Mutex
	plan   *Plan
	seen   int64 // the change that made it
	owners map[string]Owner
}

// Router returns a router. It does no I/O.
func (s *Shards) Router() *Router { return &Router{shards: s, owners: map[string]Owner{}} }

// Owner is [Shards.Owner] from memory, if the plan still names the owner that
// is remembered: without a request then. It may be late: the member may have
// lost the key, and even have another hold of it. But Member and Token always
// belong together: this member had the key with this token. Send the token
// along; when the receiver refuses it, call [Router.Forget].
func (r *Router) Owner(ctx context.Context, key string) (Owner, error) {
	o, err := r.owner(ctx, key)
	return o, r.shards.client.Failure("owner of "+nodeName(key), r.shards.path, err)
}

func (r *Router) owner(ctx context.Context, key string) (Owner, error) {
	p, err := r.follow(ctx)
	if err != nil {
		return Owner{}, err
	}
	planned, named := p.Owner(p.Place(key))
	r.mu.Lock()
	o, known := r.owners[key]
	r.mu.Unlock()
	if known && named && o.Member.Node == planned.Node {
		return o, nil
	}
	o, err = r.shards.owner(ctx, r.shards.client, p, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.owners, key); err == nil && named && o.Member.Node == planned.Node {
		r.owners[key] = o
	}
	return o, err
}

// follow returns the plan, which is decoded once.
func (r *Router) follow(ctx context.Context) (p *Plan, err error) {
	s := r.shards
	err = s.client.Wait(ctx, func(v *coord.View) (bool, error) {
		data, stat, err := v.Get(s.planNode())
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil && (r.plan == nil || r.seen != stat.Mzxid) {
			r.plan, err = decode(data)
			r.seen = stat.Mzxid
		}
		p = r.plan
		return true, err
	})
	if errors.Is(err, coord.ErrNoNode) {
		err = fmt.Errorf("%w: there is no plan", ErrNoOwner)
	}
	return p, err
}

// Forget has the router ask for the owner of a key at its next call.
func (r *Router) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, key)
}

// Status is what is known of a key.
type Status struct {
	Key     string
	Desired Member // by the plan; zero if it names nobody
	Owner   Owner  // who has it; the Token is 0 if nobody does
	Moving  bool   // it has an owner, and the plan names another, or nobody
	Life    Life
	Trouble Trouble // what its member tells of it, if that is not the usual; otherwise zero
}

// Trouble is what keeps a key from its work.
type Trouble struct {
	Member string    // the ID of the one that tells it
	Error  string    // the last
	Count  int       // attempts that have failed, one after the other
	Since  time.Time // by the ensemble's clock
	Again  time.Time // the next attempt, by the ensemble's clock; zero if something must change first
}

// statusReaders is how many keys are looked at at a time.
const statusReaders = 64

// Status returns the plan, and of each key in its order who is to own it, who
// does, and how it is: three requests for each key, and one for each member.
func (s *Shards) Status(ctx context.Context) (*Plan, []Status, error) {
	c := s.client.Fresh()
	p, err := s.current(ctx, c)
	if err != nil {
		return nil, nil, s.client.Failure("status", s.path, err)
	}
	there, err := s.members().read(ctx, c)
	all, failures := make([]Status, len(p.Keys)), make([]error, statusReaders)
	var reading sync.WaitGroup
	for i := range statusReaders {
		reading.Go(func() {
			for at := i; at < len(all) && failures[i] == nil; at += statusReaders {
				all[at], failures[i] = s.status(ctx, c, p, at)
			}
		})
	}
	reading.Wait()
	for _, r := range there {
		for _, t := range r.Keys {
			if at := p.Place(t.Key); at >= 0 {
				all[at].trouble(r, t)
			}
		}
	}
	return p, all, s.client.Failure("status", s.path, errors.Join(append(failures, err)...))
}

func (s *Shards) status(ctx context.Context, c *coord.Client, p *Plan, at int) (st Status, err error) {
	st = Status{Key: p.Keys[at], Life: LifeOwned}
	desired, named := p.Owner(at)
	st.Desired = desired
	st.Owner, err = s.owner(ctx, c, p, st.Key)
	st.Moving = err == nil && st.Owner.Member.Node != desired.Node
	switch {
	case err == nil && st.Owner.Member.Node == "":
		st.Life = LifeWaiting // for another program's lock
	case err == nil && st.Owner.Asked:
		st.Life = LifeDraining
	case errors.Is(err, ErrNoOwner) && named:
		st.Life, err = LifeWaiting, nil
	case errors.Is(err, ErrNoOwner):
		st.Life, err = LifeUnowned, nil
	}
	return st, err
}

// trouble adds what a member tells of the key.
func (st *Status) trouble(r record, t toldTrouble) {
	switch t.Life {
	case LifeGivenUp: // matters where nobody else has the key
		if st.Life != LifeWaiting && st.Life != LifeUnowned {
			return
		}
	case LifeFailing:
		if st.Owner.Member.Node != r.Node {
			return
		}
	default:
		if st.Desired.Node != r.Node {
			return
		}
	}
	st.Life, st.Trouble = t.Life, Trouble{r.ID, t.Error, t.Count, r.written.Modified.Add(-t.For), time.Time{}}
	if t.Again > 0 {
		st.Trouble.Again = r.written.Modified.Add(t.Again)
	}
}

// Plan returns the current plan, and the plan that would follow from the
// current members except those whose IDs are named, and from the list of keys
// of the options, if they have one. It changes nothing. The two plans are the
// same if nothing would change.
func (s *Shards) Plan(ctx context.Context, without ...string) (now, next *Plan, err error) {
	var there []record
	err = s.client.Fresh().Wait(ctx, func(v *coord.View) (bool, error) {
		if now, _, err = s.look(v); err == nil {
			there, err = s.members().look(v)
		}
		return true, err
	})
	if err != nil {
		return nil, nil, s.client.Failure("plan", s.path, err)
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
