package group

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Group is a group at a path. It is configuration, not state, and safe for
// concurrent use.
type Group struct {
	client *coord.Client
	path   string
	suffix string // of a member's node
}

// New returns the group at path, a directory that is made when it is needed. It
// does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Group, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	return &Group{client, path, layout.MemberSuffix(client.Info().Dialect)}, nil
}

// Membership is a hold that excludes others from the ID, until it is left.
type Membership struct {
	coord.Held
	hold   *coord.Hold
	client *coord.Client
}

// Join joins under an ID, with data; nil stands for the client's identity.
// While another has the ID, such as the session that this process had before it
// was started again, Join waits, until ctx ends. One request.
func (g *Group) Join(ctx context.Context, id string, data []byte) (*Membership, error) {
	return g.join(ctx, id, coord.NameSpec{Data: data})
}

func (g *Group) join(ctx context.Context, id string, spec coord.NameSpec) (*Membership, error) {
	spec.Path, spec.Exclusive = g.path+"/"+id+g.suffix, true
	h, err := g.acquire(ctx, id, spec)
	if err != nil {
		return nil, recipe.Failure(g.client, "join", spec.Path, err)
	}
	return &Membership{h, h, g.client}, nil
}

func (g *Group) acquire(ctx context.Context, id string, spec coord.NameSpec) (*coord.Hold, error) {
	if id == "" || strings.ContainsRune(id, '/') {
		return nil, fmt.Errorf("%w: the ID %q: it must be a node's name", coord.ErrInvalid, id)
	}
	if err := inspect.CheckData(spec.Data); err != nil {
		return nil, err
	}
	for {
		h, err := recipe.AcquireName(ctx, g.client, spec)
		if !errors.Is(err, coord.ErrNodeExists) {
			return h, err
		}
		err = g.client.Wait(ctx, func(v *coord.View) (gone bool, err error) {
			_, _, err = v.Get(spec.Path)
			if errors.Is(err, coord.ErrNoNode) {
				return true, nil
			}
			return false, err
		})
		if ctx.Err() != nil {
			return nil, recipe.Ended(ctx, errors.New("another has the ID"))
		} else if err != nil {
			return nil, err
		}
	}
}

// Leave ends the membership, and frees the ID. It answers and waits as
// [coord.Hold.Release] does.
func (m *Membership) Leave(ctx context.Context) error { return m.hold.Release(ctx) }

// Set replaces the member's data. It succeeds only while the membership's node
// exists: afterwards the error matches [coord.ErrLost], or [coord.ErrReleased].
// It repeats itself over lost connections. Three requests in three round trips,
// and two more before it is refused.
func (m *Membership) Set(ctx context.Context, data []byte) error {
	err := inspect.CheckData(data)
	if err == nil {
		err = recipe.Retry(ctx, m.client, func(ctx context.Context) error {
			return recipe.NewRecord(m.client.Synced(), m.Node()).
				Change(ctx, m.Txn, func(_ []byte, stat coord.Stat) ([]byte, error) {
					if stat.Czxid != m.Token() { // the next member's node has the same version
						return nil, cmp.Or(m.Err(), fmt.Errorf("%w: %w", coord.ErrLost, coord.ErrNodeDeleted))
					}
					return data, nil
				})
		})
	}
	return recipe.Failure(m.client, "set", m.Node(), err)
}

// Stay joins, and joins again whenever the membership is lost, until ctx ends,
// and then leaves. While its session lives, it takes its node back: nobody sees
// it missing, and its token is the same. A new token says that the node was
// gone, and that another may have had the ID. It returns ctx's error when it
// has left, joined with [coord.ErrUnconfirmed] if that is not known; any other
// error says why it could not join.
func (g *Group) Stay(ctx context.Context, id string, data []byte) error {
	for {
		m, err := g.join(ctx, id, coord.NameSpec{Data: data, Retain: true})
		if err != nil {
			return recipe.Failure(g.client, "stay", g.path+"/"+id+g.suffix, err)
		}
		select {
		case <-m.Done():
		case <-ctx.Done():
			leaving, cancel := recipe.Grace(ctx)
			defer cancel()
			return recipe.Failure(g.client, "stay", m.Node(), recipe.Joined(recipe.Ended(ctx), m.Leave(leaving)))
		}
	}
}

// Member is one who is there.
type Member struct {
	ID    string
	Data  []byte
	Since time.Time // by the servers' clock
	Token int64     // see [coord.Hold.Token]
}

// Members lists who is there, by ID, as far as the server that is asked knows.
func (g *Group) Members(ctx context.Context) (members []Member, err error) {
	err = g.client.Wait(ctx, func(v *coord.View) (bool, error) {
		members, err = g.look(v)
		return true, err
	})
	return members, recipe.Failure(g.client, "list members", g.path, err)
}

// Observe yields who is there, by ID: now, and again at each change. Only the
// last pair has an error: ctx has ended, for instance. See [recipe.Observe].
func (g *Group) Observe(ctx context.Context) iter.Seq2[[]Member, error] {
	return recipe.Observe(ctx, g.client.Synced(), g.path, g.look, func(a, b []Member) bool {
		return slices.EqualFunc(a, b, func(a, b Member) bool { return a.Token == b.Token && bytes.Equal(a.Data, b.Data) })
	})
}

func (g *Group) look(v *coord.View) (members []Member, err error) {
	names, err := v.ChildrenIfAny(g.path)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, g.suffix) })
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = g.path + "/" + name
	}
	v.Prefetch(paths...)
	for i, name := range names {
		data, stat, err := v.Get(paths[i])
		if errors.Is(err, coord.ErrNoNode) {
			continue
		} else if err != nil {
			return nil, err
		}
		members = append(members, Member{strings.TrimSuffix(name, g.suffix), inspect.OwnData(data), stat.Created, stat.Czxid})
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}
