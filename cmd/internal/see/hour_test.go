//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"flag"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

var hourLooks = flag.Int("looks", 100, "in how many looks TestAnHourOfLooks looks")

// deaf is a listener to which nobody connects.
type deaf struct {
	net.Listener
	closed chan struct{}
}

func (d deaf) Accept() (net.Conn, error) {
	<-d.closed
	return nil, net.ErrClosed
}

func (d deaf) Close() error {
	close(d.closed)
	return nil
}

func (d deaf) Addr() net.Addr { return &net.TCPAddr{} }

// shopAt is what a look finds: so many locks, of which one in five has another
// holder each time, and now and then none.
func shopAt(turns, paths int) *look.Survey {
	s := &look.Survey{Path: "/", Extent: look.Extent{Looked: paths, Hidden: []string{}}}
	for n := range paths {
		turn := (turns + n) / 5
		r := look.Report{Path: fmt.Sprintf("/many/l%04d", n), Kind: "lock", Dialect: string(coord.Curator), Exists: true}
		for i := range 3 {
			c := look.Contender{
				Position: i + 1, Holds: i == 0, State: "waits", Kind: "lock", Owner: fmt.Sprint("owner ", (turn+i)%50),
				Session: fmt.Sprintf("0x%x", (turn+i)%50),
				Node:    fmt.Sprintf("%s/_c_%d-lock-%010d", r.Path, turn+i, turn+i), Token: int64(turn + i + 1), Made: time.Now(),
			}
			r.Contenders = append(r.Contenders, c)
		}
		if turn%7 == 3 {
			r.Contenders = nil
		}
		s.Recipes = append(s.Recipes, r)
	}
	return s
}

// heapMiB is what is used for longer than a call. A sync.Pool, such as the JSON
// encoder's, keeps its buffers through the first collection.
func heapMiB() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func processorSeconds() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

// What a page remembers grows no larger than it is after a few minutes.
func TestAnHourOfLooksAtAThousandPathsTakesBoundedMemory(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		every := time.Hour / time.Duration(*hourLooks)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRecorder(nil, every)
		looks, early, began := 0, *hourLooks*6/10, processorSeconds()
		var first, last float64
		require.NoError(t, ui.Serve(ctx, deaf{closed: make(chan struct{})}, ui.Config{
			Every: every, Always: true, Within: time.Minute,
			Look: func(context.Context) (any, error) {
				looks++
				switch looks {
				case early:
					first = heapMiB()
				case *hourLooks:
					last = heapMiB()
					cancel()
				}
				found, at := shopAt(looks, 1000), time.Now()
				seen := sightOf(found, at)
				seen.past = r.see(found, nil, look.NewAddressBook(nil), at)
				return seen, nil
			},
		}))
		t.Logf(
			"%d looks at 1,000 paths in an hour: %.0f MiB of heap after %d, %.0f at the end, %.0f processor seconds; %d intervals, %d dropped",
			looks, first, early, last, processorSeconds()-began, len(r.history.Intervals()), r.history.Dropped())
		require.Greater(t, r.history.Dropped(), 0, "there is too much to remember")
		require.Less(t, last, 1.25*first, "it stays as it is")
	})
}
