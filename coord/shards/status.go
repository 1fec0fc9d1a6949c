package shards

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Status is what is known of a key.
type Status struct {
	Key     string
	Desired Member // by the plan; zero if it names nobody
	Owner   Owner  // who has it; the Token is 0 if nobody does
	Moving  bool   // it has an owner, and the plan names another, or nobody
	Life    Life
	Trouble Trouble // what is wrong with it, as its member says, or zero
}

// Trouble is what keeps a key from its work.
type Trouble struct {
	Member string    // the ID of the member that says so
	Error  string    // the last
	Count  int       // attempts that have failed, one after the other
	Since  time.Time // by the ensemble's clock
	Again  time.Time // the next attempt, by the ensemble's clock; zero if something must change first
}

// Status returns the plan, and of each key in its order who is to own it, who
// does, and how it is: three requests for each key, and one for each member.
func (s *Shards) Status(ctx context.Context) (*Plan, []Status, error) {
	c := s.client.Synced()
	p, err := s.current(ctx, c)
	if err != nil {
		return nil, nil, recipe.Failure(s.client, "status", s.path, err)
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
	return p, all, recipe.Failure(s.client, "status", s.path, recipe.JoinedWithin(ctx, append(failures, err)...))
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
	case err == nil && st.Owner.Revoked:
		st.Life = LifeDraining
	case errors.Is(err, ErrNoOwner) && named:
		st.Life, err = LifeWaiting, nil
	case errors.Is(err, ErrNoOwner):
		st.Life, err = LifeUnowned, nil
	}
	return st, err
}

// trouble adds what a member says about the key.
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
