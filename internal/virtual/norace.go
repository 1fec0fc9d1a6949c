//go:build !race

package virtual

// Race: the race detector is on, which makes stacks and the heap larger.
const Race = false

func onOneProcessor() (restore func()) { return func() {} }
