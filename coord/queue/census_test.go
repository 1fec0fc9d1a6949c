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

// Whether the claim was made is not known when the session ends, and does not
// matter to who waits for an item.
func TestAReceiveWhoseSessionEndsWhileItClaimsGoesOn(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.open())
		put(b.T, q, "x")
		claim := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/taken/", Times: 1}, zkembed.DelayReply(time.Second))
		got := make(chan error, 1)
		var item *queue.Item
		go func() {
			var err error
			item, err = q.Receive(b.Context())
			got <- err
		}()
		<-claim.Struck()
		time.Sleep(time.Second / 2)
		b.srv.Restart(2 * T)
		require.NoError(b, <-got)
		require.Equal(b, "x", string(item.Data))
		ack(b.T, item)
	})
}
