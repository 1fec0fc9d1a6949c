package doublebarrier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestNoMemberHangsAndNoRoundsMixWhileMembersDieAtRandom(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				w := (&workers{n: n, rounds: 50, pace: 100 * time.Millisecond}).in(b)
				// So that about every round loses somebody, whatever n is.
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = max(1, 200/n)
				}
				w.run(n+5, 1)
				w.check(t, n)
				t.Log(w.struck)
				require.Greater(t, w.struck[diesInside]+w.struck[diesWaiting]+w.struck[diesLeaving], 10)
				require.GreaterOrEqual(t, len(w.history.rounds), 45, "rounds of which somebody lived to tell")
			})
		})
	}
}

func TestOnRealServersNoMemberHangsAndNoRoundsMixEither(t *testing.T) {
	for backend, n := range map[zktest.Backend]int{zktest.Real: 8, zktest.Ensemble: 3} {
		t.Run(fmt.Sprint(backend, " ", n), func(t *testing.T) {
			world := zktest.New(t, backend)
			w := &workers{T: t, n: n, rounds: 20, pace: 40 * time.Millisecond}
			w.path = world.Path("b")
			w.open = func() *coord.Client { return open(t, world.ConnectString()) }
			w.expire = func(int64) {} // a dead process's connection is closed, and with it its session
			for f := diesWaiting; f < fates; f++ {
				w.odds[f] = 20
			}
			w.run(n+3, 1)
			w.check(t, n)
			t.Log(w.struck)
		})
	}
}
