package cron

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrOver: the schedule has no further slot, and none is under way.
var ErrOver = errors.New("the schedule is over")

const (
	kept         = 100         // runs on record, by default
	maxSlots     = 1000        // slots that are under way, or are made up for
	recheckEvery = time.Minute // between two looks at the clock
	retryFloor   = time.Second // at least, until a slot that nobody has is tried again
)

// Cron is a schedule at a path, each slot of which one of many clients runs. It
// is safe for concurrent use.
type Cron struct {
	client   *coord.Client
	path     string
	schedule Schedule
	ledger   *once.Once
	jobs     []once.Option
	keeps    bool // Keep or KeepLast was given
	attempts int  // 0: as many as it takes
	backoff  time.Duration
	catchUp  int
	late     time.Duration // 0: however late
	beside   int
	skip     bool
	job      string // its description, or ""
	jitter   time.Duration
	clock    func() time.Time
	report   func(once.Result, error)

	mu    sync.Mutex
	own   map[string]*Slot     // by key, those under way here
	again map[string]time.Time // by key, when to look at a slot that another may begin
	told  told
}

// Option sets something about a [Cron].
type Option func(*Cron) error

// Attempts gives a slot up after its function was called n times, by all
// clients together; until then, a slot whose function fails is run again: see
// [once.Attempts]. Without Attempts such a slot is over, and one whose process
// crashed is run again until its function returns.
//
// Attempts(1, 0) is at most once: a slot that has begun is never begun again.
func Attempts(n int, backoff time.Duration) Option {
	return func(c *Cron) error {
		c.attempts, c.backoff = n, backoff
		c.jobs = append(c.jobs, once.Attempts(n, backoff))
		return nil
	}
}

// Keep deletes the records of slots that ended longer than d ago, instead of
// all but the newest 100: see [once.Keep].
func Keep(d time.Duration) Option { return ofLedger(once.Keep(d)) }

// KeepLast deletes all records but those of the newest n runs, instead of the
// newest 100: see [once.KeepLast].
func KeepLast(n int) Option { return ofLedger(once.KeepLast(n)) }

func ofLedger(opt once.Option) Option {
	return func(c *Cron) error {
		c.keeps = true
		c.jobs = append(c.jobs, opt)
		return nil
	}
}

// MaxHold bounds how long a slot is run: after d it is asked to end, and after
// grace more it has lost its hold, and another client may run it again, or the
// next slot if no [Attempts] are left. See [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option { return ofRuns(once.MaxHold(d, grace)) }

// StopGrace bounds how long the function of [Cron.Run] may go on with its slot
// after its context has ended. See [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option { return ofRuns(once.StopGrace(d)) }

func ofRuns(opt once.Option) Option {
	return func(c *Cron) error {
		c.jobs = append(c.jobs, opt)
		return nil
	}
}

// CatchUp says which slots are run late. A slot is late if no client or no
// server was there when it was due, or if earlier slots took too long. The
// newest n late slots are run, the oldest of them first, but none that is late
// by more than d (0: however late); the others are left out. n is 1 to 1000.
//
// The default is CatchUp(1, 0): the last one. CatchUp(1, time.Minute) makes up
// for nothing that was missed. Choose d larger than the clocks' differences, or
// a client leaves out what others would run; a clock that is ahead counts for a
// minute at most.
func CatchUp(n int, d time.Duration) Option {
	return func(c *Cron) error {
		if n < 1 || n > maxSlots || d < 0 {
			return fmt.Errorf(
				"%w: the newest %d missed slots, late by %v at most: it must be 1 to %d slots, and not before their time",
				coord.ErrInvalid, n, d, maxSlots)
		}
		c.catchUp, c.late = n, d
		return nil
	}
}

// MaxConcurrent lets n slots be under way at a time, by all clients together, 1
// to
// 1000. The default is 1: a slot that is due waits until the one before has
// ended, and is missed by then if another one is due as well (see [CatchUp]).
func MaxConcurrent(n int) Option {
	return func(c *Cron) error {
		if n < 1 || n > maxSlots {
			return fmt.Errorf("%w: %d slots at a time: it must be 1 to %d", coord.ErrInvalid, n, maxSlots)
		}
		c.beside = n
		return nil
	}
}

// Skip leaves out the slots that are due while one is under way, by the clock
// of the client that notes its end: the one that ran it, or that finds it over.
func Skip() Option {
	return func(c *Cron) error {
		c.skip = true
		return nil
	}
}

// Jitter has each slot begin later than its instant, by up to d: always the
// same time for the same slot and path, so that schedules at many paths do not
// begin all at once.
func Jitter(d time.Duration) Option {
	return func(c *Cron) error {
		if d < 0 {
			return fmt.Errorf("%w: a jitter of %v: it must not be negative", coord.ErrInvalid, d)
		}
		c.jitter = d
		return nil
	}
}

// Clock sets the clock by which slots are due; by default, time.Now. It is
// looked at once a minute at least, so it may be set while the client waits. A
// slot is due no more than a minute before the ensemble's clock says so.
func Clock(now func() time.Time) Option {
	return func(c *Cron) error {
		if now == nil {
			return fmt.Errorf("%w: the clock is nil", coord.ErrInvalid)
		}
		c.clock = now
		return nil
	}
}

// OnEnd calls f when a function that [Cron.Run] called has ended, with what is
// on record, and with the function's error or why the end is not on record.
func OnEnd(f func(once.Result, error)) Option {
	return func(c *Cron) error {
		if f == nil {
			return fmt.Errorf("%w: the report is nil", coord.ErrInvalid)
		}
		c.report = f
		return nil
	}
}

// New returns the schedule at path, a directory that is made when it is needed.
// It does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, schedule Schedule, opts ...Option) (*Cron, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	c := &Cron{
		client: client, path: path, schedule: schedule, catchUp: 1, beside: 1, clock: time.Now,
		report: func(once.Result, error) {},
		own:    map[string]*Slot{}, again: map[string]time.Time{},
	}
	if err := recipe.Configure(c, path, slices.Concat(opts, []Option{valid})); err != nil {
		return nil, err
	}
	var err error
	c.ledger, err = once.New(client, path, c.jobs...)
	return c, err
}

// valid is the last option.
func valid(c *Cron) error {
	switch {
	case incomplete(c.schedule):
		return fmt.Errorf("%w: the schedule or its location is nil", coord.ErrInvalid)
	case c.skip && c.beside > 1:
		return fmt.Errorf("%w: %d slots at a time, and none while one is under way: choose one", coord.ErrInvalid, c.beside)
	}
	if !c.keeps {
		c.jobs = append(c.jobs, once.KeepLast(kept))
	}
	if c.attempts == 0 {
		c.jobs = append(c.jobs, once.FailOnce())
	}
	return nil
}

// Ledger returns the record of the slots, whose keys are their instants in UTC
// ([Key]): to list them, and to delete records.
func (c *Cron) Ledger() *once.Once { return c.ledger }

// Key returns the key of a slot in the ledger: the instant in UTC, as in
// 2026-11-23T16:05:00Z.
func Key(slot time.Time) string { return slot.UTC().Format(time.RFC3339Nano) }

// begins returns when a slot is due.
func (c *Cron) begins(slot time.Time) time.Time {
	if c.jitter == 0 {
		return slot
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.path + " " + Key(slot))) // never fails
	return slot.Add(time.Duration(hash.Sum64() % uint64(c.jitter)))
}

func (c *Cron) failed(op string, err error) error { return recipe.Failure(c.client, op, c.path, err) }
