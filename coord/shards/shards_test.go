package shards_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.RegisterChild("member", memberMain)
	zktest.Main(m)
}

// crowd starts members on a server, each with a client of its own or five with
// one, and waits until each has its share.
func (d *board) crowd(t *testing.T, w *zktest.World, n, perClient, count int, opts ...coord.Option) (all []*member) {
	t.Helper()
	var c *coord.Client
	for i := range n {
		if i%perClient == 0 {
			c = coordtest.Open(t, w.ConnectString(), opts...)
		}
		s, err := shards.New(c, w.Path("shards"), shards.ID(fmt.Sprint("m", i)), shards.Ranges(count))
		require.NoError(t, err)
		all = append(all, run(t, s, c, d.work(s.ID())))
	}
	d.await(count, n)
	return all
}

// await waits until the members have an even share of the keys.
func (d *board) await(count, members int) {
	d.t.Helper()
	zktest.Eventually(d.t, 3*coordtest.Soon, func() bool { return d.shared(count, members) },
		"%d members share the keys", members)
}

func TestMembersShareTheKeys(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(dialect), func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				d := newBoard(t)
				for _, m := range d.crowd(t, w, 4, 1, 16, coord.WithDialect(dialect))[:2] {
					require.NoError(t, m.Leave(coordtest.Limited(t)))
					require.NoError(t, <-m.ended)
				}
				d.await(16, 2)
			})
		})
	}
}

func TestProofAThousandKeysOverFiftyMembers(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	newBoard(t).crowd(t, w, 50, 5, 1000)
}

func TestWhatIsNoSetOfShardsIsRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	for text, opt := range map[string]shards.Option{
		"is empty":                 shards.Keys(),
		`the key "a" twice`:        shards.Keys("a", "b", "a"),
		"1 to 200 bytes":           shards.Keys(strings.Repeat("€", 30)),
		"0 ranges":                 shards.Ranges(0),
		"between 1 and 100000":     shards.Ranges(100_001),
		"weight -1":                shards.Weight(-1),
		"one line":                 shards.ID("a\nb"),
		"at most 1024":             shards.Data(make([]byte, 1025)),
		"0 moves at a time":        shards.MovesAtATime(0),
		"cooldown -1ns":            shards.Cooldown(-1),
		"drain timeout 0s":         shards.DrainTimeout(0),
		`ID "\xff"`:                shards.ID("\xff"),
		`zone "\xff"`:              shards.Zone("\xff"),
		`key "\xff"`:               shards.Keys("\xff"),
		"an option is nil":         nil,
		"list of 12000 keys takes": keysOf(12_000, 75),
	} {
		_, err := shards.New(c, w.Path("shards"), opt)
		require.ErrorIs(t, err, coord.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	_, err := shards.New(c, "/")
	require.ErrorIs(t, err, coord.ErrInvalid)
	s, err := shards.New(c, w.Path("shards"), keysOf(10_000, 75), shards.Keys("/", ".", ".."))
	require.NoError(t, err)
	require.Equal(t, w.Path("shards")+"/keys/%2E%2E", s.Line("..").Dir)
	require.ErrorIs(t, s.SetKeys(coordtest.Limited(t)), coord.ErrInvalid)
	require.ErrorIs(t, s.SetRanges(coordtest.Limited(t), -1), coord.ErrInvalid)
	require.Nil(t, shards.Draining(t.Context()))
}

// keysOf makes n keys of so many bytes.
func keysOf(n, bytes int) shards.Option {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%0*d", bytes, i)
	}
	return shards.Keys(all...)
}
