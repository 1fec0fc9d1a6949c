package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func (s scene) foreign(name string) {
	s.Helper()
	acl := zk.WorldACL(zk.PermAll)
	for at, c := range s.dir() {
		if c == '/' && at > 0 {
			_, err := s.admin().Create(s.dir()[:at], nil, 0, acl)
			require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
		}
	}
	_, err := s.admin().Create(s.dir(), nil, 0, acl)
	require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
	require.NoError(s, coordtest.Err(s.admin().Create(s.dir()+"/"+name, nil, 0, acl)))
}

// foreignName is one of many names of no known shape.
func (s scene) foreignName(i int) string {
	return fmt.Sprintf("%s/%s-%d", s.dir(), strings.Repeat("foreign", 12), i)
}

func TestF40NamesOfNoKnownDialectAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		names := []string{"garbage", "_c_short", "_c_", "lock-", "日本語", "-lock-0000000001", "x-lock-99999999999"}
		for _, name := range names {
			s.foreign(name)
		}
		c := s.behind()
		s.release(s.acquire(c))
		// The recovery of a lost create reads the names, too.
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		begun := time.Now()
		h := s.grantedWithin(progress, s.start(context.Background(), c), begun)
		require.Equal(s, 1, lost.Fired())
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(len(names) + 2)
		s.release(s.handOver(h, waiter))
	})
}

func TestF40TenThousandForeignNamesAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		s.foreign("first")
		s.crowd(10_000)
		c, begun := s.client(), time.Now()
		s.release(s.grantedWithin(progress, s.start(context.Background(), c), begun))
	})
}

func TestF40AContenderOfTheOtherDialectThatCameFirstIsRefused(t *testing.T) {
	each(t, func(s scene) {
		kazoo := s.client(coord.WithDialect(coord.Kazoo))
		h := s.acquire(kazoo)
		_, err := s.mutex(s.client()).Acquire(context.Background())
		require.ErrorIs(s, err, coord.ErrForeign)
		require.ErrorContains(s, err, h.Node()[len(s.dir())+1:])
		require.ErrorIs(s, coordtest.Err(s.mutex(s.client()).TryAcquire(context.Background())), coord.ErrForeign)
		s.awaitNodes(1)
		s.release(h)
	})
}

// The server's counter is a signed 32-bit number that sticks at its end, where
// every node gets the same number (FAULTS, trap 9).
func TestF41TheSequenceCounterIsNearItsEnd(t *testing.T) {
	onReal(t, func(s scene) {
		s.release(s.acquire(s.client()))
		s.setCounter(2147483645)
		clients := s.clients(3)
		for range 3 {
			for _, c := range clients {
				require.ErrorIs(s, coordtest.Err(s.mutex(c).Acquire(s.Context())), coord.ErrSequenceExhausted)
			}
		}
		require.Empty(s, s.nodes())
		name, err := s.admin().Create(s.dir()+"/x-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(s, err)
		require.True(s, strings.HasSuffix(name, "2147483647"), "%s: the counter has not reached its end", name)
	}, withoutDigest)
}

func TestF41TheLastNumbersThatAreSafeAreUsed(t *testing.T) {
	onReal(t, func(s scene) {
		s.release(s.acquire(s.client()))
		s.setCounter(1<<31 - 1<<16 - 1)
		c := s.client()
		h := s.acquire(c)
		require.Equal(s, 1<<31-1<<16-1, sequence(s, h.Node()))
		require.ErrorIs(s, coordtest.Err(s.mutex(c).Acquire(s.Context())), coord.ErrSequenceExhausted)
		s.isSoleHolder(h)
		s.release(h)
	}, withoutDigest)
}

// withoutDigest keeps the server from checking the tree's digest, which a
// patched snapshot does not match.
var withoutDigest = zktest.WithProperty("zookeeper.digest.enabled", "false")

// setCounter gives the lock's directory another sequence counter: it makes the
// server write a snapshot, which it does when it starts, and patches that.
func (s scene) setCounter(n int32) {
	s.Helper()
	server := s.w.Real()
	require.NoError(s, server.Restart())
	require.NoError(s, server.Kill())
	snapshots, err := filepath.Glob(filepath.Join(server.DataDir(), "version-2", "snapshot.*"))
	require.NoError(s, err)
	require.NotEmpty(s, snapshots)
	newest := slices.MaxFunc(snapshots, func(a, b string) int { return int(zxidOf(s, a) - zxidOf(s, b)) })
	data, err := os.ReadFile(newest)
	require.NoError(s, err)
	s.patch(data, n)
	require.NoError(s, os.WriteFile(newest, data, 0o600))
	require.NoError(s, server.Restart())
}

func zxidOf(s scene, snapshot string) int64 {
	s.Helper()
	zxid, err := strconv.ParseInt(strings.TrimPrefix(filepath.Ext(snapshot), "."), 16, 64)
	require.NoError(s, err)
	return zxid
}

// patch changes the directory's cversion, which in a snapshot is the counter,
// and the checksum. A node is its path, data, ACL and stat (czxid, mzxid,
// ctime, mtime, version, cversion...); the file ends with an Adler-32 of all
// before it as a long, and the path "/".
func (s scene) patch(snapshot []byte, counter int32) {
	s.Helper()
	const trailer = 8 + 4 + 1
	body, sum := snapshot[:len(snapshot)-trailer], snapshot[len(snapshot)-trailer:]
	require.EqualValues(s, adler32.Checksum(body), binary.BigEndian.Uint64(sum), "the snapshot's format is not understood")
	path := append(binary.BigEndian.AppendUint32(nil, uint32(len(s.dir()))), s.dir()...)
	require.Equal(s, 1, bytes.Count(body, path))
	node := body[bytes.Index(body, path)+len(path):]
	data := max(int32(binary.BigEndian.Uint32(node)), 0)
	cversion := node[4+data+8+4*8+4:]
	require.EqualValues(s, 1, binary.BigEndian.Uint32(cversion), "one claim was made")
	binary.BigEndian.PutUint32(cversion, uint32(counter))
	binary.BigEndian.PutUint64(sum, uint64(adler32.Checksum(body)))
}
