package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The reply to the creation of the consumer's node is lost, and the client gives
// up a session that the server keeps.
func TestAConsumerIsNotStoppedByTheNodeOfItsFormerSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiting := b.queue(b.open())
		producer := b.queue(b.open())
		put(b.T, producer, "x")
		ack(b.T, receive(b.T, waiting))
		lost := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/q/consumers/", Times: 1}, zkembed.DelayReply(time.Second))
		type received struct {
			item *queue.Item
			err  error
		}
		got := make(chan received, 1)
		go func() {
			item, err := waiting.Receive(b.Context())
			got <- received{item, err}
		}()
		<-lost.Struck()
		time.Sleep(time.Second / 2)
		b.srv.Restart(2 * T)
		time.Sleep(T / 4)
		require.Empty(b, got)
		put(b.T, producer, "y")
		r := <-got
		require.NoError(b, r.err)
		ack(b.T, r.item)
	})
}
