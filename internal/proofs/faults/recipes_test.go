package faults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func init() { zktest.RegisterChild("consumer", consumerMain) }

// consumerMain receives one item, prints it, and acknowledges it when it is
// told to.
func consumerMain(args []string) {
	ctx := context.Background()
	c, err := coord.Open(ctx, args[0], coord.WithSessionTimeout(T), coord.WithTick(tick))
	exitOn(err)
	q, err := queue.New(c, args[1])
	exitOn(err)
	item, err := q.Receive(ctx)
	exitOn(err)
	fmt.Println(string(item.Data))
	if in := bufio.NewScanner(os.Stdin); in.Scan() {
		fmt.Println(item.Ack(ctx))
	}
}

func (s scene) queue(c *coord.Client) *queue.Queue {
	s.Helper()
	q, err := queue.New(c, s.w.Path("queue"))
	require.NoError(s, err)
	return q
}

func TestF45AConsumerIsKilledBetweenReceiveAndAck(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.client(coord.WithSessionTimeout(10 * T)))
		require.NoError(s, q.Put(s.Context(), []byte("one")))
		consumer := zktest.Child(s, "consumer", s.w.ConnectString(), s.w.Path("queue"))
		require.Equal(s, "one", consumer.Line(patience))
		consumer.Kill()
		item, err := q.Receive(s.Context())
		require.NoError(s, err)
		require.Equal(s, "one", string(item.Data))
		require.Equal(s, 2, item.Deliveries)
		require.NoError(s, item.Ack(s.Context()))
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		require.Zero(s, n)
		require.NoError(s, q.Close(s.Context()))
	})
}

// A consumer whose session expired while it stood still cannot remove the item
// of another.
func TestF45AConsumerStoppedForTwiceTheTimeoutCannotAck(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.client())
		require.NoError(s, q.Put(s.Context(), []byte("one")))
		consumer := zktest.Child(s, "consumer", s.w.ConnectString(), s.w.Path("queue"))
		require.Equal(s, "one", consumer.Line(patience))
		require.NoError(s, consumer.Stop())
		item, err := q.Receive(s.Context())
		require.NoError(s, err)
		consumer.Send("ack")
		require.NoError(s, consumer.Continue())
		require.Contains(s, consumer.Line(patience), queue.ErrStale.Error())
		require.NoError(s, item.Err())
		require.NoError(s, item.Ack(s.Context()))
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		require.Zero(s, n)
		require.NoError(s, q.Close(s.Context()))
	})
}

func TestF45TheReplyToAPutIsLost(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.behind())
		require.NoError(s, q.Put(s.Context(), []byte("first")))
		for _, loss := range []proxy.Action{proxy.CutOnReply, proxy.DropAndCut} {
			lost := s.w.Proxy().Inject(proxy.Fault{On: append([]int32{proxy.OpMulti}, proxy.Creates...), Path: s.w.Path("queue"), Do: loss})
			require.NoError(s, q.Put(s.Context(), []byte("second")))
			require.Equal(s, 1, lost.Fired())
		}
		for _, want := range []string{"first", "second", "second"} {
			data, err := q.Take(s.Context())
			require.NoError(s, err)
			require.Equal(s, want, string(data))
		}
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		require.Zero(s, n, "an item was doubled")
		require.NoError(s, q.Close(s.Context()))
	})
}

// Both lose their session: one comes again, the other is missing in the round.
func TestF45AMemberOfADoubleBarrierDiesBeforeAndAnotherInside(t *testing.T) {
	each(t, func(s scene) {
		const n = 3
		type entry struct {
			*doublebarrier.Member
			client *coord.Client
		}
		entered := make(chan entry, n)
		enter := func(c *coord.Client) {
			b, err := doublebarrier.New(c, s.w.Path("double"), n)
			require.NoError(s, err)
			go func() {
				m, err := b.Enter(context.Background())
				if err != nil {
					s.Errorf("enter: %v", err)
				}
				entered <- entry{m, c}
			}()
		}
		clients := s.clients(n)
		enter(clients[0])
		enter(clients[1])
		nodes := func() int { names, _, _ := s.admin().Children(s.w.Path("double")); return len(names) }
		zktest.Eventually(s, patience, func() bool { return nodes() >= 2 }, "no member enters")
		s.w.ExpireSession(clients[1].SessionID()) // it comes again
		require.Empty(s, entered)
		enter(clients[2])
		verdicts := make(chan error, n)
		var dead entry
		for i := range n {
			m := zktest.Receive(s, patience, entered, "the round does not begin")
			require.NotNil(s, m.Member)
			if i == 0 {
				dead = m
				s.w.ExpireSession(m.client.SessionID())
				continue
			}
			go func() { verdicts <- m.Leave(context.Background()) }()
		}
		for range n - 1 {
			var incomplete *doublebarrier.IncompleteError
			require.ErrorAs(s, zktest.Receive(s, patience, verdicts, "a member cannot leave"), &incomplete)
			require.Equal(s, []int{dead.Index()}, incomplete.Missing)
		}
		require.ErrorIs(s, dead.Leave(context.Background()), coord.ErrLost)
	})
}

func TestF45ABarrierIsRemovedWhileAWaiterIsCutOff(t *testing.T) {
	each(t, func(s scene) {
		near, err := barrier.New(s.client(), s.w.Path("barrier"))
		require.NoError(s, err)
		far, err := barrier.New(s.behind(), s.w.Path("barrier"))
		require.NoError(s, err)
		require.NoError(s, near.Set(s.Context()))
		watching := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpGetData, proxy.OpExists}, Path: s.w.Path("barrier"), Do: proxy.WatchReply})
		through := make(chan error, 1)
		go func() { through <- far.Wait(context.Background()) }()
		zktest.Receive(s, patience, watching.First(), "the waiter does not watch")
		s.w.Proxy().Refuse()
		require.Positive(s, s.w.Proxy().CutAll())
		require.NoError(s, near.Remove(s.Context()))
		zktest.Eventually(s, patience, func() bool { return s.w.Proxy().Stats().Refused > 0 }, "the waiter does not connect")
		require.Empty(s, through)
		healed := time.Now()
		s.w.Proxy().Heal()
		require.NoError(s, zktest.Receive(s, patience, through, "the waiter is stuck"))
		s.onTime("through", healed, progress, time.Now())
	})
}

func TestF45ARevocationReachesAHolderThatWasCutOff(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 10 * T // that a busy machine needs to cut it off and to ask
		s.w.SetTimeout(timeout)
		h, other := s.acquire(s.behind(coord.WithSessionTimeout(timeout))), s.client()
		revoked := h.Revoked()
		s.w.Proxy().Refuse()
		require.Equal(s, 1, s.w.Proxy().CutAll())
		require.NoError(s, inspect.Revoke(s.Context(), other, h.Node()))
		select {
		case <-revoked:
			s.Fatal("the holder is not cut off")
		default:
		}
		healed := time.Now()
		s.w.Proxy().Heal()
		zktest.Receive(s, patience, revoked, "the request does not arrive")
		s.onTime("asked", healed, progress, time.Now())
		require.NoError(s, h.Err())
		s.release(h)
	})
}
