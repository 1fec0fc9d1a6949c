package docs

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var held = flag.Int("held", 2000, "how many locks the measurement for docs/operations.md holds")

// docs/operations.md has the figures of larger runs, and their
// command.
func TestAHeldLockCostsTheServerLessThan4KiB(t *testing.T) {
	server := zktest.RequireReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	before := heap(t, server.PID())
	c, err := coord.Open(ctx, server.ConnectString(), coord.WithSessionTimeout(4*time.Second))
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	var all errgroup.Group
	all.SetLimit(64)
	for i := range *held {
		all.Go(func() error {
			m, err := lock.New(c, fmt.Sprintf("/sizing/%d", i))
			if err != nil {
				return err
			}
			_, err = m.Acquire(ctx)
			return err
		})
	}
	require.NoError(t, all.Wait())
	// A reading can be too high, by what is garbage since the collection, and
	// never too low.
	zktest.Eventually(t, 2*time.Minute, func() bool {
		each := (heap(t, server.PID()) - before) * 1024 / *held
		t.Logf("%d locks are held: %d bytes of the server's heap for each", *held, each)
		return each < 4096
	}, "it costs more")
}

// heap is how much of a server's heap is in use, in KiB, without garbage.
func heap(t *testing.T, pid int) int {
	t.Helper()
	jcmd := func(what string) string {
		out, err := exec.CommandContext(t.Context(), "jcmd", strconv.Itoa(pid), what).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	jcmd("GC.run")
	total := 0
	for _, found := range regexp.MustCompile(`(?m)^ .*(?:generation|heap) .*used (\d+)K`).FindAllStringSubmatch(jcmd("GC.heap_info"), -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		total += n
	}
	require.Positive(t, total)
	return total
}
