// Package cron has a job of robfig/cron run by one of many replicas, slot by
// slot, by whichever comes first.
//
//	crontab := cron.New(cron.WithChain(cron.Recover(logger)))
//	daily, err := zkcron.Once(ctx, ledger, "report", time.Minute, logger)
//	_, err = crontab.AddJob("30 4 * * *", cron.NewChain(daily).Then(job))
//
// # What a JobWrapper cannot give
//
//   - It is not told for which instant it runs. The slot is what the replica's
//     clock shows, rounded to what the user says, so a run that begins late by
//     half of that counts for another slot.
//   - It does not know the job's name: each job needs a wrapper of its own.
//   - A job is not told of the end of its hold, and gets no token.
//   - A job cannot fail: when it returns, the slot is done. After a panic
//     another replica runs the slot.
//
// Package coord/cron has none of these limits, and takes the schedules that
// this library parses.
package cron

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
)

// Once makes a wrapper for the one job of that name, which runs each of its
// slots once. The slots are the instants that are a multiple of every, at least
// 1 s. All instants of the job must be such multiples, and every no more than
// the time between two of them: a minute for most crontabs. For "@every 5m",
// whose instants depend on when the replica began, every is five minutes, and
// the slots are run once all the same.
//
// If another replica runs the slot, the wrapper waits until that has ended, and
// runs the job itself if that replica died. It waits no longer than ctx, which
// is to end before [cron.Cron.Stop] is waited for. Failures, after which the
// job was not run or its end is not on record, go to the logger.
//
// The ledger has a record for each slot of each job: make it with [once.Keep],
// for longer than clocks differ and jobs last. Name and instant together are
// the job's key in the ledger, of at most 200 bytes.
func Once(
	ctx context.Context, ledger *once.Once, name string, every time.Duration, logger cron.Logger,
) (cron.JobWrapper, error) {
	if ledger == nil || logger == nil || name == "" || every < time.Second {
		return nil, fmt.Errorf("%w: job %q needs a ledger, a logger, a name, and slots of at least 1 s, not %v",
			coord.ErrInvalid, name, every)
	}
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			key := name + "@" + time.Now().Round(every).UTC().Format(time.RFC3339)
			ran := false
			res, err := ledger.Do(ctx, key, func(context.Context, *once.Run) ([]byte, error) {
				ran = true
				job.Run()
				return nil, nil
			})
			switch {
			case err != nil:
				logger.Error(err, "once", "job", key, "ran", ran)
			case !ran:
				logger.Info("done", "job", key, "by", res.By)
			}
		})
	}, nil
}
