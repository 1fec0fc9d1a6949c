package coord_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
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
					if err := c.Record("/a/counter").Change(b.Context(), c.Txn, increment); err != nil {
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

// A record that this process watches is not read again, unless nothing would be
// written.
func TestAChangeOfAWatchedRecordIsOneRequest(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		record := c.Record("/r")
		require.NoError(b, record.Change(b.Context(), c.Txn, increment))
		require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (bool, error) {
			_, _, err := record.Look(v, nil)
			return err == nil, err
		}))
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 1}, requests(b, c, func() {
			require.NoError(b, record.Change(b.Context(), c.Txn, func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }))
		}))
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: 1, zkembed.OpNotify: 1}, requests(b, c, func() {
			require.NoError(b, record.Change(b.Context(), c.Txn, increment))
		}))
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
		require.NoError(b, record.Change(b.Context(), once.Txn, increment))

		for want, write := range map[error]func(context.Context, ...coord.Op) ([]coord.Result, error){coord.ErrUnconfirmed: c.Txn, nil: once.Txn} {
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(r zkembed.Request) bool {
				return slices.Contains(r.Paths, "/counter")
			}, Times: 1}, zkembed.LoseReply())
			require.ErrorIs(b, record.Change(b.Context(), write, increment), want)
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
		h, err := c.Acquire(b.Context(), coord.Spec{Line: inspect.LockLine("/lock"), Kind: "lock"}, coord.First)
		require.NoError(b, err)
		require.NoError(b, c.Record("/r").Change(b.Context(), h.Txn, increment))
		require.ErrorIs(b, c.Record("/r").Change(b.Context(), h.Txn, func(data []byte, stat coord.Stat) ([]byte, error) {
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
		require.ErrorIs(b, c.Record("/r").Change(b.Context(), c.Txn, func([]byte, coord.Stat) ([]byte, error) { return nil, no }), no)
		require.NoError(b, c.Record("/r").Change(b.Context(), c.Txn, func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }))
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

// A session comes back, a hold does not.
func TestRetryMakesNoCallAgainForALostHold(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		calls := 0
		err := b.Open().Retry(b.Context(), func(context.Context) error {
			if calls++; calls > 1 {
				return nil
			}
			return errors.Join(coord.ErrLost, coord.ErrSessionExpired)
		})
		require.ErrorIs(b, err, coord.ErrLost)
	})
}
