package value_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func of(t testing.TB, c *coord.Client, path string) *value.Value {
	t.Helper()
	v, err := value.New(c, path)
	require.NoError(t, err)
	return v
}

// open returns the value for a client of its own.
func open(t *testing.T, w *zktest.World) *value.Value {
	t.Helper()
	return of(t, coordtest.Open(t, w.ConnectString()), w.Path("config/value"))
}

func get(t testing.TB, v *value.Value) value.State {
	t.Helper()
	now, err := v.Get(coordtest.Limited(t))
	require.NoError(t, err)
	return now
}

// adding appends a word.
func adding(word string) func(value.State) ([]byte, error) {
	return func(now value.State) ([]byte, error) { return append(bytes.Clone(now.Data), word+" "...), nil }
}

func TestNoChangeIsLost(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var changing sync.WaitGroup
		for i := range 3 {
			v := open(t, w)
			for k := range 2 {
				changing.Go(func() {
					for n := range 5 {
						if err := v.Change(coordtest.Limited(t), adding(fmt.Sprint(i, "-", k, "-", n))); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		changing.Wait()
		words := strings.Fields(string(get(t, open(t, w)).Data))
		require.Len(t, words, 3*2*5)
		for i, word := range words {
			require.NotContains(t, words[:i], word)
		}
	})
}

func TestAValueIsSetOnlyIfItIsTheOneThatWasRead(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		v, other := open(t, w), open(t, w)
		none := get(t, v)
		require.Zero(t, none)
		require.NoError(t, v.TrySet(coordtest.Limited(t), none, []byte("one")))
		require.ErrorIs(t, other.TrySet(coordtest.Limited(t), none, []byte("two")), coord.ErrBadVersion)
		first := get(t, other)
		require.Equal(t, "one", string(first.Data))
		require.NoError(t, other.TrySet(coordtest.Limited(t), first, []byte("two")))
		require.ErrorIs(t, v.TrySet(coordtest.Limited(t), first, []byte("three")), coord.ErrBadVersion)
		// Versions of nodes begin anew.
		c := coordtest.Open(t, w.ConnectString())
		require.NoError(t, c.Delete(coordtest.Limited(t), w.Path("config/value"), -1))
		require.NoError(t, v.Set(coordtest.Limited(t), []byte("one")))
		require.ErrorIs(t, v.TrySet(coordtest.Limited(t), first, nil), coord.ErrBadVersion)
		require.Equal(t, "one", string(get(t, v).Data))
	})
}

var errNoLuck = errors.New("no luck")

func TestAChangeThatIsGivenUpWritesNothing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		v := open(t, w)
		require.NoError(t, v.Set(coordtest.Limited(t), []byte("one")))
		before := get(t, v)
		err := v.Change(coordtest.Limited(t), func(value.State) ([]byte, error) { return []byte("two"), errNoLuck })
		require.Equal(t, errNoLuck, err)
		require.ErrorIs(t, v.Set(coordtest.Limited(t), make([]byte, 2<<20)), coord.ErrTooLarge)
		require.Equal(t, before, get(t, v))
	})
}

func TestAllFollowTheValue(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		v := open(t, w)
		var seen []string
		for now, err := range open(t, w).Observe(coordtest.Limited(t)) {
			require.NoError(t, err)
			seen = append(seen, fmt.Sprintf("%s %v", now.Data, now.Version > 0 && !now.Modified.IsZero()))
			switch len(seen) {
			case 1:
				require.NoError(t, v.Set(coordtest.Limited(t), []byte("one")))
				continue
			case 2:
				require.NoError(t, v.Set(coordtest.Limited(t), nil))
				continue
			}
			break
		}
		require.Equal(t, []string{" false", "one true", " true"}, seen)
	})
}

