package once

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Run is one attempt of a job, by the holder of the job's lock, who alone
// writes its record. The hold's token grows from run to run. Begin, and Do for
// its function, make runs; End ends those of Begin.
type Run struct {
	coord.Held
	Key     string
	Attempt int    // from 1; each one that was begun counts
	Last    Result // of the attempt before: failed or unfinished; zero at the first

	job     *job
	hold    *coord.Hold
	own     record // as it began; without an ID if it did not
	before  record // without an ID if there was none
	version int32  // of the record since then
	begun   time.Time
}

// job is a key as one call sees it.
type job struct {
	*Once
	place
	key    string
	try    bool
	reader *coord.Client
}

func (o *Once) do(ctx context.Context, op, key string, f Func, try bool) (Result, error) {
	if f == nil {
		return Result{Key: key}, recipe.Failure(o.client, op, o.path, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	for {
		r, res, err := o.begin(ctx, op, key, try)
		if r == nil {
			return res, err
		}
		if ctx.Err() != nil {
			ending, cancel := recipe.Grace(ctx)
			defer cancel()
			_ = r.Withdraw(ending) // otherwise the attempt counts
			return res, recipe.Failure(o.client, op, o.path, recipe.Ended(ctx))
		}
		res, failure, err := r.perform(ctx, f)
		if err != nil || failure == nil || try || o.failOnce || r.Attempt >= o.attempts || ctx.Err() != nil {
			return res, recipe.Joined(r.explain(op, failure), err)
		}
	}
}

// explain says which attempt of which job a function's failure ended.
func (r *Run) explain(op string, failure error) error {
	if failure == nil {
		return nil
	}
	return &coord.OpError{Op: op, Path: r.job.path, Err: fmt.Errorf("%q, attempt %d: %w", r.Key, r.Attempt, failure)}
}

// failed names the ledger and the key, where err names a node of theirs.
func (o *Once) failed(op, key string, err error) error {
	if inner, ok := err.(*coord.OpError); ok {
		err = fmt.Errorf("%q: %w", key, inner.Err)
	}
	return recipe.Failure(o.client, op, o.path, err)
}

// perform runs the function and ends the run.
func (r *Run) perform(ctx context.Context, f Func) (res Result, failure, err error) {
	defer r.Abandon() // after a panic; otherwise nothing is left to release
	inside, returned := r.Bounded(ctx)
	data, failure := f(inside, r)
	returned()
	if failure != nil {
		recipe.Report(r.job.client, slog.LevelWarn,
			event.Event{Kind: event.Failed, Path: r.job.path, Err: r.explain("run", failure)})
	}
	ending, cancel := recipe.Grace(ctx)
	defer cancel()
	res, err = r.End(ending, data, failure)
	return res, failure, err
}

// begin is Begin, or TryBegin.
func (o *Once) begin(ctx context.Context, op, key string, try bool) (*Run, Result, error) {
	at, err := o.place(key)
	if err != nil {
		return nil, Result{Key: key}, recipe.Failure(o.client, op, o.path, err)
	}
	j := &job{o, at, key, try, o.client}
	if o.prunes() {
		j.reader = o.client.Synced() // a server that lags shows records that were deleted
	}
	r, found, err := j.begin(ctx)
	return r, found.result(key), o.failed(op, key, err)
}

// errOver: the record says how the job ended.
var errOver = errors.New("the job has ended")

// begin looks at the record, and if the job is to run, acquires the job's lock
// and puts the beginning on record. Otherwise it returns no run, and the record
// says how the job ended, as does the error if it did not end well.
func (j *job) begin(ctx context.Context) (*Run, record, error) {
	for {
		found, _, err := j.read(ctx, j.reader, j.place)
		if err != nil {
			return nil, found, err
		}
		j.compare(found)
		if over, err := j.verdict(found); over {
			return nil, found, err
		}
		h, err := j.acquire(ctx)
		switch {
		case err == errOver:
			continue
		case errors.Is(err, coord.ErrBusy):
			found.State = Running // though it may not be on record yet
		}
		if err != nil {
			return nil, found, err
		}
		r := &Run{Held: h, Key: j.key, job: j, hold: h}
		found, err = r.begin(h.Context(ctx))
		if r.own.ID != "" && err == nil {
			j.bound.Granted(ctx, j.client, h)
			return r, found, nil
		}
		h.Abandon()
		switch {
		case !errors.Is(err, coord.ErrLost):
			return nil, found, err
		case ctx.Err() != nil: // the hold's context may have ended first
			return nil, found, recipe.Ended(ctx, err)
		}
	}
}

// verdict reports whether the job has ended, and if not well, why not. If the
// record says that the job runs, only the holder of the lock can know better.
func (j *job) verdict(r record) (over bool, err error) {
	switch {
	case r.State == Done:
		return true, nil
	case r.State == Failed && (j.failOnce || j.attempts > 0 && r.Attempt >= j.attempts):
		return true, fmt.Errorf("%w: %q, attempt %d: %s", ErrFailed, j.key, r.Attempt, r.Err)
	}
	return false, nil
}

// acquire waits for the job's lock, or returns errOver when the record says
// that the job has ended: then a waiter need not sit through the turns of all
// others in line.
func (j *job) acquire(ctx context.Context) (*coord.Hold, error) {
	if j.try {
		return recipe.TryAcquire(ctx, j.client, j.spec(), coord.First)
	}
	waiting, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	watching.Go(func() {
		if err := j.client.Wait(waiting, func(v *coord.View) (bool, error) { return j.isOver(waiting, v) }); err == nil {
			stop(errOver)
		}
	})
	h, err := recipe.Acquire(waiting, j.client, j.spec(), coord.First)
	if err != nil && context.Cause(waiting) == errOver {
		err = errOver
	}
	return h, err
}

// isOver is a look at whether the job has ended. It watches the record only
// while that says no: the watch on a record that does not change any more would
// stay for ever.
func (j *job) isOver(ctx context.Context, v *coord.View) (bool, error) {
	for {
		found, stat, err := j.read(ctx, j.reader, j.place)
		if over, _ := j.verdict(found); over || err != nil {
			return over, err
		}
		_, watched, err := recipe.NewRecord(j.client, j.record()).Look(v, nil)
		if watched.Mzxid == stat.Mzxid || err != nil {
			return false, err
		}
	}
}

// begin puts the beginning of an attempt on record, unless the record says that
// the job has ended. ctx is the hold's.
func (r *Run) begin(ctx context.Context) (found record, err error) {
	if r.job.prunes() {
		_, _, _ = r.job.prune(ctx, 1) // the next run tries again; Prune says why not
	}
	id := newID()
	err = recipe.Retry(ctx, r.job.client, func(ctx context.Context) error {
		for {
			var stat coord.Stat
			if found, stat, err = r.job.read(ctx, r.job.reader, r.job.place); err != nil {
				return err
			}
			if found.ID != id { // or it was written, and the reply was lost
				if over, err := r.job.verdict(found); over {
					r.own = record{}
					return err
				}
				op, err := r.next(ctx, id, found, stat)
				if err == nil {
					err = r.write(ctx, op)
				}
				switch {
				case errors.Is(err, coord.ErrBadVersion), errors.Is(err, coord.ErrNodeExists):
					continue // read from a server that lagged behind
				case err != nil:
					return err
				}
			}
			return nil
		}
	})
	if err != nil && r.own.ID != "" { // which may be on record
		ending, cancel := recipe.Grace(ctx)
		defer cancel()
		_ = r.Withdraw(ending)
		r.own = record{}
	}
	if errors.Is(err, ErrUnfinished) {
		found.State = Unfinished
	}
	r.Attempt, r.begun = r.own.Attempt, time.Now()
	return found, err
}

// next decides whether another attempt may begin, and returns the change of the
// record that begins it.
func (r *Run) next(ctx context.Context, id string, found record, stat coord.Stat) (op coord.Op, err error) {
	if found.State == Running && r.job.attempts > 0 && found.Attempt >= r.job.attempts {
		// Only the newest record can tell.
		if _, err = r.Txn(ctx, coord.CheckOp(r.job.record(), stat.Version)); err == nil {
			err = fmt.Errorf("%w: %q, attempt %d by %s", ErrUnfinished, r.Key, found.Attempt, found.By)
		}
		return op, err
	}
	if err := r.pause(ctx, found, stat); err != nil {
		return op, err
	}
	r.Last, r.version, r.before = Result{}, 0, found
	r.own = record{
		ID: id, State: Running, By: r.job.client.Info().Identity, Attempt: found.Attempt + 1, Begun: time.Now().UTC(),
		Options: r.job.options(),
	}
	if stat.Czxid == 0 {
		return coord.CreateOp(r.job.record(), r.own.encode(nil)), nil
	}
	r.Last, r.version = found.result(r.Key), stat.Version+1
	if found.State == Running {
		r.Last.State = Unfinished
	}
	return coord.SetOp(r.job.record(), r.own.encode(nil), stat.Version), nil
}

// pause waits until the next attempt may begin.
func (r *Run) pause(ctx context.Context, found record, stat coord.Stat) error {
	if found.State != Failed || r.job.backoff == 0 {
		return nil
	}
	apart := r.job.backoff << min(found.Attempt-1, 10)
	now, err := r.job.now(ctx)
	left := min(stat.Modified.Add(apart).Sub(now), apart) // another server's clock may differ
	switch {
	case err != nil:
		return err
	case left <= 0:
		return nil
	case r.job.try:
		return fmt.Errorf("%w: attempt %d failed, and the next one may begin in %v", coord.ErrBusy, found.Attempt, left)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return recipe.Ended(ctx)
	}
}

// write begins an attempt, and notes it in the log if records are not kept for
// ever.
func (r *Run) write(ctx context.Context, op coord.Op) error {
	ops := []coord.Op{op}
	if r.job.prunes() {
		ops = append(ops, r.job.logged(r.own.ID, r.job.place))
	}
	for {
		_, err := r.Txn(ctx, ops...)
		refused := (*coord.TxnError)(nil)
		switch {
		case !errors.As(err, &refused) || refused.Index == 0:
			return err
		case errors.Is(err, coord.ErrNodeExists):
			return fmt.Errorf("%w: %s", coord.ErrSequenceExhausted, r.job.log())
		case !errors.Is(err, coord.ErrNoNode):
			return err
		}
		err = r.job.client.Create(ctx, r.job.log(), nil)
		if err != nil && !errors.Is(err, coord.ErrNodeExists) {
			return err
		}
	}
}

// Withdraw ends a run whose job was not begun: the record is as it was before,
// and the attempt does not count. If that is not confirmed within ctx, it
// counts.
func (r *Run) Withdraw(ctx context.Context) error {
	ops := []coord.Op{coord.DeleteOp(r.job.record(), r.version)}
	if r.before.ID != "" {
		ops[0] = coord.SetOp(r.job.record(), r.before.encode(r.before.data), r.version)
		if r.job.prunes() { // its entry may be gone
			ops = append(ops, r.job.logged(r.before.ID, r.job.place))
		}
	}
	err := r.job.guard.Release(ctx, []*coord.Hold{r.hold}, ops...)
	if err != nil {
		r.Abandon()
	}
	return r.job.failed("withdraw", r.Key, err)
}

// End puts the end of a run on record, failed if failure is not nil, and
// releases the hold, both or none. It returns what [Once.Do] returns for it,
// but for the failure itself, and ends with ctx.
func (r *Run) End(ctx context.Context, data []byte, failure error) (Result, error) {
	var tooLarge error
	own, err := r.end(ctx, data, failure)
	if errors.Is(err, coord.ErrTooLarge) && failure == nil {
		tooLarge = fmt.Errorf("result of %q, %d bytes: %w", r.Key, len(data), err)
		own, err = r.end(ctx, nil, tooLarge)
	}
	if err != nil {
		own.State = Unfinished // for all that is known
		r.Abandon()
	}
	return own.result(r.Key), r.job.failed("end", r.Key, recipe.Joined(tooLarge, err))
}

func (r *Run) end(ctx context.Context, data []byte, failure error) (record, error) {
	own := r.own
	own.State, own.Took, own.data = Done, time.Since(r.begun), data
	if failure != nil {
		text := failure.Error()
		own.State, own.Err, own.data = Failed, text[:min(len(text), longest)], nil
	}
	return own, r.job.guard.Release(ctx, []*coord.Hold{r.hold},
		coord.SetOp(r.job.record(), own.encode(own.data), r.version))
}

// Bounded returns the context that [Once.Do] gives to its function, for those
// who do the job themselves, and a function to call when it is done: see
// [hold.Bound.Context].
func (r *Run) Bounded(ctx context.Context) (inside context.Context, returned func()) {
	return r.job.bound.Context(ctx, r.hold)
}

// Abandon gives the run up without an end on record, and without waiting for
// an answer: another client may run the job again, if there are [Attempts]
// left. After End it does nothing.
func (r *Run) Abandon() { r.hold.Abandon() }

// longest is how much of a failure's text is kept.
const longest = 4096
