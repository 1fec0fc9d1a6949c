package run

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"sync/atomic"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// lockTask is the task of a command under a lock, or under several: all are
// held, or none.
type lockTask struct {
	paths conn.NodePaths
	open  func(*lockTask) (acquirer[holding], error)
	try   bool
	slots *int // nil: a lock without
	// The line's, if that is described, or "".
	dialect coord.Dialect
	plain   bool // one claim in the line excludes all others
	oneNode bool // there is no line: the node at a path is the lock

	health *hold.Health // nil: the command is always well
	unwell func() error // why it is not, or nil; once it is to run

	client *coord.Client
	seen   look.Sightings
	at     atomic.Pointer[conn.NodePath] // of the lock that it waits for, or did not get
	held   holding
}

// one is the lock at one of the paths.
type one struct {
	*lockTask
	path conn.NodePath
	get  acquirer[*coord.Hold]
}

func (o one) Client() *coord.Client { return o.client }

func (o one) Path() string { return string(o.path) }

func (o one) Acquire(ctx context.Context) (*coord.Hold, error) {
	o.at.Store(&o.path)
	return o.get(ctx, false)
}

func (o one) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	o.at.Store(&o.path)
	return o.get(ctx, true)
}

// refuseNested refuses several locks if this process runs under one of them.
// It does so before it waits for any: the locks that come first may be held by
// processes that wait for what this one runs under.
func (t *lockTask) refuseNested(ctx context.Context) error {
	if t.try || len(t.paths) == 1 {
		return nil
	}
	ownAt := ownAt
	if t.oneNode {
		ownAt = ownNode
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

// acquire gets the locks. A try waits for the servers' answer no longer than
// connecting may take.
func (t *lockTask) acquire(ctx context.Context, c *conn.Connection, client *coord.Client) (holding, error) {
	t.client = client
	t.at.Store(&t.paths[0])
	if err := t.refuseNested(ctx); err != nil {
		return holding{}, err
	}
	acquire, err := t.open(t)
	switch {
	case err != nil:
		return holding{}, err
	case t.try:
		err = try(ctx, c, func(ctx context.Context) (err error) { t.held, err = acquire(ctx, true); return err })
	default:
		return t.await(ctx, acquire)
	}
	if err != nil {
		return holding{}, err
	}
	return t.hold(context.WithoutCancel(ctx), nil), nil
}

// try bounds the wait for the servers' answer by the time allowed to connect.
func try(ctx context.Context, c *conn.Connection, acquire func(ctx context.Context) error) error {
	trying, cancel := conn.Within(ctx, c.ConnectTimeout)
	defer cancel()
	err := acquire(trying)
	if err != nil && ctx.Err() == nil && trying.Err() != nil {
		err = term.ExitWith(term.ExitUnavailable, "no answer: %w", err)
	}
	return err
}

// await waits for the locks. It waits in line only while the checks succeed.
func (t *lockTask) await(ctx context.Context, acquire acquirer[holding]) (holding, error) {
	for {
		if err := t.health.Await(ctx); err != nil {
			return holding{}, err
		}
		well, stop := t.health.While(context.WithoutCancel(ctx))
		waiting, cancel := context.WithCancel(ctx)
		context.AfterFunc(well, cancel)
		var err error
		t.held, err = acquire(waiting, false)
		cancel()
		if err == nil {
			return t.hold(well, stop), nil
		}
		unwell := well.Err() != nil && ctx.Err() == nil
		stop()
		if !unwell {
			return holding{}, err
		}
	}
}

// hold has the command run under the locks.
func (t *lockTask) hold(well context.Context, stop func()) holding {
	t.unwell = func() error { return context.Cause(well) }
	t.held.well, t.held.stop = well, stop
	return t.held
}

func (t *lockTask) name() string { return t.paths.String() }

func (*lockTask) prepare(*exec.Cmd) error { return nil }

// giveBack releases the locks; it says so when it cannot know that it did.
func (t *lockTask) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	if err := t.held.release(ctx); err != nil {
		return fmt.Errorf("the servers did not confirm the release; others may have to wait up to %v: %w",
			t.client.Info().SessionTimeout, err)
	}
	return nil
}

func (t *lockTask) complete(status int, _ bool, _ func() (context.Context, func())) (int, error) {
	why, err := t.unwell(), t.giveBack()
	if why == nil {
		return status, err
	}
	return term.ExitLost, errors.Join(fmt.Errorf("ended the command: %w", why), err)
}

func (t *lockTask) summary(held float64, _ error) map[string]any {
	summary := t.held.summary()
	summary["held"] = held
	return summary
}

// look says who holds the lock (of several, the one that it waits for), and the
// place in its line.
func (t *lockTask) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	at := *t.at.Load()
	dir, holders, line, err := t.parties(ctx, client, at)
	if err != nil {
		return look.Situation{}, err
	}
	over := t.seen.Look()
	defer over()
	for _, c := range line {
		t.seen.See(path.Join(dir, c.Name), 0, false, nil)
	}
	all := len(holders)
	holders = slices.DeleteFunc(holders, func(c coord.Contender) bool { return own[c.Name] })
	first, err := (&look.Report{}).Read(ctx, client, dir, holders)
	for i, c := range first {
		first[i].Held = t.seen.See(c.Node, c.Token, true, c.Age)
	}
	s := look.Situation{
		Text: look.HeldBy(first, len(holders)), Key: look.KeyOf(first), Over: len(holders) < all,
		Fields: map[string]any{"holders": first, "holding": len(holders)},
	}
	if len(t.paths) > 1 {
		s.Text, s.Key, s.Fields["at"] = fmt.Sprintf("%s is %s", at, s.Text), string(at)+s.Key, at
	}
	s.StandIn(line, all, own)
	return s, err
}

