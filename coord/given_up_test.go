package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

// The servers hear the client and keep its session, but it does not hear them:
// after T it gives the session up and makes another, while the former one's
// node is still there. A recipe that counts contenders must not count it twice.
func TestAContenderWhoseSessionWasGivenUpIsNotThereTwice(t *testing.T) {
	for name, joined := range map[string]bool{"its node known": true, "the reply to its create lost": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other := b.Open(), b.Open()
				h := b.acquire(other)
				waiting := make(<-chan granted)
				if joined {
					waiting = b.acquireLater(c, mutex)
					synctest.Wait()
				}
				former := c.SessionID()
				deaf := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToClient, Sessions: []int64{former}})
				if !joined {
					waiting = b.acquireLater(c, mutex)
				}
				for id := former; id == former || id == 0 || len(b.nodesOf(id)) == 0; id = c.SessionID() {
					time.Sleep(time.Millisecond)
				}
				require.Contains(t, b.sessions(), former, "the server has ended it before")
				require.Empty(t, b.nodesOf(former))
				deaf.Heal()
				require.NoError(t, h.Release(b.Context()))
				next := <-waiting
				require.NoError(t, next.err)
				require.NoError(t, next.hold.Release(b.Context()))
				b.Close(c, other)
			})
		})
	}
}

// sessions are those that the server keeps.
func (b bubble) sessions() (ids []int64) {
	for _, s := range b.Server.Sessions() {
		ids = append(ids, s.ID)
	}
	return ids
}
