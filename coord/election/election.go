package election

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Election is an election at a path. It is configuration, not state: the leader
// has the [Term] that [Election.Campaign] returns. It is safe for concurrent
// use; two candidates of one process compete as candidates of two processes do.
type Election struct {
	client *coord.Client
	line   coord.Line
	health *hold.Health         // nil without [Health]
	newest atomic.Pointer[Term] // for [Election.Leading]
	rank   *int                 // nil without [Priority]
	bound  hold.Bound
}

// Option sets something about the candidates that an [Election] makes.
type Option func(*Election) error

// Health has [Election.Run] call check every so often, while it waits for
// its election and while it leads. When the check has failed that many times in
// a row, the candidate leaves the line, or the term's context ends, with a
// cause that matches [hold.ErrUnwell], and the term is resigned as soon as
// the function has returned. Run stands again, at the end of the line, when the
// check succeeds; it does not stand before a check has succeeded either.
//
// check's context ends after the interval: a check that has not returned by
// then has failed, and is not called again before it returns. A leader that
// hangs is relieved at the latest (failures+1) intervals later, if its function
// returns when its context ends.
func Health(every time.Duration, failures int, check func(ctx context.Context) error) Option {
	return func(e *Election) (err error) {
		e.health, err = hold.NewHealth(every, failures, check)
		return err
	}
}

// MaxHold bounds how long a term lasts: after d the leader is asked to step
// down, and after grace more it has lost the term. See [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option {
	return func(e *Election) error { return e.bound.MaxHold(d, grace) }
}

// StopGrace bounds how long the function of [Election.Run] may lead on after
// its context has ended: see [hold.Bound.StopGrace]. The next candidate leads
// then; Run waits for the function all the same.
func StopGrace(d time.Duration) Option {
	return func(e *Election) error { return e.bound.StopGrace(d) }
}

// Dialect has the candidates stand in the line of another recipe's election:
// see [coord/lock.Dialect]. The data are as Campaign is given them. Such a line
// takes no [Priority], which writes into the data.
func Dialect(d coord.Dialect) Option {
	return func(e *Election) error {
		e.line.Dialect = d
		return coord.CheckDialect(d)
	}
}

// New returns the election at path, a directory that is made when it is needed.
// It does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Election, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	e := &Election{client: client, line: coord.Line{Dir: path, Kinds: []string{"latch"}}}
	if err := recipe.Configure(e, path, opts); err != nil {
		return nil, err
	}
	if e.rank != nil && e.line.Dialect != "" {
		return nil, &coord.OpError{
			Op: "new", Path: path,
			Err: fmt.Errorf(
				"%w: a priority is a line in the candidate's data, which the others in a line of the dialect %q may read",
				coord.ErrInvalid, e.line.Dialect),
		}
	}
	return e, nil
}

// Path returns the election's path.
func (e *Election) Path() string { return e.line.Dir }

// Healthy calls the check of [Health] once, and returns what it returns: an
// error while this candidate does not stand. Without a check it returns nil.
func (e *Election) Healthy(ctx context.Context) error { return e.health.Check(ctx) }

// Ready returns nil if this process leads or can be elected: it is healthy, and
// its client is connected to a server.
func (e *Election) Ready(ctx context.Context) error {
	if err := e.Healthy(ctx); err != nil {
		return err
	}
	if !e.client.Info().Connected {
		return errors.New("not connected to a server")
	}
	return nil
}

// Campaign stands for election until it is won or ctx ends. ctx bounds the
// campaign, not the term. data are for others to see, such as the candidate's
// address; nil stands for the client's identity. A candidate whose node is
// deleted, or whose session ends, stands again, at the end of the line. When
// Campaign returns an error, nothing is left behind: a node that could not be
// deleted yet is deleted in the background.
func (e *Election) Campaign(ctx context.Context, data []byte) (*Term, error) {
	return e.stand(ctx, "campaign", data, recipe.Acquire, false)
}

// TryCampaign is Campaign without waiting: it fails with [coord.ErrBusy] when a
// candidate stands for election already, which costs one read and no write.
// While no server can be reached, it waits for one until ctx ends.
func (e *Election) TryCampaign(ctx context.Context, data []byte) (*Term, error) {
	return e.stand(ctx, "try to campaign", data, recipe.TryAcquire, true)
}

func (e *Election) stand(
	ctx context.Context, op string, data []byte,
	acquire func(context.Context, *coord.Client, *coord.Spec, coord.Rule) (*coord.Hold, error), try bool,
) (*Term, error) {
	if err := e.checkData(op, data); err != nil {
		return nil, err
	}
	if data = bytes.Clone(data); data == nil {
		data = []byte(e.client.Info().Identity)
	}
	for {
		h, err := acquire(ctx, e.client,
			&coord.Spec{Line: e.line, Kind: "latch", Data: e.ranked(data), Exclusive: true}, coord.First)
		if err != nil {
			return nil, recipe.Failure(e.client, op, e.line.Dir, err)
		}
		err = e.mayLead(ctx, h)
		if err == nil {
			err = e.post(ctx, h, data)
		}
		if lost := h.Err(); lost != nil {
			err = lost
		}
		if err == nil {
			e.bound.Granted(ctx, e.client, h)
			t := newTerm(e, h, data)
			e.newest.Store(t)
			return t, nil
		}
		h.Abandon()
		switch aside := errors.Is(err, errAside); {
		case ctx.Err() != nil:
			return nil, recipe.Failure(e.client, op, e.line.Dir, recipe.Ended(ctx))
		case aside && try:
			return nil, recipe.Failure(e.client, op, e.line.Dir, coord.ErrBusy)
		case !aside && !errors.Is(err, coord.ErrLost):
			return nil, recipe.Failure(e.client, op, e.line.Dir, err)
		}
		ctx = recipe.Patient(ctx)
	}
}

