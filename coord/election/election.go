package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Election is an election at a path. It is configuration, not state: the leader
// has the [Term] that [Election.Campaign] returns. It is safe for concurrent
// use; two candidates of one process compete as candidates of two processes do.
type Election struct {
	client *coord.Client
	line   coord.Line
}

// New returns the election at path, a directory that is made when it is needed.
// It does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Election, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	return &Election{client, coord.Line{Dir: path, Kinds: []string{"latch"}}}, nil
}

// Campaign stands for election until it is won or ctx ends. ctx bounds the
// campaign, not the term. data are for others to see, such as the candidate's
// address; nil stands for the client's identity. A candidate whose node is
// deleted, or whose session ends, stands again, at the end of the line. When
// Campaign returns an error, nothing is left behind: a node that could not be
// deleted yet is deleted in the background.
func (e *Election) Campaign(ctx context.Context, data []byte) (*Term, error) {
	return e.stand(ctx, "campaign", data, e.client.Acquire)
}

// TryCampaign is Campaign without waiting: it fails with [coord.ErrBusy] when a
// candidate stands for election already, which costs one read and no write.
// While no server can be reached, it waits for one until ctx ends.
func (e *Election) TryCampaign(ctx context.Context, data []byte) (*Term, error) {
	return e.stand(ctx, "try to campaign", data, e.client.TryAcquire)
}

func (e *Election) stand(ctx context.Context, op string, data []byte, acquire func(context.Context, coord.Spec, coord.Rule) (*coord.Hold, error)) (*Term, error) {
	if err := e.checkData(op, data); err != nil {
		return nil, err
	}
	if data == nil {
		data = []byte(e.client.Identity())
	}
	for {
		h, err := acquire(ctx, coord.Spec{Line: e.line, Kind: "latch", Data: data, Exclusive: true}, coord.First)
		if err != nil {
			return nil, err
		}
		if err = e.post(ctx, h, data); err == nil {
			return newTerm(e, h), nil
		}
		h.Abandon()
		if ctx.Err() != nil {
			err = recipe.Ended(ctx)
		}
		if ctx.Err() != nil || !errors.Is(err, coord.ErrLost) {
			return nil, e.client.Failure(op, e.line.Dir, err)
		}
	}
}

// post makes the leader's notice, where it has one: see [inspect.Notice].
func (e *Election) post(ctx context.Context, h *coord.Hold, data []byte) error {
	notice := inspect.Notice(h.Node())
	if notice == h.Node() {
		return nil
	}
	err := h.Attach(ctx, notice, data)
	if lost := h.Err(); lost != nil {
		return lost
	}
	if errors.Is(err, coord.ErrNoAuth) {
		return nil // its own node may not be read: it leads, and has nothing to publish
	}
	return err
}

// Candidates lists the leader and then the candidates in the order in which
// they will be elected: one listing and one read for each. It is for people to
// look at, and as old as the server it asks; see [Election.Leader].
func (e *Election) Candidates(ctx context.Context) ([]inspect.Contender, error) {
	return inspect.Contenders(ctx, e.client, e.line.Dir, e.line.Kinds...)
}

func (e *Election) checkData(op string, data []byte) error {
	if !inspect.IsRevocation(data) {
		return nil
	}
	return e.client.Failure(op, e.line.Dir,
		fmt.Errorf("%w: the data %q mean a request to step down", coord.ErrInvalid, data))
}

// shortestPause is how long Run waits after the first short term.
const shortestPause = 10 * time.Millisecond

// Run campaigns, runs lead while it leads, and begins anew, until ctx ends or
// lead fails. lead's context ends when the term does; lead must return then.
// Run waits for that, however long it takes, before it resigns or campaigns
// again, so a process is never in two of its own terms.
//
// If the term was lost before lead returned, its error is ignored, and Run
// campaigns again; so it does when lead returned nil, which means to resign.
// Otherwise lead's error ends Run, which returns it. After a short term Run
// pauses, longer each time, up to half the session time-out, so a candidate
// that cannot lead lets the others lead.
//
// When ctx ends, Run returns its error after lead has returned and the term has
// been resigned, as far as [recipe.Grace] gives time for that. It returns the
// errors of [Election.Campaign], too.
func (e *Election) Run(ctx context.Context, data []byte, lead func(ctx context.Context, t *Term) error) error {
	campaigning := ctx
	for pause := shortestPause; ; campaigning = recipe.Patient(ctx) {
		term, err := e.Campaign(campaigning, data)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := serve(ctx, term, lead); err != nil {
			return err
		}
		limit := e.client.SessionTimeout() / 2
		if time.Since(begun) > limit {
			pause = shortestPause
		}
		next := time.Now().Add(pause/2 + rand.N(pause/2))
		err = e.client.Wait(ctx, func(v *coord.View) (bool, error) {
			v.At(next)
			return !time.Now().Before(next), nil
		})
		if err != nil {
			return e.client.Failure("run", e.line.Dir, err)
		}
		pause = min(2*pause, limit)
	}
}

// serve runs lead for one term. It returns nil if Run is to go on.
func serve(ctx context.Context, t *Term, lead func(context.Context, *Term) error) (err error) {
	defer func() { // also when lead panics
		lost := errors.Is(t.Err(), coord.ErrLost)
		resigning, cancel := recipe.Grace(ctx)
		defer cancel()
		_ = t.Resign(resigning) // a deletion that is not confirmed goes on in the background
		if lost {
			err = nil
		}
	}()
	return lead(t.Context(ctx), t)
}
