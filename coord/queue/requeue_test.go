package queue_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func requeue(t testing.TB, q *queue.Queue, letters ...string) {
	t.Helper()
	n, err := q.Requeue(t.Context(), letters...)
	require.NoError(t, err)
	require.Equal(t, len(letters), n)
}

func TestADeadLetterIsPutBackAsItWas(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		q := newQueue(t, c, w.Path("q"))
		for _, data := range []string{
			"", "--help", "\x00", "a\x00b\xff\n\n", string(bytes.Repeat([]byte("x"), queue.MaxSize)),
		} {
			require.NoError(t, q.Put(t.Context(), []byte(data), queue.Priority(7)))
			require.NoError(t, receive(t, q).Bury(t.Context(), "bad"))
			put(t, q, "other")
			letters, err := q.DeadLetters(t.Context())
			require.NoError(t, err)
			require.Len(t, letters, 1)
			requeue(t, q, letters[0].Name)
			letters, err = q.DeadLetters(t.Context())
			require.NoError(t, err)
			require.Empty(t, letters)
			require.Empty(t, children(t, c, w.Path("q/dead/records")))

			item := receive(t, q)
			require.Equal(t, data, string(item.Data))
			require.Equal(t, []int{7, 1}, []int{item.Priority, item.Deliveries})
			ack(t, item)
			serve(t, q, "other")
		}
	})
}

func TestALetterThatIsGoneOrInSomebodysHandsIsNotPutBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a")
		require.NoError(b, receive(b, q).Bury(b.Context(), "bad"))
		letter, dead := letters(b, q, 1)[0].Name, newQueue(b, c, "/q/dead")
		held := receive(b, dead)
		require.ErrorIs(b, coordtest.Err(q.Requeue(b.Context(), letter)), coord.ErrBusy)
		ack(b, held)
		require.ErrorIs(b, coordtest.Err(q.Requeue(b.Context(), letter)), coord.ErrNoNode)
		require.ErrorIs(b, coordtest.Err(q.Requeue(b.Context(), "--help")), coord.ErrInvalid)
		require.Zero(b, length(b, q))
	})
}

func TestALostReplyNeitherLosesNorDoublesALetterThatIsPutBack(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			c, q := b.consumer()
			put(b, q, "a")
			require.NoError(b, receive(b, q).Bury(b.Context(), "bad"))
			letter := letters(b, q, 1)[0].Name
			require.NoError(b, c.Delete(b.Context(), "/q/entries", -1)) // by hand: it is made anew
			lost := b.Server.Inject(zkembed.Match{
				PathPrefix: "/q/dead/taken/", Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1,
			}, fault)
			requeue(b, q, letter)
			require.Equal(b, 1, lost.Fired())
			letters(b, q, 0)
			serve(b, q, "a")
			require.Zero(b, length(b, q))
		})
	}
}

func TestALetterForWhichThereIsNoNumberStays(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, q := b.consumer()
		put(b, q, "a")
		require.NoError(b, receive(b, q).Bury(b.Context(), "bad"))
		require.NoError(b, b.Server.SetSequence("/q/entries", 1<<31-1))
		other := b.queue(b.Open())
		put(b, other, "b") // the counter sticks from here on
		require.ErrorIs(b, coordtest.Err(q.Requeue(b.Context(), letters(b, q, 1)[0].Name)), coord.ErrSequenceExhausted)
		letters(b, q, 1)
	})
}

func TestLettersArePutBackUpToTheFirstThatCannotBe(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, q := b.consumer()
		put(b, q, "a", "b", "c")
		var names []string
		for range 3 {
			require.NoError(b, receive(b, q).Bury(b.Context(), "bad"))
		}
		for _, l := range letters(b, q, 3) {
			names = append(names, l.Name)
		}
		n, err := q.Requeue(b.Context(), names[1], "entry-100-0000000099", names[0])
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.Equal(b, 1, n)
		requeue(b, q)
		requeue(b, q, names[0], names[2])
		serve(b, q, "b", "a", "c")
	})
}
