//go:build linux || darwin || freebsd || openbsd

package see

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// intervalsAt waits until the page remembers so many intervals at a path in
// which somebody held it, and returns them, the oldest first.
func intervalsAt(t *testing.T, at, path string, enough func([]interval) bool) (all []interval) {
	t.Helper()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		all = nil
		for _, i := range sightAt(t, at).Intervals {
			if i.Path == path && i.Nobody == "" {
				all = append(all, i)
			}
		}
		slices.SortFunc(all, func(a, b interval) int { return int(1000 * (a.Begin[1] - b.Begin[1])) })
		return enough(all)
	}, "the page does not remember it")
	return all
}

func holding(owner string) func([]interval) bool {
	return func(all []interval) bool {
		return len(all) > 0 && strings.HasPrefix(all[len(all)-1].Owner, owner) && all[len(all)-1].End == nil
	}
}

func ended(owner string, how history.How) func([]interval) bool {
	return func(all []interval) bool {
		return slices.ContainsFunc(all,
			func(i interval) bool { return strings.HasPrefix(i.Owner, owner) && i.End != nil && i.How == how })
	}
}

// holdSpan is the test's own record of a hold: the times between which it was
// granted, and between which it was given up.
type holdSpan struct {
	owner                         string
	asked, granted, freed, freed2 time.Time
}

func TestThePageRemembersWhoHeldAsTheTestsOwnRecordHasIt(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		at := cmdtest.On(t, w, "ui", "--every", "20ms", "--always", cmdtest.Below(w)).Line()
		var record []holdSpan
		for _, owner := range []string{"first", "second", "third"} {
			client := cmdtest.Open(t, w, coord.WithIdentity(owner))
			span := holdSpan{owner: owner, asked: time.Now()}
			hold := cmdtest.Must(cmdtest.Must(lock.New(client, w.Path("l"))).Acquire(t.Context()))
			span.granted = time.Now()
			intervalsAt(t, at, w.Path("l"), holding(owner))
			span.freed = time.Now()
			require.NoError(t, hold.Release(t.Context()))
			span.freed2 = time.Now()
			record = append(record, span)
			intervalsAt(t, at, w.Path("l"), ended(owner, history.Released))
		}
		all := intervalsAt(t, at, w.Path("l"), func(all []interval) bool { return len(all) == len(record) })
		for i, was := range record {
			got := all[i]
			require.Contains(t, got.Owner, was.owner)
			const clocks = 0.002 // milliseconds are rounded
			require.LessOrEqual(t, float64(got.Begin[0]), float64(momentOf(was.granted))+clocks)
			require.GreaterOrEqual(t, float64(got.Begin[1]), float64(momentOf(was.asked))-clocks)
			require.LessOrEqual(t, float64(got.End[0]), float64(momentOf(was.freed2))+clocks)
			require.GreaterOrEqual(t, float64(got.End[1]), float64(momentOf(was.freed))-clocks)
		}
		for _, i := range sightAt(t, at).Intervals {
			for _, was := range record {
				if i.Nobody == "sure" && i.Path == w.Path("l") && i.End != nil {
					held := i.Begin[1] < i.End[0] && i.Begin[1] < momentOf(was.freed) && momentOf(was.granted) < i.End[0]
					require.False(t, held, "%v held it in %v", was, i)
				}
			}
		}
	})
}

func TestThePageTellsHowAHoldHasEnded(t *testing.T) {
	w := cmdtest.World(t)
	at := cmdtest.On(t, w, "ui", "--every", "50ms", "--always", "--allow-break", cmdtest.Below(w)).Line()
	client := cmdtest.Open(t, w, coord.WithIdentity("broken"))
	hold := cmdtest.Must(cmdtest.Must(lock.New(client, w.Path("l"))).Acquire(t.Context()))
	seen := intervalsAt(t, at, w.Path("l"), holding("broken"))
	status, told := act(t, at, "break", w.Path("l"), hold.Node(), seen[0].Session)
	require.Equal(t, http.StatusOK, status, told)
	intervalsAt(t, at, w.Path("l"), ended("broken", history.Broken))

	// This client is gone at once, as when its machine fails: where zkcoord
	// alone is killed, the reaper closes the session.
	crashes := coordtest.Open(t, w.ProxyConnectString(), coord.WithIdentity("crashes"),
		coord.WithSessionTimeout(cmdtest.Short))
	cmdtest.Must(cmdtest.Must(lock.New(crashes, w.Path("m"))).Acquire(t.Context()))
	intervalsAt(t, at, w.Path("m"), holding("crashes"))
	w.Proxy().Refuse()
	require.Equal(t, 1, w.Proxy().CutAll())
	intervalsAt(t, at, w.Path("m"), ended("crashes", history.Crashed))
	w.Proxy().Heal()

	paused := cmdtest.Mortal(t, w, "lock", w.Path("m"), "--", "sleep", "1000").InLine(w, w.Path("m"), 1)
	intervalsAt(t, at, w.Path("m"), holding("sleep"))
	paused.Signal(syscall.SIGSTOP)
	intervalsAt(t, at, w.Path("m"), ended("sleep", history.Lost))
	paused.Signal(syscall.SIGKILL)
}

func TestThePageCountsWhatComesToAQueueAndGoes(t *testing.T) {
	w := cmdtest.World(t)
	jobs := cmdtest.Must(queue.New(cmdtest.Open(t, w), w.Path("q")))
	require.NoError(t, jobs.Put(t.Context(), []byte("one")))
	at := cmdtest.On(t, w, "ui", "--every", "20ms", "--always", cmdtest.Below(w)).Line()
	last := func() [9]float64 {
		var last [9]float64
		for _, p := range sightAt(t, at).Points {
			if strings.HasSuffix(p.Path, "/q") && p.At[len(p.At)-1][0] > last[0] {
				last = p.At[len(p.At)-1]
			}
		}
		return last
	}
	zktest.Eventually(t, cmdtest.Soon, func() bool { return last()[3] == 1 }, "one item")
	first := last()
	for range 5 {
		require.NoError(t, jobs.Put(t.Context(), []byte("more")))
	}
	for range 3 {
		require.NoError(t, cmdtest.Must(jobs.Receive(t.Context())).Ack(t.Context()))
	}
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		now := last()
		return now[3] == 3 && now[7]-first[7] == 5 && now[8]-first[8] == 3
	}, "five came, three went, three are there")
}
