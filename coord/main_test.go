package coord_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const (
	T    = coordtest.T
	tick = coordtest.Tick
)

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) }, opts...)
}

var mutex = coord.Spec{Line: coord.Line{Dir: "/lock"}, Kind: "lock", Exclusive: true}

func first(ahead []coord.Contender) ([]int, bool) {
	if len(ahead) == 0 {
		return nil, true
	}
	return []int{len(ahead) - 1}, false
}

// acquire acquires the mutex, or what is specified.
func (b bubble) acquire(c *coord.Client, spec ...coord.Spec) *coord.Hold {
	b.Helper()
	h, err := c.Acquire(b.Context(), append(spec, mutex)[0], first)
	require.NoError(b, err)
	return h
}

// owned tells how many nodes belong to a session.
func (b bubble) owned(session int64) (n int) {
	for _, node := range b.Server.Nodes() {
		if node.Stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

func ended(h *coord.Hold) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}
