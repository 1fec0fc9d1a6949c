package doublebarrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestALeaveWithADeadContextGivesUpThePlace(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		dead, cancel := context.WithCancel(b.Context())
		cancel()
		for range 10 {
			members := round(t, bs...)
			require.ErrorIs(t, members[0].Leave(dead), context.Canceled)
			require.ErrorIs(t, members[0].Leave(b.Context()), context.Canceled, "the answer stays")
			require.ErrorIs(t, members[0].Err(), coord.ErrReleased)
			require.ErrorIs(t, members[1].Leave(b.Context()), doublebarrier.ErrIncomplete)
		}
		b.Close(cs...)
	})
}

// The client has given its session up, the server has not: it was down, and the
// request to close the session is late.
func TestAMemberThatComesAgainIsNotCountedBesideItsFormerSelf(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		first := b.enter(bs[0])[0]
		before := cs[0].SessionID()
		closing := zkembed.Match{Session: before, Ops: []zkembed.Op{zkembed.OpCloseSession}}
		late := b.Server.Inject(closing, zkembed.Delay(2*lasts))
		b.Server.Restart(2 * time.Minute)
		time.Sleep(lasts)
		require.NotEqual(t, before, cs[0].SessionID())
		pending(t, first, "entered with nobody but its former self")
		require.NotZero(t, late.Fired())
		b.leaveAll(nil, first, b.enter(bs[1])[0])
		b.Close(cs...)
	})
}
