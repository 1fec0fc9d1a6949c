//go:build race

package virtual

import (
	"runtime"
	"sync"
)

// Race: the race detector is on, which makes stacks and the heap larger.
const Race = true

var (
	mu         sync.Mutex
	running    int // bubbles
	processors int // before the first of them
)

// onOneProcessor has Go code run on one processor until the function that it
// returns is called. The race detector crashes (in __tsan::SlotLock, say) when
// two processors run timers of one bubble at the same time: the timers of a
// bubble share one context of the detector. Up to Go 1.26.8 at least a timer
// whose time has come runs on the goroutine that sets or polls it
// (runtime.(*timer).modify, maybeRunChan), in parallel with the bubble's own;
// see https://go.dev/issue/78156. Races are found all the same: the detector
// compares the order of events, not their simultaneity.
func onOneProcessor() (restore func()) {
	mu.Lock()
	defer mu.Unlock()
	running++
	if running == 1 {
		processors = runtime.GOMAXPROCS(1)
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		running--
		if running == 0 {
			runtime.GOMAXPROCS(processors)
		}
	}
}
