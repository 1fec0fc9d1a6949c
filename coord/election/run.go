package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

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
// been resigned, as far as [coord.Grace] gives time for that. It returns the
// errors of [Election.Campaign], too.
func (e *Election) Run(ctx context.Context, data []byte, lead func(ctx context.Context, t *Term) error) error {
	campaigning := ctx
	for pause := shortestPause; ; campaigning = coord.Patient(ctx) {
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
		resigning, cancel := coord.Grace(ctx)
		defer cancel()
		_ = t.Resign(resigning) // a deletion that is not confirmed goes on in the background
		if lost {
			err = nil
		}
	}()
	return lead(t.Context(ctx), t)
}
