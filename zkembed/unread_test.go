package zkembed_test

import (
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAConnectionThatNeverFinishesAPacketIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		sent  []byte
		after time.Duration
	}{
		"nothing":           {nil, 10 * time.Second},
		"half a length":     {hello(0)[:2], 10 * time.Second},
		"half a hello":      {hello(0)[:20], 10 * time.Second},
		"half a word":       {[]byte("ru"), 10 * time.Second},
		"half a request":    {append(hello(0), packet(zkembed.OpGetData, jute("/"))[:10]...), 11 * time.Second},
		"no request at all": {hello(0), 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *zkembed.Server) {
				nc, err := s.Dial("", "", time.Second)
				require.NoError(t, err)
				defer nc.Close()
				_, err = nc.Write(test.sent)
				require.NoError(t, err)
				begun := time.Now()
				require.NoError(t, nc.SetReadDeadline(begun.Add(time.Hour)))
				_, err = io.Copy(io.Discard, nc)
				require.NoError(t, err) // its end
				require.InDelta(t, test.after, time.Since(begun), float64(time.Second))
				require.Empty(t, s.Sessions())
			})
		})
	}
}

func TestASlowHandshakeIsWaitedForAsLongAsThereIsMore(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		nc, err := s.Dial("", "", time.Second)
		require.NoError(t, err)
		defer nc.Close()
		for _, b := range hello(0) {
			time.Sleep(9 * time.Second)
			_, err = nc.Write([]byte{b})
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Len(t, s.Sessions(), 1)
		_, err = io.ReadFull(nc, make([]byte, 40))
		require.NoError(t, err)
		time.Sleep(9 * time.Second)
		require.Len(t, s.Sessions(), 1)
	})
}

// multiRead asks for a node's data many times.
func multiRead(path string, times int) []byte {
	var b []byte
	for range times {
		b = append(binary.BigEndian.AppendUint32(b, uint32(zkembed.OpGetData)), 0, 0xff, 0xff, 0xff, 0xff)
		b = append(append(b, jute(path)...), 0)
	}
	return packet(zkembed.OpMultiRead, append(b, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff))
}

func TestOneConnectionHasABoundedAmountUnread(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		_, err := c.Create("/big", make([]byte, 1e6), 0, open)
		require.NoError(t, err)
		long := dialled(t, s, hello(0))
		_, err = long.frame(time.Second)
		require.NoError(t, err)
		long.send(multiRead("/big", 54))
		require.Equal(t, zkembed.CodeSystemError, long.code())

		const replies, each = 40, 20 << 20
		unread := dialled(t, s, hello(0))
		_, err = unread.frame(time.Second)
		require.NoError(t, err)
		before := s.Counts()
		go func() {
			for range replies {
				_, _ = unread.nc.Write(multiRead("/big", 20))
			}
		}()
		synctest.Wait()
		require.EqualValues(t, 1, s.Counts().Since(before)[zkembed.OpMultiRead])
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		require.Less(t, m.HeapAlloc, uint64(2*each+30<<20))
		for range replies { // a client that reads is served
			b, err := unread.frame(time.Second)
			require.NoError(t, err)
			require.Greater(t, len(b), each/2)
		}
	})
}
