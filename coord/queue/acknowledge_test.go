package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// buried buries items, and returns the names of their letters.
func buried(t testing.TB, q *queue.Queue, items ...string) (names []string) {
	t.Helper()
	for _, item := range items {
		put(t, q, item)
		require.NoError(t, receive(t, q).Bury(t.Context(), "bad"))
	}
	for _, l := range letters(t, q, len(items)) {
		names = append(names, l.Name)
	}
	return names
}

func acknowledge(t testing.TB, q *queue.Queue, letters ...string) {
	t.Helper()
	n, err := q.Acknowledge(t.Context(), letters...)
	require.NoError(t, err)
	require.Equal(t, len(letters), n)
}

// seen requires that these letters are acknowledged, and no others.
func seen(t testing.TB, q *queue.Queue, letters ...string) {
	t.Helper()
	names, err := q.Acknowledged(t.Context())
	require.NoError(t, err)
	require.Equal(t, letters, names)
	all, err := q.DeadLetters(t.Context())
	require.NoError(t, err)
	for _, l := range all {
		if !l.Acknowledged.IsZero() {
			require.NotEmpty(t, l.AcknowledgedBy)
			require.Contains(t, letters, l.Name)
			letters = letters[1:]
		}
	}
	require.Empty(t, letters)
}

func TestALetterThatIsAcknowledgedStaysAndGoesWithAllThatIsItsOwn(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		q, dead := newQueue(t, c, w.Path("q")), newQueue(t, c, w.Path("q/dead"))
		names := buried(t, q, "a", "b", "c", "d")
		seen(t, q)
		acknowledge(t, q, names[0], names[2])
		acknowledge(t, q, names[1], names[2])
		seen(t, q, names[:3]...)

		requeue(t, q, names[0])
		serve(t, q, "a")
		require.NoError(t, dead.Drop(t.Context(), names[2]))
		seen(t, q, names[1])
		require.Len(t, children(t, c, w.Path("q/dead/acknowledged")), 1, "nothing is left behind")
		require.NoError(t, dead.Drop(t.Context(), names[3]))
		item := receive(t, dead)
		require.Equal(t, "b", string(item.Data))
		ack(t, item)
		seen(t, q)
		require.NoError(t, dead.Close(t.Context()))
		require.NoError(t, q.Close(t.Context()))
		zktest.Eventually(t, coordtest.Soon, func() bool { return q.Remove(t.Context()) == nil }, "consumers are gone")
		_, there, err := c.Exists(t.Context(), w.Path("q"))
		require.NoError(t, err)
		require.False(t, there)
	})
}

func TestALetterThatIsNotThereIsNotAcknowledged(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		require.ErrorIs(b, coordtest.Err(q.Acknowledge(b.Context(), "entry-100-0000000000")), coord.ErrNoNode,
			"no letter ever was")
		names := buried(b, q, "a", "b")
		n, err := q.Acknowledge(b.Context(), names[1], "entry-100-0000000099", names[0])
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.Equal(b, 1, n)
		require.ErrorIs(b, coordtest.Err(q.Acknowledge(b.Context(), "--help")), coord.ErrInvalid)
		require.Len(b, children(b, c, "/q/dead/acknowledged"), 1)
		acknowledge(b, q)
	})
}

// The names of letters come again when their directory is made anew.
func TestAnAcknowledgementCountsForNoLetterOfTheSameName(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		first := buried(b, q, "a")
		acknowledge(b, q, first...)
		ack(b, receive(b, newQueue(b, c, "/q/dead"))) // as every version and Kazoo do
		require.Len(b, children(b, c, "/q/dead/acknowledged"), 1)
		require.NoError(b, c.Delete(b.Context(), "/q/dead/entries", -1)) // by hand

		put(b, q, "b")
		item := receive(b, q)
		require.NoError(b, item.Bury(b.Context(), "bad"))
		require.Equal(b, first[0], letters(b, q, 1)[0].Name)
		seen(b, q)
		require.Empty(b, children(b, c, "/q/dead/acknowledged"), "swept along with the story")
		acknowledge(b, q, first...)
		seen(b, q, first...)
	})
}

func TestALostReplyAcknowledgesALetterAllTheSame(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			_, q := b.consumer()
			names := buried(b, q, "a")
			lost := b.Server.Inject(zkembed.Match{
				PathPrefix: "/q/dead/acknowledged/", Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1,
			}, fault)
			acknowledge(b, q, names...)
			require.Equal(b, 1, lost.Fired())
			seen(b, q, names...)
		})
	}
}

// The letter goes while it is acknowledged, or is acknowledged, or swept, while
// it goes.
func TestALetterThatGoesMeanwhileLeavesNothingBehind(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		elsewhere, other := b.consumer() // over a connection of its own
		names := buried(b, q, "a", "b", "c", "d")
		acknowledge(b, q, names[3])

		late := b.Server.Inject(next(c, "/q/dead/acknowledged/"), zkembed.Delay(time.Second))
		failed := coordtest.Go(func() error { return coordtest.Err(q.Acknowledge(b.Context(), names[0])) })
		<-late.Struck()
		requeue(b, other, names[0])
		require.ErrorIs(b, <-failed, coord.ErrNoNode)

		late = b.Server.Inject(next(c, "/q/dead/taken/"), zkembed.Delay(time.Second))
		moved := coordtest.Go(func() error { return coordtest.Err(q.Requeue(b.Context(), names[1])) })
		<-late.Struck()
		acknowledge(b, other, names[1])
		require.NoError(b, <-moved)

		acknowledge(b, q, names[2])
		late = b.Server.Inject(next(c, "/q/dead/taken/"), zkembed.Delay(time.Second))
		moved = coordtest.Go(func() error { return coordtest.Err(q.Requeue(b.Context(), names[2])) })
		<-late.Struck()
		for _, node := range children(b, elsewhere, "/q/dead/acknowledged") {
			require.NoError(b, elsewhere.Delete(b.Context(), "/q/dead/acknowledged/"+node, -1))
		}
		require.NoError(b, <-moved)
		require.Empty(b, children(b, c, "/q/dead/acknowledged"))
		letters(b, q, 1)
		serve(b, q, "a", "b", "c")
	})
}

// Other versions list what stands below the queue of the dead letters.
func TestWhatAcknowledgesALetterIsNoContender(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		acknowledge(b, q, buried(b, q, "a")...)
		require.Empty(b, inspect.Among(children(b, c, "/q/dead/acknowledged")))
	})
}
