package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// prunes reports whether runs delete records.
func (o *Once) prunes() bool { return o.keep > 0 || o.last > 0 }

// atOnce bounds how many entries of the log a run looks at before it begins.
const atOnce = 16

// Prune deletes all records that [Keep] and [KeepLast] do not keep, and returns
// how many. Without these options it does nothing. Use it on ledgers in which
// nothing runs any more, and to find out why records are not deleted: a run
// that cannot delete them ignores the error. A corrupt record stays: Prune
// deletes the others, and then fails with [coord.ErrInvalid] and names each.
func (o *Once) Prune(ctx context.Context) (pruned int, err error) {
	for again := true; again && err == nil; {
		var n int
		n, again, err = o.prune(ctx, 0)
		pruned += n
	}
	return pruned, recipe.Failure(o.client, "prune", o.path, err)
}

// journal is one directory of the log of runs. Its data are the number of the
// oldest entry. The entries are numbered by the server, and are removed in
// order.
type journal struct {
	dir     string
	missing bool
	oldest  int64
	left    int // entries
	run     string
	name    string // of the key
	stat    coord.Stat
}

func (j *journal) entry() string { return fmt.Sprintf("%s/%010d", j.dir, j.oldest) }

// prune removes the oldest entries of the log, and the records whose newest
// entries they are; more is the number of runs about to begin.
//
// The holder of the job's lock deletes the record, so nobody has the job, and
// in one transaction with the entry, so of two clients that prune, one is
// refused. The newest entry of a job that runs, or that ended a short time ago,
// is put off: it moves to a journal of its own, where it takes no newer run's
// place. A run looks at one entry that was put off, and at few others;
// [Once.Prune] looks at all. prune returns how many records it has deleted, and
// whether it ended because another client pruned at the same time.
func (o *Once) prune(ctx context.Context, more int) (pruned int, met bool, err error) {
	if !o.prunes() {
		return 0, false, nil
	}
	all, failures := make([]*journal, logs+1), make([]error, logs+1)
	var reading sync.WaitGroup
	for i := range all {
		reading.Go(func() { all[i], failures[i] = o.journal(ctx, logDir(o.path, i)) })
	}
	reading.Wait()
	if err := recipe.JoinedWithin(ctx, failures...); err != nil {
		return 0, false, err
	}
	late, all := all[logs], all[:logs]
	total, looked := more, 0
	for _, j := range all {
		total += j.left
	}
	old, err := o.oldAt(ctx, total-more+late.left)
	if err != nil {
		return 0, false, err
	}
	due := func(j *journal, tooMany bool) bool { return j.left > 0 && (tooMany || old(j.stat.Created)) }
	var corrupt []error
	limit := atOnce
	if more == 0 {
		limit = total + late.left
	}
	for range limit {
		j, tooMany := oldest(all), o.last > 0 && total > o.last
		if !due(j, tooMany) {
			j, tooMany = late, o.keep == 0
			if !due(j, tooMany) || looked > 0 && more > 0 {
				break
			}
			looked++
		}
		done, bad, err := o.pruneOldest(ctx, j, late, func(at time.Time) bool { return tooMany || old(at) })
		if errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode) {
			return pruned, true, nil
		}
		if corrupt = append(corrupt, bad); err == nil {
			if done == deleted {
				pruned++
			}
			total--
			j.oldest++
			j.left--
			err = o.head(ctx, j)
		}
		if err != nil {
			return pruned, false, recipe.Joined(append(corrupt, err)...)
		}
	}
	return pruned, false, recipe.Joined(corrupt...)
}

// oldAt returns which times are so long ago that [Keep] does not keep what is
// of them, by the ensemble's clock. It makes no request if there are no
// entries.
func (o *Once) oldAt(ctx context.Context, entries int) (old func(at time.Time) bool, err error) {
	if o.keep == 0 || entries == 0 {
		return func(time.Time) bool { return false }, nil
	}
	now, err := o.now(ctx)
	return func(at time.Time) bool { return now.Sub(at) > o.keep }, err
}

