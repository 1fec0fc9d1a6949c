package doublebarrier_test

import (
	"fmt"
	"testing"
	"time"
)

func TestNobodyHangsAndNoRoundsMixWhileMembersDieAtRandom(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				w := &workers{bubble: b, n: n, rounds: 50, pace: 100 * time.Millisecond}
				// So that about every second round loses somebody, whatever n is.
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = max(1, 200/n)
				}
				w.run(n+n/4+1, 1)
				w.check(t, n)
				t.Log(w.struck, w.last, len(w.history.rounds))
			})
		})
	}
}
