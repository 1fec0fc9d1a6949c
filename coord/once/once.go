package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

var (
	// ErrFailed: the function failed as often as [Attempts] or [FailOnce]
	// allows, and does not run again. The message has the last failure.
	ErrFailed = errors.New("all attempts have failed")
	// ErrUnfinished: the last attempt that [Attempts] allows began, and its end
	// is not on record: its process crashed, or lost its hold. Nobody but the
	// job itself can tell how far it came.
	ErrUnfinished = errors.New("begun, and not ended")
)

// Once is a ledger of jobs at a path, each of which is done once. It is
// configuration, not state, and safe for concurrent use.
type Once struct {
	client   *coord.Client
	path     string
	guard    *recipe.Transactor
	attempts int // 0: as many as it takes
	backoff  time.Duration
	keep     time.Duration // 0: for ever
	last     int           // 0: all
	failOnce bool
	bound    hold.Bound
}

// Option sets something about a [Once].
type Option func(*Once) error

// Attempts gives a job up after its function was begun n times, by all clients
// together, whether the function failed or its process crashed. After a
// failure, the next attempt waits for backoff, by the ensemble's clock
// ([recipe.EnsembleTime]); each further failure doubles that time, ten
// times at most. [Once.Do] itself makes the next attempt, unless another client
// is faster.
//
// Attempts(1, 0) is at most once: a job that has begun is never begun again.
func Attempts(n int, backoff time.Duration) Option {
	return func(o *Once) error {
		if n < 1 || backoff < 0 || backoff > 24*time.Hour {
			return fmt.Errorf("%w: %d attempts, %v apart: there must be at least one, 0 to 24 h apart",
				coord.ErrInvalid, n, backoff)
		}
		o.attempts, o.backoff = n, backoff
		return nil
	}
}

// FailOnce ends a job, for all who ask ([ErrFailed]), when its function has
// failed. A job whose process crashed is run again.
func FailOnce() Option {
	return func(o *Once) error {
		o.failOnce = true
		return nil
	}
}

// Keep deletes records older than d, by the ensemble's clock
// ([recipe.EnsembleTime]). A job whose record is deleted counts as never
// done. Each run deletes up to 16 records before it begins.
func Keep(d time.Duration) Option {
	return func(o *Once) error {
		if d <= 0 {
			return fmt.Errorf("%w: keep %v: it must be more than 0", coord.ErrInvalid, d)
		}
		o.keep = d
		return nil
	}
}

// KeepLast deletes all records but those of the newest n runs, in the order in
// which they began; see [Keep]. Each attempt is a run, also one that was taken
// back.
func KeepLast(n int) Option {
	return func(o *Once) error {
		if n < 1 {
			return fmt.Errorf("%w: keep the last %d: it must be at least 1", coord.ErrInvalid, n)
		}
		o.last = n
		return nil
	}
}

// MaxHold bounds how long a run lasts: after d it is asked to end, and after
// grace more it has lost its hold, and another client may run the job again.
// See [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option {
	return func(o *Once) error { return o.bound.MaxHold(d, grace) }
}

// StopGrace bounds how long the function of [Once.Do] may go on with its job
// after its context has ended. See [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option {
	return func(o *Once) error { return o.bound.StopGrace(d) }
}

// New returns the ledger at path, a directory that is made when it is needed.
// It does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Once, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	guard, err := recipe.NewTransactor(client, path+"/guards")
	if err != nil {
		return nil, err
	}
	o := &Once{client: client, path: path, guard: guard}
	if err := recipe.Configure(o, path, opts); err != nil {
		return nil, err
	}
	return o, nil
}

// Func does a job. Its context ends when the hold does, and with the caller's.
// The data that it returns are the job's result for all who ask later.
type Func = func(ctx context.Context, run *Run) ([]byte, error)

// Do runs f if the job was not done yet, and returns the result, of this run or
// of an earlier one, by whichever client. While another client runs the job, Do
// waits for that until ctx ends.
//
// If f fails, Do returns an error that wraps f's, logs it at Warn, and puts it
// on record; the next caller tries again, or Do itself if there are [Attempts]
// left. When none is left, Do fails with [ErrFailed] or [ErrUnfinished] without
// running f, and the Result says what is known.
//
// If the hold was lost before f's end was on record, the error matches
// [coord.ErrLost] (with f's own error, by go-multierror, if it failed); if the
// reply was lost and ctx ended, [coord.ErrUnconfirmed]. In both cases another
// client may run the job again. Data that do not fit into one packet are a
// failure of f, which matches [coord.ErrTooLarge].
func (o *Once) Do(ctx context.Context, key string, f Func) (Result, error) {
	return o.do(ctx, "do", key, f, false)
}

// TryDo is [Once.Do] without waiting: it fails with [coord.ErrBusy] while
// another client runs the job, or if it is too early for the next attempt; and
// it makes one attempt only. While no server can be reached, it waits for one
// until ctx ends.
func (o *Once) TryDo(ctx context.Context, key string, f Func) (Result, error) {
	return o.do(ctx, "try", key, f, true)
}

// Begin is the first half of [Once.Do], for those who cannot do the job in a
// function: it returns a run, which the caller ends by [Run.End], or no run,
// and what Do returns when it does not run its function. Each run that Begin
// returns counts as one of the [Attempts].
func (o *Once) Begin(ctx context.Context, key string) (*Run, Result, error) {
	return o.begin(ctx, "begin", key, false)
}

// TryBegin is [Once.Begin] without waiting: see [Once.TryDo].
func (o *Once) TryBegin(ctx context.Context, key string) (*Run, Result, error) {
	return o.begin(ctx, "try", key, true)
}

// Forget deletes the record of a job, which then counts as never done. It fails
// with [coord.ErrBusy] while the job runs. A job without a record is forgotten
// already.
func (o *Once) Forget(ctx context.Context, key string) error {
	for {
		err := recipe.Retry(ctx, o.client, func(ctx context.Context) error { return o.forget(ctx, key) })
		if !errors.Is(err, coord.ErrLost) { // of which the caller knows nothing
			return recipe.Failure(o.client, "forget", o.path, err)
		}
	}
}

func (o *Once) forget(ctx context.Context, key string) error {
	at, err := o.place(key)
	if err != nil {
		return err
	}
	if _, there, err := o.client.Synced().Exists(ctx, at.record()); err != nil || !there {
		return err
	}
	h, err := recipe.TryAcquire(ctx, o.client, at.spec(), coord.First)
	if err != nil {
		return err
	}
	defer h.Abandon()
	_, stat, err := o.client.Get(ctx, at.record())
	switch {
	case errors.Is(err, coord.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	err = o.guard.Release(ctx, []*coord.Hold{h}, coord.DeleteOp(at.record(), stat.Version))
	if err == nil {
		_ = o.client.Delete(ctx, at.dir, -1) // it is empty, unless somebody waits there
	}
	return err
}