// post makes the leader's notice, where it has one: see [inspect.Notice].
func (e *Election) post(ctx context.Context, h *coord.Hold, data []byte) error {
	notice := inspect.Notice(h.Node())
	if notice == h.Node() {
		return nil
	}
	err := recipe.Attach(ctx, h, notice, data)
	if errors.Is(err, coord.ErrNoAuth) {
		return nil // its own node may not be read: it leads, and has nothing to publish
	}
	return err
}

// Contenders lists the leader and then the candidates in the order in which
// they will be elected: one listing and one read for each. It is for people to
// look at, and as old as the server it asks; see [Election.Leader].
func (e *Election) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	return inspect.InLine(ctx, e.client, e.line)
}

func (e *Election) checkData(op string, data []byte) error {
	return recipe.Failure(e.client, op, e.line.Dir, inspect.CheckData(data))
}

// shortestPause is how long Run waits after the first short term.
const shortestPause = 10 * time.Millisecond

// Run campaigns, runs lead while it leads, and begins anew, until ctx ends or
// lead fails. lead's context ends when the term does; lead must return then.
// Run waits for that, however long it takes, before it resigns or campaigns
// again, so a process is never in two of its own terms. [StopGrace] bounds how
// long the others wait for it.
//
// If the term was lost before lead returned, its error is ignored, and Run
// campaigns again; so it does when lead returned nil, which means to resign.
// Otherwise lead's error ends Run, which returns it, unless [Health] ended
// the term. After a short term Run pauses, longer each time, up to half the
// session timeout, so a candidate that cannot lead lets the others lead.
//
// When ctx ends, Run returns its error after lead has returned and the term has
// been resigned, as far as [recipe.Grace] gives time for that. It returns the
// errors of [Election.Campaign], too.
func (e *Election) Run(ctx context.Context, data []byte, lead func(ctx context.Context, t *Term) error) error {
	if lead == nil {
		return recipe.Failure(e.client, "run", e.line.Dir, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	campaigning := ctx
	for pause := shortestPause; ; campaigning = recipe.Patient(ctx) {
		begun, err := e.once(ctx, campaigning, data, lead)
		if err != nil {
			return err
		}
		limit := e.client.Info().SessionTimeout / 2
		if time.Since(begun) > limit {
			pause = shortestPause
		}
		next := time.Now().Add(pause/2 + rand.N(pause/2))
		err = e.client.Wait(ctx, func(v *coord.View) (bool, error) {
			v.RecheckAt(next)
			return !time.Now().Before(next), nil
		})
		if err != nil {
			return recipe.Failure(e.client, "run", e.line.Dir, err)
		}
		pause = min(2*pause, limit)
	}
}

// once campaigns once, by campaigning, and runs lead for one term, while the
// candidate is well. It returns nil if Run is to go on, and when the term, or a
// campaign that was given up, began.
func (e *Election) once(
	ctx, campaigning context.Context, data []byte, lead func(context.Context, *Term) error,
) (begun time.Time, err error) {
	if err := e.health.Await(ctx); err != nil {
		return begun, recipe.Failure(e.client, "run", e.line.Dir, err)
	}
	well, stop := e.health.While(campaigning)
	defer stop()
	begun = time.Now()
	term, err := e.Campaign(well, data)
	if err == nil {
		begun = time.Now()
		err = serve(ctx, well, term, lead)
	}
	if ctx.Err() == nil && errors.Is(context.Cause(well), hold.ErrUnwell) {
		err = nil
		recipe.Report(e.client, slog.LevelWarn, event.Event{
			Kind: event.Failed, Path: e.line.Dir,
			Err: fmt.Errorf("the candidate resigns, or leaves the line: %w", context.Cause(well)),
		})
	}
	return begun, err
}

// serve runs lead for one term, which also ends with well. It returns nil if
// Run is to go on.
func serve(ctx, well context.Context, t *Term, lead func(context.Context, *Term) error) (err error) {
	defer func() { // also when lead panics
		lost := errors.Is(t.Err(), coord.ErrLost)
		resigning, cancel := recipe.Grace(ctx)
		defer cancel()
		_ = t.Resign(resigning) // a deletion that is not confirmed goes on in the background
		if lost {
			err = nil
		}
	}()
	inside, returned := t.election.bound.Context(well, t.hold)
	defer returned()
	return lead(inside, t)
}
