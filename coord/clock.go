package coord

import (
	"context"
	"errors"
	"sync"
	"time"
)

// clock is what a client knows of the ensemble's time.
type clock struct {
	mu    sync.Mutex
	wrote time.Time // the time of the newest write whose time is known, by the leader's clock
	heard time.Time // when it was answered, by this process's
}

func (k *clock) hear(stat Stat) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrote, k.heard = stat.Modified, time.Now()
}

// now carries the ensemble's time on by the monotonic clock, unless the answer
// that told it is older than within.
func (k *clock) now(within time.Duration) (now time.Time, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := time.Since(k.heard) // monotonic: setting the wall clock does not change it
	return k.wrote.Add(since), !k.heard.IsZero() && since < within
}

// EnsembleTime returns the time by the ensemble's clock. Use it, and the times
// in a [Stat], for whatever clients decide for each other: clients' own clocks
// differ, and one that is wrong must not decide for all.
//
// The leader writes its time into each node that is changed. The client knows
// it from the newest answer to a [SetOp] or [Client.Set], and carries it on by
// its monotonic clock: it may be behind by the time that the answer took, or
// for which this machine was suspended since, and never ahead, unless the
// leader's clock is set back, or another server leads whose clock differs. If
// the newest answer is not younger than within, the client first writes dir: a
// directory that has no data, and which is made if it is missing. One request
// then, and none otherwise.
func (c *Client) EnsembleTime(ctx context.Context, dir string, within time.Duration) (time.Time, error) {
	if now, known := c.clock.now(within); known {
		return now, nil
	}
	err := c.Retry(ctx, func(ctx context.Context) error {
		for {
			_, err := c.Set(ctx, dir, nil, -1)
			if !errors.Is(err, ErrNoNode) {
				return err
			}
			if err := c.EnsureDir(ctx, dir); err != nil {
				return err
			}
		}
	})
	now, _ := c.clock.now(within)
	return now, err
}
