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

// atOnce bounds how many entries of the log a run looks at before it begins.
const atOnce = 16

// Prune deletes the records that [Keep] and [KeepLast] do not keep, all of
// them, and returns how many. Without these options it does nothing. It is for
// ledgers in which nothing runs any more, and to find out why records are not
// deleted: a run goes on if it cannot delete them.
func (o *Once) Prune(ctx context.Context) (pruned int, err error) {
	for {
		n, err := o.prune(ctx, 0)
		if pruned += n; n == 0 || err != nil {
			return pruned, o.client.Failure("prune", o.path, err)
		}
	}
}

// journal is one directory of the log of runs. Its data are the number of the
// oldest entry. The entries are numbered by the server, and are removed in
// order.
type journal struct {
	dir    string
	oldest int64
	left   int // entries
	run    string
	name   string // of the key
	stat   coord.Stat
}

func (j *journal) entry() string { return fmt.Sprintf("%s/%010d", j.dir, j.oldest) }

// prune removes the oldest entries of the log, and the records of which they
// are the newest entries. more runs are about to begin.
//
// The holder of the job's lock deletes the record, so nobody has the job, and
// in one transaction with the entry, so of two who prune one is refused. The
// entry of a job that runs, or that ended a short time ago, is moved to the end
// of its journal.
func (o *Once) prune(ctx context.Context, more int) (pruned int, err error) {
	if o.keep == 0 && o.last == 0 {
		return 0, nil
	}
	all, failures := make([]*journal, logs), make([]error, logs)
	var reading sync.WaitGroup
	for i := range all {
		reading.Go(func() { all[i], failures[i] = o.journal(ctx, logDir(o.path, i)) })
	}
	reading.Wait()
	if err := recipe.Joined(failures...); err != nil {
		return 0, err
	}
	total := more
	for _, j := range all {
		total += j.left
	}
	for range atOnce {
		all = slices.DeleteFunc(all, func(j *journal) bool { return j.left == 0 })
		if len(all) == 0 {
			break
		}
		j := slices.MinFunc(all, func(a, b *journal) int { return cmp.Compare(a.stat.Czxid, b.stat.Czxid) })
		tooMany := o.last > 0 && total > o.last
		if !tooMany && (o.keep == 0 || time.Since(j.stat.Created) <= o.keep) {
			break
		}
		moved, err := o.settle(ctx, j, tooMany)
		switch {
		case errors.Is(err, coord.ErrBadVersion), errors.Is(err, coord.ErrNoNode):
			return pruned, nil // another prunes
		case err != nil:
			return pruned, err
		case !moved:
			total--
			pruned++
		}
		if err := o.advance(ctx, j, moved); err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// journal reads a directory of the log, and its oldest entry.
func (o *Once) journal(ctx context.Context, dir string) (*journal, error) {
	j := &journal{dir: dir}
	data, stat, err := o.client.Get(ctx, dir)
	if errors.Is(err, coord.ErrNoNode) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	j.oldest, _ = strconv.ParseInt(string(data), 10, 64) // 0 at first
	j.left = int(stat.Children)
	return j, o.head(ctx, j)
}

// advance goes on to the next entry.
func (o *Once) advance(ctx context.Context, j *journal, moved bool) error {
	j.oldest++
	if !moved {
		j.left--
	}
	return o.head(ctx, j)
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

// settle removes the oldest entry of a journal, and the record if this entry is
// the newest of its job, or moves the entry to the end.
func (o *Once) settle(ctx context.Context, j *journal, tooMany bool) (moved bool, err error) {
	p := o.named(j.name)
	next := coord.SetOp(j.dir, strconv.AppendInt(nil, j.oldest+1, 10), -1)
	ops := []coord.Op{next, coord.DeleteOp(j.entry(), -1)}
	again := coord.AppendOp(j.dir+"/", []byte(j.run+" "+j.name))
	h, err := o.client.TryAcquire(ctx, p.spec(), coord.First)
	if errors.Is(err, coord.ErrBusy) {
		_, err = o.guard.Txn(ctx, append(ops, again)...)
		return true, err
	}
	if err != nil {
		return false, err
	}
	defer h.Abandon()
	r, stat, err := o.read(ctx, p)
	switch {
	case err != nil:
		return false, err
	case stat.Czxid == 0 || r.ID != j.run: // forgotten, or there is a newer run
	case tooMany || time.Since(stat.Modified) > o.keep:
		ops = append(ops, coord.DeleteOp(p.record(), stat.Version))
	default:
		ops, moved = append(ops, again), true
	}
	if err := o.guard.Release(ctx, []*coord.Hold{h}, ops...); err != nil {
		return false, err
	}
	_ = o.client.Delete(ctx, p.dir, -1) // it is empty if its record is gone, unless somebody waits there
	return moved, nil
}
