// Package gocron has gocron's jobs run by one of many replicas: by the leader
// of an election ([Elector]), or slot by slot, by whichever replica comes first
// ([Locker]).
//
//	locker, err := zkgocron.NewLocker(ledger, time.Minute)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// With a Locker, another replica runs the slot when the one that runs it dies.
// With an Elector, all jobs run in one process, as jobs that are to follow each
// other must.
//
// # What gocron's interfaces cannot give
//
//   - A [Locker] gets a job's name, and not the instant. The slot is what the
//     replica's clock shows, rounded to what the user says, so a run that
//     begins late by half of that counts for another slot.
//   - A job is not told of the end of its hold or of the term. One that must
//     not go on then asks [Elector.Term], or is run by package coord/cron,
//     whose function gets a context and a token.
//   - A Locker is not told whether the job failed: it counts as done.
//   - While a replica waits for another's run, gocron (2.21.2, runJob) has no
//     timer there for the job: slots that are due meanwhile are lost if the
//     other replica ends before it has begun them. Package coord/cron runs
//     them.
//   - With an Elector, a slot is run by nobody if it falls between two terms,
//     and by two replicas if the next leader's clock is behind the last one's.
package gocron

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

var (
	// ErrNotLeader: another replica runs the jobs, or none does yet.
	ErrNotLeader = errors.New("this replica does not lead")
	// ErrDone: a replica has run the job in this slot.
	ErrDone = errors.New("the slot is done")
)

// Elector runs jobs on the leader. It is a [gocron.Elector].
type Elector struct {
	election *election.Election
	term     atomic.Pointer[election.Term]
}

// NewElector returns an elector that leads while [Elector.Run] runs and has
// won the election.
func NewElector(e *election.Election) *Elector { return &Elector{election: e} }

// Run stands for election, again after each lost term, until ctx ends, and
// returns why: see [election.Election.Run]. End ctx after the scheduler was
// shut down: the next leader may begin then.
func (e *Elector) Run(ctx context.Context, data []byte) error {
	return e.election.Run(ctx, data, func(ctx context.Context, t *election.Term) error {
		e.term.Store(t)
		<-ctx.Done()
		return nil
	})
}

// Term returns the term in which this replica leads, with its context and its
// token, or nil.
func (e *Elector) Term() *election.Term {
	if t := e.term.Load(); t != nil && t.Err() == nil {
		return t
	}
	return nil
}

// IsLeader fails with [ErrNotLeader] unless this replica leads. It makes no
// request.
func (e *Elector) IsLeader(context.Context) error {
	if e.Term() == nil {
		return ErrNotLeader
	}
	return nil
}

// Locker runs each slot of a job once. It is a [gocron.Locker].
type Locker struct {
	ledger *once.Once
	every  time.Duration

	// Now is the scheduler's clock, if that was made with gocron.WithClock. It
	// is set before the scheduler starts.
	Now func() time.Time
}

// NewLocker returns a locker whose slots are the instants that are a multiple
// of every, at least 1 s. All instants of the jobs must be such multiples, and
// every no more than the time between two runs of a job: a minute for most
// crontabs. For jobs that begin at any time (DurationJob without a start),
// every is their interval, and the slots are run once all the same.
//
// The ledger has a record for each slot of each job: make it with [once.Keep],
// for longer than clocks differ and jobs last.
func NewLocker(ledger *once.Once, every time.Duration) (*Locker, error) {
	if ledger == nil || every < time.Second {
		return nil, fmt.Errorf("%w: a locker needs a ledger, and slots of at least 1 s, not %v", coord.ErrInvalid, every)
	}
	return &Locker{ledger, every, time.Now}, nil
}

// Lock begins the slot of the job called key. If another replica runs it, Lock
// waits until that has ended, and begins it itself if that replica died.
// Otherwise it fails with [ErrDone], or as [once.Once.Begin] does; gocron's
// AfterLockError shows the error. Name and instant together are the job's key
// in the ledger, of at most 200 bytes.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	slot := l.Now().Round(l.every).UTC().Format(time.RFC3339)
	run, found, err := l.ledger.Begin(ctx, key+"@"+slot)
	switch {
	case err != nil:
		return nil, err
	case run == nil:
		return nil, fmt.Errorf("%w: %s, by %s", ErrDone, found.Key, found.By)
	}
	return running{run}, nil
}

type running struct{ run *once.Run }

// Unlock puts the end of the slot on record.
func (r running) Unlock(ctx context.Context) error {
	ctx, cancel := recipe.Grace(ctx)
	defer cancel()
	_, err := r.run.End(ctx, nil, nil)
	return err
}
