package coord_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func increment(data []byte, _ coord.Stat) ([]byte, error) {
	n, _ := strconv.Atoi(string(data))
	return strconv.AppendInt(nil, int64(n+1), 10), nil
}

func TestChangesOfARecordByManyAtTheSameTimeAllCount(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var changing sync.WaitGroup
		for range 4 {
			c := b.Open()
			for range 5 {
				changing.Go(func() {
					if err := c.Record("/a/counter").Change(b.Context(), c, increment); err != nil {
						b.Error(err)
					}
				})
			}
		}
		changing.Wait()
		data, _, err := b.Open().Get(b.Context(), "/a/counter")
		require.NoError(b, err)
		require.Equal(b, "20", string(data))
	})
}

// A client does not know what became of its change, and says so; an ExactlyOnce
// finds out.
func TestAChangeWhoseReplyIsLostIsUnconfirmedOrHappensOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		once, err := c.ExactlyOnce("/once")
		require.NoError(b, err)
		record := c.Record("/counter")
		require.NoError(b, record.Change(b.Context(), once, increment))

		for writer, want := range map[coord.Writer]error{c: coord.ErrUnconfirmed, once: nil} {
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(r zkembed.Request) bool {
				return slices.Contains(r.Paths, "/counter")
			}, Times: 1}, zkembed.LoseReply())
			require.ErrorIs(b, record.Change(b.Context(), writer, increment), want)
			require.Equal(b, 1, lost.Fired())
		}
		data, _, err := c.Get(b.Context(), "/counter")
		require.NoError(b, err)
		require.Equal(b, "3", string(data))
		require.NoError(b, once.Close(b.Context()))
	})
}

func TestWhoHasLostItsHoldDoesNotChangeARecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, admin := b.Open(), b.Open()
		h, err := c.Acquire(b.Context(), coord.Spec{Line: coord.LockLine("/lock"), Kind: "lock"}, coord.First)
		require.NoError(b, err)
		require.NoError(b, c.Record("/r").Change(b.Context(), h, increment))
		require.ErrorIs(b, c.Record("/r").Change(b.Context(), h, func(data []byte, stat coord.Stat) ([]byte, error) {
			require.NoError(b, admin.Delete(b.Context(), h.Node(), -1))
			return increment(data, stat)
		}), coord.ErrLost)
		data, _, err := admin.Get(b.Context(), "/r")
		require.NoError(b, err)
		require.Equal(b, "1", string(data))
	})
}

func TestADecisionThatFailsOrChangesNothingWritesNothing(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/r", []byte("as it is")))
		no := errors.New("no")
		require.ErrorIs(b, c.Record("/r").Change(b.Context(), c, func([]byte, coord.Stat) ([]byte, error) { return nil, no }), no)
		require.NoError(b, c.Record("/r").Change(b.Context(), c, func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }))
		_, stat, err := c.Get(b.Context(), "/r")
		require.NoError(b, err)
		require.Zero(b, stat.Version)
	})
}

// A record, and a directory, may be made, deleted and made again while one
// looks at them.
func TestALookSeesARecordAndADirectoryComeAndGo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, admin := b.Open(), b.Open()
		watch := func(look func(v *coord.View) (string, error)) <-chan []string {
			over := make(chan []string, 1)
			go func() {
				var seen []string
				for now, err := range coord.Observe(b.Context(), c, "/dir", look, func(a, b string) bool { return a == b }) {
					seen = append(seen, now)
					if len(seen) == 4 || err != nil {
						break
					}
				}
				over <- seen
			}()
			return over
		}
		names := watch(func(v *coord.View) (string, error) {
			names, err := v.Dir("/dir")
			return strings.Join(names, " "), err
		})
		record := watch(func(v *coord.View) (string, error) {
			data, _, err := c.Record("/dir/record").Look(v, nil)
			return string(data), err
		})
		time.Sleep(time.Second)
		require.NoError(b, admin.Create(b.Context(), "/dir/record", []byte("x")))
		time.Sleep(time.Second)
		require.NoError(b, admin.Delete(b.Context(), "/dir/record", -1))
		require.NoError(b, admin.Delete(b.Context(), "/dir", -1))
		time.Sleep(time.Second)
		require.NoError(b, admin.Create(b.Context(), "/dir/record", []byte("y")))
		require.Equal(b, []string{"", "record", "", "record"}, <-names)
		require.Equal(b, []string{"", "x", "", "y"}, <-record)
	})
}

func TestALookMakesARecordThatIsMissing(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		var data []byte
		require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (done bool, err error) {
			data, _, err = c.Record("/a/b/record").Look(v, []byte("first"))
			return true, err
		}))
		require.Equal(b, "first", string(data))
	})
}
