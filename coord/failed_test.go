package coord_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// lines collects what a client logs at Warn and above.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) naming(path string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.text.String(), "\n") {
		if strings.Contains(line, "path="+path) {
			found = append(found, line)
		}
	}
	return found
}

var errDiskFull = errors.New("the disk is full")

func TestWhatFailsUnderARecipeIsLoggedOnceAtWarn(t *testing.T) {
	for name, fail := range map[string]func(b coordtest.Bubble, ctx context.Context, c *coord.Client) error{
		"once": func(_ coordtest.Bubble, ctx context.Context, c *coord.Client) error {
			_, err := must(once.New(c, "/failing")).Do(ctx, "key", func(context.Context, *once.Run) ([]byte, error) {
				return nil, errDiskFull
			})
			return err
		},
		"cron": func(_ coordtest.Bubble, ctx context.Context, c *coord.Client) error {
			ctx, stop := context.WithTimeout(ctx, 90*time.Second)
			defer stop()
			err := must(cron.New(c, "/failing", minutely{})).Run(ctx, func(context.Context, *cron.Slot) ([]byte, error) {
				return nil, errDiskFull
			})
			return errors.Join(err, errDiskFull)
		},
		"shards": func(_ coordtest.Bubble, ctx context.Context, c *coord.Client) error {
			ctx, stop := context.WithTimeout(ctx, time.Second/2)
			defer stop()
			err := must(shards.New(c, "/failing", shards.Keys("one"))).Run(ctx, func(context.Context, string, coord.Held) error {
				return errDiskFull
			})
			return errors.Join(err, errDiskFull)
		},
		"election": func(_ coordtest.Bubble, ctx context.Context, c *coord.Client) error {
			ctx, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			var sick atomic.Bool
			e := must(election.New(c, "/failing", election.Health(time.Second, 3, func(context.Context) error {
				if sick.Load() {
					return errDiskFull
				}
				return nil
			})))
			err := e.Run(ctx, nil, func(ctx context.Context, _ *election.Term) error {
				sick.Store(true)
				<-ctx.Done()
				return nil
			})
			return errors.Join(err, errDiskFull)
		},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				log := &lines{}
				c := b.Open(coord.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
				require.ErrorIs(b, fail(b, b.Context(), c), errDiskFull)
				found := log.naming("/failing")
				require.Len(b, found, 1)
				require.Contains(b, found[0], "level=WARN")
				require.Contains(b, found[0], errDiskFull.Error())
			})
		})
	}
}

func TestTheErrorOfAJobNamesItsLedgerAndItsKey(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		jobs := must(once.New(b.Open(), "/jobs"))
		_, err := jobs.Do(b.Context(), "tables", func(context.Context, *once.Run) ([]byte, error) { return nil, errDiskFull })
		require.EqualError(b, err, `do /jobs: "tables", attempt 1: the disk is full`)
		require.ErrorIs(b, err, errDiskFull)
		held, _, err := jobs.Begin(b.Context(), "tables")
		require.NoError(b, err)
		_, err = jobs.TryDo(b.Context(), "tables", nil)
		require.ErrorIs(b, err, coord.ErrInvalid)
		_, _, err = jobs.TryBegin(b.Context(), "tables")
		require.ErrorIs(b, err, coord.ErrBusy)
		require.Contains(b, err.Error(), `/jobs: "tables": `)
		require.NotContains(b, err.Error(), "/jobs/", "a node of the ledger's own")
		held.Abandon()
	})
}
