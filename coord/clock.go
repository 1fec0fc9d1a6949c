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

// now carries the ensemble's time on by the monotonic clock, unless that time
// was learned longer ago than within.
func (k *clock) now(within time.Duration) (now time.Time, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := time.Since(k.heard) // monotonic: setting the wall clock does not change it
	return k.wrote.Add(since), !k.heard.IsZero() && since < within
}

// EnsembleTime is recipe.EnsembleTime.
func (s *clientSteps) EnsembleTime(ctx context.Context, dir string, within time.Duration) (time.Time, error) {
	c := (*Client)(s)
	if now, known := c.clock.now(within); known {
		return now, nil
	}
	err := c.retry(ctx, func(ctx context.Context) error {
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
