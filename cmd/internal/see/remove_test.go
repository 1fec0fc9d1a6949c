//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	jobs "github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

type everySecond struct{}

func (everySecond) Next(after time.Time) time.Time {
	return after.Truncate(time.Second).Add(time.Second)
}

// Long after the last use, when the servers have deleted what they delete.
func TestRemoveFindsAndDeletesWhatEachRecipeHasLeft(t *testing.T) {
	for kind, use := range map[string]func(ctx context.Context, c *coord.Client, path string) error{
		"semaphore": func(ctx context.Context, c *coord.Client, path string) error {
			return cmdtest.Must(cmdtest.Must(semaphore.New(c, path, 2)).Acquire(ctx)).Release(ctx)
		},
		"slots": func(ctx context.Context, c *coord.Client, path string) error {
			return cmdtest.Must(cmdtest.Must(slots.New(c, path, 2)).Acquire(ctx)).Release(ctx)
		},
		"doublebarrier": func(ctx context.Context, c *coord.Client, path string) error {
			return cmdtest.Must(cmdtest.Must(doublebarrier.New(c, path, 1)).Enter(ctx)).Leave(ctx)
		},
		"queue": func(ctx context.Context, c *coord.Client, path string) error {
			q := cmdtest.Must(queue.New(c, path))
			if err := q.Put(ctx, nil); err != nil {
				return err
			}
			return cmdtest.Must(q.Receive(ctx)).Ack(ctx)
		},
		"once": func(ctx context.Context, c *coord.Client, path string) error {
			ledger := cmdtest.Must(jobs.New(c, path))
			return coordtest.Err(ledger.Do(ctx, "key", func(context.Context, *jobs.Run) ([]byte, error) { return nil, nil }))
		},
		"cron": func(ctx context.Context, c *coord.Client, path string) error {
			return coordtest.Err(cmdtest.Must(cmdtest.Must(cron.New(c, path, everySecond{})).Begin(ctx)).End(ctx, nil, nil))
		},
		"shards": func(ctx context.Context, c *coord.Client, path string) error {
			return cmdtest.Must(shards.New(c, path)).SetKeys(ctx, "a", "b")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w := cmdtest.World(t)
			path := w.Path("deep/r")
			user := cmdtest.Open(t, w)
			require.NoError(t, use(t.Context(), user, path))
			require.NoError(t, user.Close(context.Background()))
			for range 4 {
				w.Embedded().Reap()
			}
			require.Contains(t, cmdtest.On(t, w, "ls", path).Gives(0), kind)
			cmdtest.On(t, w, "remove", path).Ends(term.ExitUsage, "confirm with --yes")
			told := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "--json", "remove", "--yes", path).Gives(0))
			require.Equal(t, map[string]any{"path": path, "removed": kind}, told)
			for _, n := range w.Embedded().Nodes() {
				require.False(t, strings.HasPrefix(n.Path, path), n.Path)
			}
			cmdtest.On(t, w, "remove", "--yes", path).Ends(term.ExitAbsent, "there is no node "+path)
		})
	}
}

func TestRemoveLeavesAloneWhatIsInUse(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.EveryRecipe(t, w)
	remove := func(path string) *cmdtest.Process { return cmdtest.On(t, w, "remove", "--yes", w.Path(path)) }
	remove("app/licence").Ends(term.ExitBusy, "3 leases (holder")
	remove("app/round").Ends(term.ExitBusy, "1 member (holder")
	remove("app/jobs").Ends(term.ExitBusy, "2 items (entry-100-0000000000, entry-100-0000000001)")
	remove("app/lock").Ends(term.ExitBusy, "in use, by \"holder")
	remove("app/gate").Ends(term.ExitFailed, "barrier open")
	remove("app").Ends(term.ExitFailed, "nothing that")
	cmdtest.On(t, w, "remove", "--yes", "/zookeeper/quota").Ends(term.ExitUsage, "the servers keep nodes of their own")
}
