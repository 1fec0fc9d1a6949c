package counter_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// scene is a test on some server, in some dialect.
type scene struct{ coordtest.Scene }

func each(t *testing.T, f func(s scene)) {
	coordtest.EachDialect(t, func(s coordtest.Scene) { f(scene{s}) })
}

func (s scene) counter(opts ...counter.Option) *counter.Counter {
	s.Helper()
	return of(s, s.Open(), s.W.Path("n"), opts...)
}

func of(t testing.TB, c *coord.Client, path string, opts ...counter.Option) *counter.Counter {
	t.Helper()
	n, err := counter.New(c, path, opts...)
	require.NoError(t, err)
	return n
}

func add(t testing.TB, n *counter.Counter, delta int64) int64 {
	t.Helper()
	sum, err := n.Add(coordtest.Limited(t), delta)
	require.NoError(t, err)
	return sum
}

func TestAllAddAndGetDifferentSums(t *testing.T) {
	each(t, func(s scene) {
		const clients, each = 3, 10
		got, err := s.counter().Get(coordtest.Limited(s))
		require.NoError(s, err)
		require.Zero(s, got)
		sums := make([][]int64, clients)
		var adding sync.WaitGroup
		for i := range clients {
			n := s.counter()
			adding.Go(func() {
				for range each {
					sum, err := n.Add(coordtest.Limited(s), 1)
					if err != nil {
						s.Error(err)
					}
					sums[i] = append(sums[i], sum)
				}
			})
		}
		adding.Wait()
		for _, own := range sums {
			require.True(s, slices.IsSorted(own), "%v", own)
		}
		all := slices.Sorted(slices.Values(slices.Concat(sums...)))
		for i, sum := range all {
			require.EqualValues(s, i+1, sum)
		}
		got, err = s.counter().Get(coordtest.Limited(s))
		require.NoError(s, err)
		require.EqualValues(s, clients*each, got)
	})
}

func TestTheNumberIsFollowed(t *testing.T) {
	each(t, func(s scene) {
		n, seen := s.counter(), []int64{}
		for now, err := range s.counter().Observe(coordtest.Limited(s)) {
			require.NoError(s, err)
			if seen = append(seen, now); len(seen) == 3 {
				break
			}
			if len(seen) == 1 {
				add(s, n, -7)
			} else {
				require.NoError(s, n.Set(coordtest.Limited(s), 300))
			}
		}
		require.Equal(s, []int64{0, -7, 300}, seen)
	})
}

// The bytes are those of Curator's and Kazoo's counters.
func TestANumberIsAsWideAsItWas(t *testing.T) {
	for _, is := range []struct {
		dialect coord.Dialect
		before  string // nil: none
		opts    []counter.Option
		after   string
	}{
		{coord.Curator, "none", nil, "\x00\x00\x00\x01"},
		{coord.Curator, "", nil, "\x00\x00\x00\x01"},
		{coord.Curator, "\xff\xff\xff\xfe", nil, "\xff\xff\xff\xff"},
		{coord.Curator, "\x00\x00\x01\x02", []counter.Option{counter.Int64()}, "\x00\x00\x01\x03"},
		{coord.Curator, "none", []counter.Option{counter.Int64()}, "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{coord.Curator, "\x00\x00\x00\x00\x00\x00\x01\x02", nil, "\x00\x00\x00\x00\x00\x00\x01\x03"},
		{coord.Kazoo, "none", nil, "1"},
		{coord.Kazoo, "", nil, "1"},
		{coord.Kazoo, "-2", nil, "-1"},
	} {
		w := zktest.New(t, zktest.Embedded)
		c := coordtest.Open(t, w.ConnectString(), coord.WithDialect(is.dialect))
		if is.before != "none" {
			require.NoError(t, c.Create(coordtest.Limited(t), w.Path("n"), []byte(is.before)))
		}
		add(t, of(t, c, w.Path("n"), is.opts...), 1)
		data, _, err := c.Get(coordtest.Limited(t), w.Path("n"))
		require.NoError(t, err)
		require.Equal(t, is.after, string(data), "%s after %q", is.dialect, is.before)
	}
}

func TestANumberThatDoesNotFitIsRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	n, long := of(t, c, w.Path("n")), of(t, c, w.Path("long"), counter.Int64())
	for _, is := range []struct {
		of          *counter.Counter
		least, most int64
	}{{n, math.MinInt32, math.MaxInt32}, {long, math.MinInt64, math.MaxInt64}} {
		require.NoError(t, is.of.Set(coordtest.Limited(t), is.most))
		require.ErrorIs(t, coordtest.Err(is.of.Add(coordtest.Limited(t), 1)), counter.ErrRange)
		require.Equal(t, is.most-1, add(t, is.of, -1))
		require.NoError(t, is.of.Set(coordtest.Limited(t), is.least))
		require.ErrorIs(t, coordtest.Err(is.of.Add(coordtest.Limited(t), -1)), counter.ErrRange)
		require.Equal(t, is.least, add(t, is.of, 0))
	}
	require.ErrorIs(t, n.Set(coordtest.Limited(t), math.MaxInt32+1), counter.ErrRange)
	require.ErrorIs(t, coordtest.Err(n.Add(coordtest.Limited(t), math.MaxInt64)), counter.ErrRange)
}