// A decision is made anew of what another has written meanwhile, also where the
// first was made of what this process watches.
func TestAChangeIsMadeOfTheValueThatItReplaces(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		v, other := of(t, c, w.Path("value")), of(t, c, w.Path("value"))
		require.NoError(t, v.Change(coordtest.Limited(t), adding("a")))
		for _, err := range v.Observe(coordtest.Limited(t)) { // leaves a watch
			require.NoError(t, err)
			break
		}
		calls := 0
		require.NoError(t, v.Change(coordtest.Limited(t), func(now value.State) ([]byte, error) {
			calls++
			if calls == 1 {
				require.NoError(t, other.Change(coordtest.Limited(t), adding("b")))
			}
			return adding("c")(now)
		}))
		require.Equal(t, "a b c ", string(get(t, v).Data))
		require.Equal(t, 2, calls)
	})
}

func TestAChangeWhoseRepliesAreLostIsMadeOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		v := of(b, b.Open(), "/value")
		require.NoError(b, v.Change(b.Context(), adding("a")))
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 2}, zkembed.LoseReply())
		require.NoError(b, v.Change(b.Context(), adding("b")))
		require.Equal(b, 2, lost.Fired())
		require.Equal(b, "a b ", string(get(b, v).Data))
	})
}

// The reply is lost, and the session over before it can be found out.
func TestAChangeThatCannotBeFoundOutIsNotMadeAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		v, other := of(b, c, "/value"), of(b, b.Open(), "/value")
		require.NoError(b, v.Change(b.Context(), adding("a")))
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/value"}, zkembed.LoseReply())
		session := c.Info().SessionID
		changed := coordtest.Go(func() error { return v.Change(b.Context(), adding("b")) })
		zktest.Eventually(b, coordtest.Soon, func() bool { return string(get(b, other).Data) == "a b " }, "the change")
		require.NoError(b, b.Server.ExpireSession(session))
		lost.Remove()
		require.ErrorIs(b, <-changed, coord.ErrUnconfirmed)
		require.Equal(b, "a b ", string(get(b, other).Data))
	})
}

// The servers remove containers that have become empty.
func TestAValueOutlivesItsGuards(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		require.NoError(b, of(b, b.Open(), "/config/value").Set(b.Context(), []byte("one")))
		time.Sleep(2 * coordtest.T)
		require.Positive(b, b.Server.Reap(), "the guards' directory")
		require.Equal(b, "one", string(get(b, of(b, b.Open(), "/config/value")).Data))
	})
}

// What was decided was about a value that this process watches, and that may
// have changed since.
func TestAVerdictOnAValueThatMayHaveChangedIsNoAnswer(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		v := of(b, c, "/value")
		require.NoError(b, v.Set(b.Context(), []byte("one")))
		for _, err := range v.Observe(b.Context()) { // leaves a watch
			require.NoError(b, err)
			break
		}
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}})
		err := v.TrySet(b.Within(time.Second), value.State{}, []byte("two"))
		cut.Heal()
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NotErrorIs(b, err, coord.ErrBadVersion)
	})
}

// The server that is read still has what is to be set, and that is old.
func TestAValueIsSetThoughAServerThatLagsShowsItSo(t *testing.T) {
	coordtest.InBubbles(t, map[string]func(ctx context.Context, v *value.Value) error{
		"set": func(ctx context.Context, v *value.Value) error { return v.Set(ctx, []byte("one")) },
		"changed": func(ctx context.Context, v *value.Value) error {
			return v.Change(ctx, func(value.State) ([]byte, error) { return []byte("one"), nil })
		},
	}, func(b coordtest.Bubble, set func(ctx context.Context, v *value.Value) error) {
		c, other := b.Open(), b.Open()
		v := of(b, c, "/value")
		require.NoError(b, v.Set(b.Context(), []byte("one")))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, of(b, other, "/value").Set(b.Context(), []byte("two")))
		require.Equal(b, "one", string(get(b, v).Data), "the server does not lag")
		require.NoError(b, set(b.Context(), v))
		require.Equal(b, "one", string(get(b, of(b, other, "/value")).Data))
	})
}

func TestATrySetIsRefusedOnlyByTheLatestValue(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		v, other := of(b, c, "/value"), of(b, b.Open(), "/value")
		require.NoError(b, v.Set(b.Context(), []byte("one")))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, other.Set(b.Context(), []byte("two")))
		require.NoError(b, v.TrySet(b.Context(), get(b, other), []byte("three")))
	})
}
