package contract

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsInOnePieceAreAnsweredInOrder(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		const n = 500
		for range n {
			_, err := c.send(opCreate, create(s.path("n-"), nil, open, sequential))
			require.NoError(t, err)
		}
		for i := range int32(n) {
			xid, r, err := c.receive()
			require.NoError(t, err)
			require.Equal(t, i+1, xid)
			require.Zero(t, r.code)
		}
		require.EqualValues(t, n, c.stat(t, s.root).children)
	})
}

func TestAPacketBeyondTheLimitEndsTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		for _, length := range []int32{-1, 0xfffff + 1<<20, 1 << 30} {
			c := s.connect()
			_, err := c.nc.Write(enc{}.i32(length))
			require.NoError(t, err)
			_, err = c.frame()
			require.Error(t, err, "%d", length)
		}
	})
}

func TestAMalformedRequestFailsAndTheConnectionLives(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		for _, op := range []int32{opCreate, opDelete, opSetData, opGetData, opExists, opGetChildren, opMulti, opSetWatches, opSetACL, opAddWatch} {
			for _, b := range []enc{nil, enc{}.i32(-7), enc{}.i32(1 << 30), enc{}.str(s.root)[:3]} {
				r, err := c.call(op, b)
				require.NoError(t, err, "op %d body %q", op, b)
				require.EqualValues(t, errMarshalling, r.code, "op %d body %q", op, b)
			}
		}
		c.stat(t, s.root)
	})
}

func TestAnUnknownOperationIsNotImplemented(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		require.EqualValues(t, errUnimpl, c.code(t, 77, nil))
	})
}

func word(t *testing.T, s target, w string) string {
	t.Helper()
	c := dialTCP(t, s.addr)
	_, err := c.nc.Write([]byte(w))
	require.NoError(t, err)
	b, err := io.ReadAll(c.r)
	require.NoError(t, err)
	return string(b)
}

func TestFourLetterWordsAnswerAsOperatorsKnowThem(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		c.must(t, opGetChildren, watched(s.root, true))
		require.Equal(t, "imok", word(t, s, "ruok"))
		require.Equal(t, "rw", word(t, s, "isro"))
		for w, lines := range map[string][]string{
			"srvr": {"Zookeeper version: 3.8.0", "Mode: standalone", "Zxid: 0x", "Node count: "},
			"stat": {"Zookeeper version: 3.8.0", "Clients:", "Mode: standalone"},
			"mntr": {"zk_version\t3.8.0", "zk_server_state\tstandalone", "zk_watch_count\t1", "zk_num_alive_connections\t", "zk_ephemerals_count\t0"},
			"conf": {"tickTime=200", "minSessionTimeout=200", "maxSessionTimeout=600000", "clientPort="},
			"envi": {"zookeeper.version=3.8.0"},
			"cons": {"127.0.0.1", "queued=0,recved=", "sid=0x"},
		} {
			got := word(t, s, w)
			for _, line := range lines {
				require.Contains(t, got, line, w)
			}
			require.True(t, strings.HasSuffix(got, "\n"), w)
		}
	})
}
