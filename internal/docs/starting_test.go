package docs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// docs/starting.md's program is built with the go.mod beside it, as a user's
// would be, and run on an embedded server.
func TestTheWholeProgramInTheDocumentsRuns(t *testing.T) {
	parent := t.TempDir()
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(checkout, parent+"/zkcoord"))
	dir := parent + "/report"
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, kind := range map[string]string{"main.go": "go main.go", "go.mod": "go.mod"} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(blocksOfKind(t, kind)[0].text), 0o600))
	}
	require.NoError(t, os.WriteFile(dir+"/go.sum", []byte(read(t, root+"/go.sum")), 0o600))
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0")
		return cmd
	}
	out, err := command("go", "build", "-buildvcs=false", "-o", "report", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	srv, err := zkembed.Start()
	require.NoError(t, err)
	defer func() { _ = srv.Close() }()
	run := command(dir + "/report")
	run.Env = append(run.Env, "ZK_SERVERS="+srv.ConnectString())
	out, err = run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the report is written, with a token: true")
}

// ready answers a readiness probe: 200 while the client is connected.
func ready(client *coord.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !client.Connected() {
			http.Error(w, "no connection to ZooKeeper", http.StatusServiceUnavailable)
		}
	}
}

// opened is docs/starting.md's client with two observers.
func opened(ctx context.Context, servers string, metrics func(coord.Event), lost *atomic.Int64) (*coord.Client, error) {
	client, err := coord.Open(ctx, servers,
		coord.WithObserver(metrics),
		coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.ClaimEnded && !errors.Is(e.Err, coord.ErrReleased) {
				lost.Add(1)
			}
		}))
	return client, err
}

func TestTheReadinessProbeAndTheObserversInTheDocumentsWork(t *testing.T) {
	srv, err := zkembed.Start()
	require.NoError(t, err)
	defer func() { _ = srv.Close() }()
	var metrics, lost atomic.Int64
	client, err := opened(coordtest.Limited(t), srv.ConnectString(), func(coord.Event) { metrics.Add(1) }, &lost)
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	m, err := lock.New(client, "/lock")
	require.NoError(t, err)
	h, err := m.Acquire(t.Context())
	require.NoError(t, err)
	probe := func() int {
		w := httptest.NewRecorder()
		ready(client)(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return w.Code
	}
	require.Equal(t, http.StatusOK, probe())
	require.NoError(t, srv.ExpireSession(h.Session()))
	zktest.Receive(t, coordtest.Soon, h.Done(), "the loss")
	zktest.Eventually(t, coordtest.Soon, func() bool { return lost.Load() == 1 }, "the loss is observed")
	require.Positive(t, metrics.Load())
	srv.Stop()
	zktest.Eventually(t, coordtest.Soon, func() bool { return probe() == http.StatusServiceUnavailable }, "it is not ready")
}

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