// parties lists who holds, in which directory, and who waits.
func (t *lockTask) parties(
	ctx context.Context, client *coord.Client, path conn.NodePath,
) (dir string, holders, line []coord.Contender, err error) {
	switch {
	case t.slots != nil:
		return t.slotParties(ctx, client, path)
	case t.oneNode:
		return nodeParties(ctx, client, string(path))
	}
	found, err := look.Children(ctx, client, string(path))
	if d := t.dialect; d != "" && err == nil {
		all := coord.Line{Dialect: d}.Order(found, d)
		return string(path), all[:min(len(all), 1)], all[min(len(all), 1):], nil
	}
	all := look.LineOf(found)
	var before []coord.Contender // that it cannot honour
	for i, granted := range inspect.Granted(all) {
		switch c := all[i]; {
		case c.Dialect != client.Info().Dialect && len(holders)+len(line) == 0:
			before = append(before, c)
		case c.Dialect != client.Info().Dialect:
		case granted:
			holders = append(holders, c)
		default:
			line = append(line, c)
		}
	}
	if len(holders) == 0 {
		holders = before
	}
	return string(path), holders, line, err
}

func nodeParties(
	ctx context.Context, client *coord.Client, node string,
) (dir string, holders, line []coord.Contender, err error) {
	_, there, err := client.Exists(ctx, node)
	if there {
		holders = []coord.Contender{{Name: path.Base(node), Kind: look.NodeKind, Dialect: client.Info().Dialect}}
	}
	return path.Dir(node), holders, nil, err
}

func (t *lockTask) slotParties(
	ctx context.Context, client *coord.Client, path conn.NodePath,
) (dir string, holders, line []coord.Contender, err error) {
	at := layout.SemaphoreAt(client.Info().Dialect, string(path))
	found, err := look.Children(ctx, client, at.Leases.Dir)
	if err != nil {
		return at.Leases.Dir, nil, nil, err
	}
	holders = at.Order(found)
	found, err = look.Children(ctx, client, at.Queue.Dir)
	return at.Leases.Dir, holders[:min(*t.slots, len(holders))], look.LineOf(found), err
}
