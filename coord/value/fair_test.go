package value_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// away returns a client whose round trips take so long.
func away(b coordtest.Bubble, way time.Duration) *coord.Client {
	c := b.Open()
	if way > 0 {
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(way))
	}
	return c
}

func increment(now value.State) ([]byte, error) {
	n, _ := strconv.Atoi(string(now.Data)) // 0 at first
	return strconv.AppendInt(nil, int64(n+1), 10), nil
}

// count makes changes for a while, each some time after the one before, and
// returns how many.
func count(
	b coordtest.Bubble, c *coord.Client, pause, last time.Duration, change func(context.Context, *value.Value) error,
) (n int) {
	v, ctx := of(b, c, "/v"), b.Within(last)
	for ; ; n++ {
		if err := change(ctx, v); err != nil {
			if ctx.Err() == nil {
				b.Error(err)
			}
			return n
		}
		time.Sleep(pause)
	}
}

func changes(ctx context.Context, v *value.Value) error { return v.Change(ctx, increment) }

// Alone, a client that is 60 ms away makes 80 changes in 10 s.
func TestF91AFarClientHasItsShareOfTheChanges(t *testing.T) {
	const last = 10 * time.Second
	for name, test := range map[string]struct {
		change func(context.Context, *value.Value) error
		least  int
	}{
		"change": {changes, 80 / 2 / 10},
		"set":    {func(ctx context.Context, v *value.Value) error { return v.Set(ctx, []byte("7")) }, 80},
	} {
		for _, pause := range []time.Duration{100 * time.Millisecond, 31 * time.Millisecond, 10 * time.Millisecond} {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				near, far := away(b, 700*time.Microsecond), away(b, 60*time.Millisecond)
				var one, other int
				var changing sync.WaitGroup
				changing.Go(func() { one = count(b, near, pause, last, changes) })
				changing.Go(func() { other = count(b, far, 0, last, test.change) })
				changing.Wait()
				t.Logf("%s, the near client pauses for %v: %d of the near one, %d of the far one", name, pause, one, other)
				require.Greater(b, other, test.least)
				require.Greater(b, one, int(last/pause)/2/10)
			})
		}
	}
}

func TestF91EachOfManyClientsHasATenthOfItsFairShareAtLeast(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const clients, last = 10, 20 * time.Second
		all, sum := make([]int, clients), 0
		var changing sync.WaitGroup
		for i := range clients {
			c := away(b, time.Duration(i)*60*time.Millisecond/(clients-1)+500*time.Microsecond)
			changing.Go(func() { all[i] = count(b, c, 0, last, changes) })
		}
		changing.Wait()
		for _, n := range all {
			sum += n
		}
		t.Log(all)
		for i, n := range all {
			require.Greater(b, n, sum/clients/10, "client %d of %v", i, all)
		}
		now := get(b, of(b, b.Open(), "/v"))
		made, err := strconv.Atoi(string(now.Data))
		require.NoError(b, err)
		require.GreaterOrEqual(b, made, sum)
		require.LessOrEqual(b, made, sum+clients, "the last of each may have been carried out")
	})
}

// The requests that the package's documentation names.
func TestAChangeWithoutOthersCostsTwoRequestsAndASetOne(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		v := of(b, c, "/v")
		require.NoError(b, v.Set(b.Context(), []byte("1")))
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 1, zkembed.OpMulti: 1}, coordtest.Spent(b.Server, c, func() {
			require.NoError(b, v.Change(b.Context(), increment))
		}))
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: 1}, coordtest.Spent(b.Server, c, func() {
			require.NoError(b, v.Set(b.Context(), []byte("2")))
		}))
		before := get(b, v)
		require.NoError(b, v.Set(b.Context(), []byte("2")))
		require.NotEqual(b, before.Version, get(b, v).Version, "the same again is a change, too")
	})
}

func TestWhoLosesToOthersUntilItsContextEndsIsToldSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		far, admin := away(b, 50*time.Millisecond), b.Open()
		v := of(b, far, "/v")
		require.NoError(b, v.Set(b.Context(), nil))
		ctx := b.Within(time.Second)
		done := make(chan struct{})
		go func() { // a program that knows of no turns
			defer close(done)
			for ctx.Err() == nil {
				_, _ = admin.Set(b.Context(), "/v", nil, -1)
				time.Sleep(5 * time.Millisecond)
			}
		}()
		err := v.Change(ctx, increment)
		<-done
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "other clients changed it first, ")
	})
}

func TestOneWhoHangsInItsTurnIsNotWaitedForLong(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		v := of(b, other, "/v")
		require.NoError(b, v.Set(b.Context(), []byte("1")))
		require.NoError(b, c.Create(b.Context(), "/v/turn-0000000000-HANGS", nil))
		begun := time.Now()
		require.NoError(b, v.Change(b.Context(), increment))
		require.LessOrEqual(b, time.Since(begun), coordtest.T/2+time.Second)
		require.Equal(b, "2", string(get(b, v).Data))
		err := v.Remove(b.Context())
		require.ErrorIs(b, err, coord.ErrBusy)
		require.ErrorContains(b, err, "1 waiter")
		require.NoError(b, c.Delete(b.Context(), "/v/turn-0000000000-HANGS", -1))
	})
}

// Other nodes below a value are nobody's turn, and an ephemeral node can have
// none below it.
func TestAChangeNeedsNoTurn(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		v := of(b, c, "/v")
		require.NoError(b, v.Set(b.Context(), []byte("1")))
		require.NoError(b, c.Create(b.Context(), "/v/other", nil))
		require.NoError(b, v.Change(b.Context(), increment))
		require.Equal(b, "2", string(get(b, v).Data))

		h, err := recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/name"})
		require.NoError(b, err)
		record, tries := recipe.NewRecord(c, "/name"), 0
		require.NoError(b, record.Change(b.Context(), h.Txn, func(data []byte, _ coord.Stat) ([]byte, error) {
			tries++
			if tries < 6 {
				_, err := c.Set(b.Context(), "/name", strconv.AppendInt(nil, int64(tries), 10), -1)
				return []byte("lost"), err
			}
			return append(data, "!"...), nil
		}))
		require.NoError(b, h.Release(b.Context()))
	})
}
