package run

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"sync/atomic"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
)

// turn is the task of a command under a lock, or under several: all are held,
// or none.
type turn struct {
	paths conn.NodePaths
	open  func(*coord.Client, conn.NodePath) (acquirer, error)
	try   bool
	slots *int // nil: a lock without
	plain bool // one claim in the line excludes all others

	client *coord.Client
	seen   look.Sightings
	at     atomic.Pointer[conn.NodePath] // of the lock that is waited for, or was in vain
	group  *coord.Group
	held   holding
}

// one is the lock at one of the paths.
type one struct {
	*turn
	path conn.NodePath
	get  acquirer
}

func (o one) Client() *coord.Client { return o.client }
func (o one) Path() string          { return string(o.path) }

func (o one) Acquire(ctx context.Context) (*coord.Hold, error) {
	o.at.Store(&o.path)
	return o.get(ctx, false)
}

func (o one) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	o.at.Store(&o.path)
	return o.get(ctx, true)
}

// all are the locks at all the paths, as one.
func (t *turn) all() (*lock.Multi, error) {
	var locks []lock.Acquirer
	for _, path := range t.paths {
		acquire, err := t.open(t.client, path)
		if err != nil {
			return nil, err
		}
		locks = append(locks, one{t, path, acquire})
	}
	return lock.NewMulti(locks...)
}

// refuseNested refuses several locks if this process runs under one of them.
// That cannot wait for the turn of that one: the locks before it may be held by
// those who wait for what this process runs under.
func (t *turn) refuseNested(ctx context.Context) error {
	if t.try || len(t.paths) == 1 {
		return nil
	}
	for _, path := range t.paths {
		own, err := ownAt(ctx, t.client, string(path))
		if !t.plain { // shared ones inside of shared ones are granted
			own = slices.DeleteFunc(own, func(name string) bool { return look.LineOf([]string{name})[0].Kind == "read" })
		}
		switch {
		case err != nil:
			return err
		case len(own) > 0:
			return underItself(path, own[0])
		}
	}
	return nil
}

// acquire gets the locks. Those that are only tried are not waited for longer
// than a session would be.
func (t *turn) acquire(ctx context.Context, c *conn.Connection, client *coord.Client) (holding, error) {
	t.client = client
	t.at.Store(&t.paths[0])
	if err := t.refuseNested(ctx); err != nil {
		return holding{}, err
	}
	all, err := t.all()
	switch {
	case err != nil:
		return holding{}, err
	case t.try:
		trying, cancel := conn.Within(ctx, c.ConnectTimeout)
		defer cancel()
		if t.group, err = all.TryAcquire(trying); err != nil && ctx.Err() == nil && trying.Err() != nil {
			err = term.ExitWith(term.ExitUnavailable, "no answer: %w", err)
		}
	default:
		t.group, err = all.Acquire(ctx)
	}
	if err != nil {
		return holding{}, err
	}
	t.held = holding{t.group, make([]*coord.Hold, len(t.paths))}
	for i, path := range slices.Sorted(slices.Values(t.paths)) { // as the group has them
		t.held.holds[slices.Index(t.paths, path)] = t.group.Holds()[i]
	}
	return t.held, nil
}

func (t *turn) name() string { return t.paths.String() }

func (*turn) prepare(*exec.Cmd) error { return nil }

// giveBack releases the locks; it says so when it cannot know that it did.
func (t *turn) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	if err := t.group.Release(ctx); err != nil {
		return fmt.Errorf("the servers did not confirm the release; others may have to wait up to %v: %w",
			t.client.SessionTimeout(), err)
	}
	return nil
}

func (t *turn) complete(status int, _ bool, _ func() (context.Context, func())) (int, error) {
	return status, t.giveBack()
}

func (t *turn) story(held float64, _ error) map[string]any {
	story := t.held.story()
	story["held"] = held
	return story
}
