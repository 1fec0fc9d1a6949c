package doublebarrier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoMemberHangsAndNoRoundsMixWhileMembersDieAtRandom(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				w := (&workers{n: n, rounds: 50, pace: 100 * time.Millisecond}).in(b)
				// So that about every round loses a member, whatever n is.
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = max(1, 200/n)
				}
				w.run(n+5, 1)
				w.check(t, n)
				t.Log(w.struck)
				require.Greater(t, w.struck[diesInside]+w.struck[diesWaiting]+w.struck[diesLeaving], 10)
				require.GreaterOrEqual(t, len(w.history.rounds), 45, "rounds of which a member lived to tell")
			})
		})
	}
}
