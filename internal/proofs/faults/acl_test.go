package faults

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// makeDir creates the lock's directory with an ACL of its own.
func (s scene) makeDir(perms int32) {
	s.Helper()
	admin := s.admin()
	require.NoError(s, coordtest.Err(admin.Create(s.w.Path(""), nil, 0, zk.WorldACL(zk.PermAll))))
	require.NoError(s, coordtest.Err(admin.Create(s.dir(), nil, 0, zk.WorldACL(perms))))
}

func TestF42APredecessorThatMayNotBeReadIsWaitedFor(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermAll)
		secret := coord.WithACL("world:anyone:wd")
		h := s.acquire(s.client(secret))
		_, _, err := s.admin().Get(h.Node())
		require.ErrorIs(s, err, zk.ErrNoAuth)
		waiter := s.start(context.Background(), s.client(secret))
		s.awaitNodes(2)
		require.Empty(s, waiter)
		next := s.handOver(h, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

func TestF42ANodeThatMayNotBeDeletedGoesWithItsSession(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermRead | zk.PermCreate)
		var stranded atomic.Int64
		c := s.client(coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.NodeStranded {
				stranded.Add(1)
			}
		}))
		h := s.acquire(c)
		other := s.client()
		waiter := s.start(context.Background(), other)
		s.awaitNodes(2)
		err := h.Release(context.Background())
		require.ErrorIs(s, err, coord.ErrNoAuth)
		require.ErrorContains(s, err, h.Node())
		require.EqualValues(s, 1, stranded.Load())
		require.Empty(s, waiter, "the node is still there")
		closed := time.Now()
		require.NoError(s, c.Close(context.Background()))
		next := s.grantedWithin(progress, waiter, closed)
		require.ErrorIs(s, next.Release(context.Background()), coord.ErrNoAuth)
		require.NoError(s, other.Close(context.Background()))
	})
}

func TestF42ADirectoryThatMayNotBeListedIsReportedAndNothingIsLeft(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermCreate | zk.PermDelete)
		creates := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.Watch})
		require.ErrorIs(s, coordtest.Err(s.mutex(s.behind()).Acquire(context.Background())), coord.ErrNoAuth)
		require.Equal(s, 1, creates.Fired(), "a node was made, and must go again")
		stat := func() *zk.Stat {
			_, stat, err := s.admin().Exists(s.dir())
			require.NoError(s, err)
			return stat
		}
		require.EqualValues(s, 2, stat().Cversion)
		require.Zero(s, stat().NumChildren)
	})
}

// The credentials are presented again on every connection, and an error in
// writing them does not wedge the client.
func TestF42TheWriteOfTheCredentialsFailsAfterAReconnect(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermAll)
		const timeout = 3 * T // two connections in a row, on any machine
		s.w.SetTimeout(timeout)
		var failed atomic.Int64
		own := zk.DigestACL(zk.PermAll, "somebody", "secret")[0]
		c := s.behind(
			coord.WithSessionTimeout(timeout),
			coord.WithAuth("digest", "somebody:secret"),
			coord.WithACL("digest:"+own.ID+":cdrwa"),
			coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				raw, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return &failingAuth{raw, &failed}, err
			}))
		h := s.acquire(c)
		_, _, err := s.admin().Get(h.Node())
		require.ErrorIs(s, err, zk.ErrNoAuth, "others may not read it")
		failed.Store(1)
		require.Equal(s, 1, s.w.Proxy().CutAll())
		zktest.Eventually(s, patience, func() bool { return failed.Load() == 0 }, "the write does not fail")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _, err = c.Get(ctx, h.Node())
		require.NoError(s, err, "wedged, or without its credentials")
		require.NoError(s, h.Err())
		s.release(h)
		require.Empty(s, s.nodes())
	})
}

// failingAuth is a connection that fails to write packets with credentials, as
// often as its counter says.
type failingAuth struct {
	net.Conn
	left *atomic.Int64
}

func (c *failingAuth) Write(p []byte) (int, error) {
	if len(p) >= 12 && int32(binary.BigEndian.Uint32(p[8:])) == proxy.OpAuth && c.left.CompareAndSwap(1, 0) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func TestF43ThirtyThousandChildrenAndOversizedDataHarmNoOtherClaim(t *testing.T) {
	eachAlone(t, func(s scene) {
		const children, timeout = 30_000, 3 * T // a busy server takes its time for a listing
		s.w.SetTimeout(timeout)
		s.makeDir(zk.PermAll)
		s.crowd(children)
		var downs atomic.Int64
		c := s.behind(coord.WithSessionTimeout(timeout), coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.SessionDown {
				downs.Add(1)
			}
		}))
		h := s.acquire(c)
		waiter := s.start(context.Background(), c)
		s.awaitChildren(children + 2)
		tooLarge := make([]byte, 1_153_434) // 1.1 MiB
		require.ErrorIs(s, coordtest.Err(c.Set(s.Context(), h.Node(), tooLarge, -1)), coord.ErrTooLarge)
		_, _, err := c.Stand(s.Context(), coord.Spec{Line: coord.Line{Dir: s.dir()}, Kind: "lock", Data: tooLarge})
		require.ErrorIs(s, err, coord.ErrTooLarge)
		require.ErrorIs(s, coordtest.Err(h.Txn(s.Context(), coord.SetOp(s.dir(), tooLarge, -1))), coord.ErrTooLarge)
		begun := time.Now()
		names, err := c.Children(s.Context(), s.dir())
		require.NoError(s, err)
		require.Len(s, names, children+2)
		s.Logf("listed in %v", time.Since(begun))
		require.Zero(s, downs.Load(), "the connection was lost")
		require.NoError(s, h.Err())
		s.release(s.handOver(h, waiter))
	})
}

// awaitChildren is awaitNodes without the cost of listing so many.
func (s scene) awaitChildren(n int32) {
	s.Helper()
	zktest.Eventually(s, patience, func() bool {
		_, stat, err := s.admin().Exists(s.dir())
		return err == nil && stat.NumChildren == n
	}, "the directory never has %d nodes", n)
}

// crowd fills the directory with children of no known dialect, until the end of
// the test.
func (s scene) crowd(n int) {
	s.Helper()
	inBatches := func(request func(path string) any) {
		for done := 0; done < n; done += 1000 {
			var batch []any
			for i := range 1000 {
				batch = append(batch, request(s.foreignName(done+i)))
			}
			require.NoError(s, coordtest.Err(s.admin().Multi(batch...)))
		}
	}
	inBatches(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
	s.Cleanup(func() {
		inBatches(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} })
	})
}
