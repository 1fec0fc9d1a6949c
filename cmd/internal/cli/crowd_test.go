//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// inDir is how many locks manyHeld makes in one directory.
const inDir = 100

// manyHeld makes the locks, each held by one; at every tenth another waits.
func manyHeld(t testing.TB, w *zktest.World, locks int) {
	t.Helper()
	var ops []any
	carryOut := func() {
		_, err := w.Admin().Multi(ops...)
		require.NoError(t, err)
		ops = nil
	}
	create := func(path string, flags int32) {
		ops = append(ops, &zk.CreateRequest{Path: path, Data: []byte("job host7 4711"), Acl: zk.WorldACL(zk.PermAll), Flags: flags})
	}
	create(cmdtest.Below(w), 0)
	for dir := range locks / inDir {
		create(w.Path(fmt.Sprint(dir)), 0)
		for i := range inDir {
			path := w.Path(fmt.Sprintf("%d/%d", dir, i))
			create(path, 0)
			create(path+"/_c_"+cmdtest.Guid1+"-lock-0000000000", zk.FlagEphemeral)
			if i%10 == 0 {
				create(path+"/_c_"+cmdtest.Guid2+"-lock-0000000001", zk.FlagEphemeral)
			}
		}
		carryOut()
	}
}

// called runs a verb in this process, and returns its output and status.
func called(t testing.TB, w *zktest.World, args ...string) (output string, status int) {
	t.Helper()
	var out, notes bytes.Buffer
	std := &term.Streams{Out: &out, Err: &notes}
	v, ctx, err := parseArgs(std, append([]string{"--zk", w.ConnectString(), "--connect-timeout", "5m", "--json"}, args...))
	require.NoError(t, err)
	std.JSON, v.Note = true, std.Note
	status = std.Finish(ctx.Run(std, &v.Connection), hint)
	require.Empty(t, notes.String())
	return out.String(), status
}

// requestGauge counts reads, and now and then holds one reply back and
// with it all that follow: what comes meanwhile was sent without waiting.
type requestGauge struct {
	mu      sync.Mutex
	reads   int
	until   time.Time // no reply goes out before
	pending int
	most    int
}

const (
	heldBack     = 200 * time.Millisecond
	heldBackEach = 500 // reads
)

// match is called with one request after the other, before it is carried out.
func (g *requestGauge) match(r zkembed.Request) bool {
	if !slices.Contains([]zkembed.Op{zkembed.OpGetChildren2, zkembed.OpGetData, zkembed.OpExists}, r.Op) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	holds := g.reads%heldBackEach == 0
	switch now := time.Now(); {
	case now.Before(g.until):
		g.pending++
		holds = false
	case holds:
		g.until, g.pending = now.Add(heldBack), 1
	}
	g.most = max(g.most, g.pending)
	return holds
}

func TestAThousandLocksAreListedWithFewRequestsUnderWay(t *testing.T) {
	t.Parallel()
	const locks, waiters = 1000, 1000 / 10
	w := zktest.NewEmbedded(t)
	manyHeld(t, w, locks)
	for _, verb := range []string{"ls", "graph"} {
		g := &requestGauge{}
		fault := w.Embedded().Inject(zkembed.Match{Func: g.match}, zkembed.DelayReply(heldBack))
		text, status := called(t, w, verb, cmdtest.Below(w))
		fault.Remove()
		require.Zero(t, status)
		all := cmdtest.Parse[struct {
			Recipes, Waits []struct{}
			Left           int `json:"left_out"`
		}](t, text)
		require.Zero(t, all.Left)
		if verb == "ls" {
			require.Len(t, all.Recipes, locks)
		} else {
			require.Len(t, all.Waits, waiters)
		}
		require.Positive(t, fault.Fired(), "nothing was held back, and this test proves nothing")
		require.LessOrEqual(t, g.most, look.Surveyors, "requests under way at once")
		require.Greater(t, g.most, 1, "one after the other: that takes long")
		require.LessOrEqual(t, g.reads, 1+locks/inDir+locks+locks+waiters, "a listing of each node, a read of each contender")
	}
}

func BenchmarkTenThousandLocks(b *testing.B) {
	for _, backend := range []zktest.Backend{zktest.Embedded, zktest.Real} {
		b.Run(backend.String(), func(b *testing.B) {
			w := zktest.NewPrivate(b, backend)
			manyHeld(b, w, 10_000)
			for _, verb := range []string{"ls", "graph", "doctor"} {
				b.Run(verb, func(b *testing.B) {
					for b.Loop() {
						called(b, w, verb, cmdtest.Below(w))
					}
				})
			}
		})
	}
}
