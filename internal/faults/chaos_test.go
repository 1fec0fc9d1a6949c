package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// The script that the peers were measured with: eight workers that hold for
// 5 to 45 ms, one server, and 110 faults in 80 seconds (or as many as fit into
// a shorter time). Kazoo's lock was granted 947 times, with gaps of up to 5.1 s.
// It is measured, so no other scenario runs beside it.
func TestChaos80(t *testing.T) {
	s := scene{t, zktest.NewPrivate(t, zktest.Real)}
	random := s.random()
	clients := make([]*coord.Client, 8)
	pauses := make([]*rand.Rand, len(clients))
	for i := range clients {
		clients[i] = s.behind()
		pauses[i] = rand.New(rand.NewPCG(random.Uint64(), 0))
	}
	c := s.contest(clients, func(worker int) time.Duration {
		return 5*time.Millisecond + time.Duration(pauses[worker].Int64N(int64(40*time.Millisecond)))
	})
	const full = 80 * time.Second
	lasts := long(full, full/8)
	faults := s.script(random)
	faults = faults[:len(faults)*int(lasts)/int(full)]
	begun := time.Now()
	kinds := map[string]int{}
	var timeline []string
	for i, f := range faults {
		at := begun.Add(lasts * time.Duration(i+1) / time.Duration(len(faults)+1))
		s.waitUntil(at)
		from := time.Now()
		f.do()
		kinds[f.kind]++
		timeline = append(timeline, fmt.Sprintf("%v-%v %s", from.Sub(begun).Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), f.kind))
	}
	s.waitUntil(begun.Add(lasts))
	s.w.Proxy().Heal()
	// Nobody is stuck: each worker is granted the lock again.
	last := time.Now()
	zktest.Eventually(s, 15*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		granted := map[int]bool{}
		for _, g := range slices.Backward(c.grants) {
			if g.from.Before(last) {
				break
			}
			granted[g.worker] = true
		}
		return len(granted) == len(clients)
	}, "a worker is stuck")
	grants := c.stop()
	within := 0
	for _, g := range grants {
		if g.from.Sub(begun) < lasts {
			within++
		}
	}
	s.Logf("%d grants in %v, longest gap %v, faults %v, %+v", within, lasts, gap(grants), kinds, s.w.Proxy().Stats())
	for i, g := range grants[1:] {
		if g.from.Sub(grants[i].to) == gap(grants) {
			s.Logf("the longest gap was from %v to %v", grants[i].to.Sub(begun), g.from.Sub(begun))
		}
	}
	s.Log(strings.Join(timeline, ", "))
	s.awaitNodes(0)
	if lasts < full {
		require.Greater(s, within, len(faults))
		return
	}
	require.Len(s, faults, 110)
	require.GreaterOrEqual(s, within, 947)
	require.LessOrEqual(s, gap(grants), 5100*time.Millisecond)
}

type scripted struct {
	kind string
	do   func()
}

// script returns the faults in random order. Each has at most as long as there
// is until the next.
func (s scene) script(random *rand.Rand) (faults []scripted) {
	p := s.w.Proxy()
	add := func(n int, kind string, do func()) {
		for range n {
			faults = append(faults, scripted{kind, do})
		}
	}
	condition := func(begin func()) func() {
		return func() {
			begin()
			s.waitUntil(time.Now().Add(100*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond)))))
			p.Heal()
		}
	}
	lose := func(on []int32, action proxy.Action) func() {
		return func() { p.Inject(proxy.Fault{On: on, Path: s.dir(), Do: action}) }
	}
	oneWay := []proxy.Direction{proxy.ToServer, proxy.ToClient}
	add(28, "cut", func() { p.CutAll() })
	add(17, "black hole", condition(func() { p.Blackhole(proxy.Both) }))
	add(13, "one way", condition(func() { p.Blackhole(oneWay[random.IntN(2)]) }))
	add(13, "lost create", lose(proxy.Creates, proxy.CutOnReply))
	add(11, "lost delete", lose([]int32{proxy.OpDelete}, proxy.CutOnReply))
	add(19, "lost list", lose(proxy.Lists, proxy.CutOnReply))
	add(9, "kill -9", func() {
		require.NoError(s, s.w.Real().Kill())
		require.NoError(s, s.w.Real().Restart())
	})
	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults
}

func (s scene) waitUntil(at time.Time) {
	s.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	<-timer.C
}
