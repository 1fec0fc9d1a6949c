package virtual_test

import (
	"sync"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/virtual"
)

// Timers that have run out by the time that they are looked at: with the race
// detector and more than one processor this crashes most of the times.
func TestManyTimersOfABubbleRunOutAtOnce(t *testing.T) {
	for range 600 {
		virtual.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range 50 {
						timer := time.NewTimer(time.Second)
						time.Sleep(time.Second)
						select {
						case <-timer.C:
						default:
							t.Error("the time has not come")
						}
					}
				})
			}
			all.Wait()
		})
	}
}