// now is the ensemble's time.
func (o *Once) now(ctx context.Context) (time.Time, error) {
	return recipe.EnsembleTime(ctx, o.client, o.path+"/log", time.Minute)
}

// oldest returns the journal with the oldest entry; it is empty if all are.
func oldest(all []*journal) *journal {
	return slices.MinFunc(all, func(a, b *journal) int {
		if a.left == 0 || b.left == 0 {
			return cmp.Compare(b.left, a.left)
		}
		return cmp.Compare(a.stat.Czxid, b.stat.Czxid)
	})
}

// journal reads a directory of the log, and its oldest entry.
func (o *Once) journal(ctx context.Context, dir string) (*journal, error) {
	j := &journal{dir: dir}
	data, stat, err := o.client.Get(ctx, dir)
	if j.missing = errors.Is(err, coord.ErrNoNode); j.missing {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	j.oldest, _ = strconv.ParseInt(string(data), 10, 64) // 0 at first
	j.left = int(stat.Children)
	return j, o.head(ctx, j)
}

// head reads the oldest entry. If that is not where it should be, which only
// another program can have caused, the journal is listed.
func (o *Once) head(ctx context.Context, j *journal) error {
	for listed := false; j.left > 0; listed = true {
		data, stat, err := o.client.Get(ctx, j.entry())
		if err == nil {
			j.run, j.name, _ = strings.Cut(string(data), " ")
			j.stat = stat
			return nil
		}
		if !errors.Is(err, coord.ErrNoNode) {
			return err
		}
		names, err := o.children(ctx, j.dir)
		if err != nil {
			return err
		}
		if j.left = len(names); j.left == 0 || listed {
			j.left = 0
			break
		}
		j.oldest, _ = strconv.ParseInt(slices.Min(names), 10, 64)
	}
	return nil
}

// outcome is what has become of an entry of the log.
type outcome int

const (
	removed outcome = iota // alone
	deleted                // with its record
	deferred
)

// pruneOldest removes the oldest entry of a journal, and the record if this
// entry is the newest of its job, or puts the entry off. An entry that is not
// its job's newest needs no lock, which the caller may have itself. The entry
// of a corrupt record is put off, and pruneOldest returns what is wrong with
// the record.
func (o *Once) pruneOldest(
	ctx context.Context, j, late *journal, old func(at time.Time) bool,
) (done outcome, corrupt, err error) {
	p := o.named(j.name)
	h, err := recipe.TryAcquire(ctx, o.client, p.spec(), coord.First)
	busy := errors.Is(err, coord.ErrBusy)
	if err != nil && !busy {
		return done, nil, err
	}
	if !busy {
		defer h.Abandon()
	}
	r, stat, err := o.read(ctx, o.client, p)
	if errors.Is(err, errCorrupt) {
		corrupt, err = err, nil
	}
	ops := []coord.Op{coord.SetOp(j.dir, strconv.AppendInt(nil, j.oldest+1, 10), -1), coord.DeleteOp(j.entry(), -1)}
	switch {
	case err != nil:
		return done, nil, err
	case corrupt == nil && stat.Czxid != 0 && r.ID != j.run: // there is a newer run
		ops = append(ops, coord.CheckOp(p.record(), stat.Version))
	case stat.Czxid == 0 && !busy: // forgotten
	case corrupt == nil && !busy && old(stat.Modified):
		done = deleted
		ops = append(ops, coord.DeleteOp(p.record(), stat.Version))
	default:
		done = deferred
		ops = append(ops, coord.AppendOp(late.dir+"/", []byte(j.run+" "+j.name)))
		if late.missing {
			if err := o.client.Create(ctx, late.dir, nil); err != nil && !errors.Is(err, coord.ErrNodeExists) {
				return done, corrupt, err
			}
			late.missing = false
		}
	}
	if busy {
		_, err = o.guard.Txn(ctx, ops...)
		return done, corrupt, err
	}
	if err := o.guard.Release(ctx, []*coord.Hold{h}, ops...); err != nil {
		return done, corrupt, err
	}
	_ = o.client.Delete(ctx, p.dir, -1) // it is empty if its record is gone, unless somebody waits there
	return done, corrupt, nil
}