func TestOtherDataAreNotOverwritten(t *testing.T) {
	each(t, func(s scene) {
		c, n := s.Open(), s.counter()
		other := map[coord.Dialect]string{
			coord.Curator: "3.7", coord.Kazoo: "3.75",
		}[s.Dialect] // of no number's length, or digits
		require.NoError(s, c.Create(coordtest.Limited(s), s.W.Path("n"), []byte(other)))
		require.ErrorIs(s, coordtest.Err(n.Add(coordtest.Limited(s), 1)), counter.ErrNoNumber)
		require.ErrorIs(s, coordtest.Err(n.Get(coordtest.Limited(s))), counter.ErrNoNumber)
		for _, err := range n.Observe(coordtest.Limited(s)) {
			require.ErrorIs(s, err, counter.ErrNoNumber)
		}
		require.NoError(s, n.Set(coordtest.Limited(s), 5))
		require.EqualValues(s, 6, add(s, n, 1))
	})
}

func TestAnAddWhoseRepliesAreLostCountsOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		n := of(b, b.Open(), "/n")
		add(b, n, 1)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 3}, zkembed.LoseReply())
		require.EqualValues(b, 2, add(b, n, 1))
		require.Equal(b, 3, lost.Fired())
		got, err := n.Get(b.Context())
		require.NoError(b, err)
		require.EqualValues(b, 2, got)
	})
}

// It may write, and sees that there are data.
func TestANumberThatMayNotBeReadIsNotTakenForZero(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, c := w.Path("n"), coordtest.Open(t, w.ConnectString())
		owner := coordtest.Open(t, w.ConnectString(), coord.WithAuth("digest", "u:p"),
			coord.WithACL("auth::r", "world:anyone:w"))
		require.NoError(t, c.EnsureDir(coordtest.Limited(t), w.Path("")))
		require.NoError(t, owner.Create(coordtest.Limited(t), path, []byte("7")))
		blind := of(t, c, path)
		require.ErrorIs(t, coordtest.Err(blind.Get(coordtest.Limited(t))), coord.ErrNoAuth)
		for _, err := range blind.Observe(coordtest.Limited(t)) {
			require.ErrorIs(t, err, coord.ErrNoAuth)
		}
		require.ErrorIs(t, coordtest.Err(blind.Add(coordtest.Limited(t), 1)), coord.ErrNoAuth)
		data, _, err := owner.Get(coordtest.Limited(t), path)
		require.NoError(t, err)
		require.Equal(t, "7", string(data))
	})
}

func TestASumIsOutOfRangeOnlyByTheLatestNumber(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		n, other := of(b, c, "/n"), of(b, b.Open(), "/n")
		require.NoError(b, n.Set(b.Context(), math.MaxInt32))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, other.Set(b.Context(), 0))
		require.NoError(b, coordtest.Err(n.Add(b.Context(), 1)))
	})
}
