package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF40NamesWithoutASequenceNumberAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		names := []string{"garbage", "_c_short", "_c_", "lock-", "日本語", "-lock-000000001", "x-lock-99999999999"}
		s.makeDir(zk.PermAll)
		for _, name := range names {
			require.NoError(s, coordtest.Err(s.admin().Create(s.dir()+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))))
		}
		c := s.behind()
		s.release(s.acquire(c))
		// The recovery of a lost create reads the names, too.
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		begun := time.Now()
		h := s.grantedWithin(progress, s.start(context.Background(), c), begun)
		require.Equal(s, 1, lost.Fired())
		s.release(s.handOver(h, s.waiter(s.client(), len(names)+2)))
	})
}

func TestF40TenThousandForeignNamesAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermAll)
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
		waiter := s.waiter(s.client(secret), 2)
		require.Empty(s, waiter)
		next := s.handOver(h, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

func TestF42ANodeThatMayNotBeDeletedGoesWithItsSession(t *testing.T) {
	each(t, func(s scene) {
		s.makeDir(zk.PermRead | zk.PermCreate)
		stranded, count := counting(of(event.NodeStranded))
		c := s.client(count)
		h := s.acquire(c)
		other := s.client()
		waiter := s.waiter(other, 2)
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
		var failed atomic.Int64
		own := zk.DigestACL(zk.PermAll, "somebody", "secret")[0]
		c := s.behind(
			s.lasting(3*T), // two connections in a row, on any machine
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
		_, _, err = c.Get(coordtest.Within(s, patience), h.Node())
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
		const children = 30_000
		s.makeDir(zk.PermAll)
		s.crowd(children)
		downs, count := counting(of(event.SessionDown))
		c := s.behind(count, s.lasting(3*T)) // a busy server takes its time for a listing
		h := s.acquire(c)
		waiter := s.start(context.Background(), c)
		s.awaitChildren(children + 2)
		tooLarge := make([]byte, 1_153_434) // 1.1 MiB
		require.ErrorIs(s, coordtest.Err(c.Set(s.Context(), h.Node(), tooLarge, -1)), coord.ErrTooLarge)
		_, _, err := recipe.Join(s.Context(), c, &coord.Spec{Line: coord.Line{Dir: s.dir()}, Kind: "lock", Data: tooLarge})
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
				batch = append(batch, request(fmt.Sprintf("%s/%s-%d", s.dir(), strings.Repeat("foreign", 12), done+i)))
			}
			require.NoError(s, coordtest.Err(s.admin().Multi(batch...)))
		}
	}
	inBatches(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
	s.Cleanup(func() {
		inBatches(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} })
	})
}

// acquireDespite acquires while one fault strikes, and releases.
func (s scene) acquireDespite(c *coord.Client, f proxy.Fault) {
	s.Helper()
	f.Path = s.dir()
	rule := s.w.Proxy().Inject(f)
	h := s.acquire(c)
	require.Equal(s, 1, rule.Fired())
	s.isSoleHolder(h)
	s.release(h)
}

// onClaim is a fault of the create of a claim.
func onClaim(do proxy.Action) proxy.Fault {
	return proxy.Fault{On: proxy.Creates, Where: isClaim, Do: do}
}

func TestF01TheReplyToACreateIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		recovered, count := counting(of(event.Recovered))
		c := s.behind(count)
		s.release(s.acquire(c)) // the directory is there
		s.acquireDespite(c, onClaim(proxy.CutOnReply))
		require.EqualValues(s, 1, recovered.Load(), "the node was made by the create whose reply was lost")
	}, zktest.Real)
}

// The client may be back before the server has carried the create out.
func TestF01TheConnectionIsCutWhenACreateWasForwarded(t *testing.T) {
	eachRecovery(t, func(s scene) {
		c := s.behind()
		s.release(s.acquire(c))
		for range 20 {
			s.acquireDespite(c, onClaim(proxy.CutAfter))
		}
	}, zktest.Real)
}

func TestF02ACreateIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		c := s.behind()
		s.release(s.acquire(c))
		s.acquireDespite(c, onClaim(proxy.DropAndCut))
	}, zktest.Real)
}

// The create waits for the acknowledgement of a follower that lags. So it is
// under way when the client is back, at that follower, which does not show it
// yet. A client that only lists the directory makes a second node.
func TestF03ACreateIsUnderWayAndTheNextServerLags(t *testing.T) {
	onEnsemble(t, func(s scene) {
		for by, dialect := range recoveries {
			s.dialect = dialect
			lagged := false
			// On a busy machine the follower may have caught up before it is
			// asked.
			for attempts := 3; attempts > 0 && !lagged; attempts-- {
				lagged = s.createIsUnderWay()
			}
			require.True(s, lagged, "%s: the follower does not lag", by)
		}
	}, zktest.WithQuorumLinks())
}

// createIsUnderWay reports whether the follower still lagged when the client
// was back.
func (s scene) createIsUnderWay() bool {
	// A write through a server that lags takes the way to and fro several
	// times.
	const timeout, behind = 10 * T, 500 * time.Millisecond
	ens := s.w.Ensemble()
	leader := s.leader()
	lagging := ens.Followers()[0]
	front := zktest.NewProxy(s, leader.Addr())
	cut := front.Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutAfter})
	back := make(chan struct{}, 10)
	// The client talks to the leader until it is cut off, and to the lagging
	// follower from then on.
	c := s.open("leader-then-follower", s.lasting(timeout),
		coord.WithObserver(func(e event.Event) {
			if e.Kind == event.SessionUp && cut.Fired() > 0 {
				back <- struct{}{}
			}
		}),
		dialing(func() string {
			if cut.Fired() > 0 {
				return lagging.Addr()
			}
			return front.Addr()
		}))
	s.release(s.acquire(s.client()))
	atLeader, atFollower := zktest.Connect(s, leader.Addr(), timeout), zktest.Connect(s, lagging.Addr(), timeout)
	_, err := atFollower.Sync(s.dir())
	require.NoError(s, err)
	for _, follower := range ens.Followers() {
		ens.Link(follower).Delay(behind)
	}
	acquired := s.start(context.Background(), c)
	zktest.Receive(s, patience, back, "the client does not come back")
	names, _, err := atFollower.Children(s.dir())
	require.NoError(s, err)
	lags := len(names) == 0
	h, _ := s.granted(acquired)
	require.Equal(s, 1, cut.Fired())
	s.wait(2*time.Second, time.Now()) // a second create would have been carried out by now
	names, _, err = atLeader.Children(s.dir())
	require.NoError(s, err)
	require.Len(s, names, 1)
	require.Equal(s, s.dir()+"/"+names[0], h.Node())
	for _, follower := range ens.Followers() {
		ens.Link(follower).Heal()
	}
	s.isSoleHolder(h)
	s.release(h)
	return lags
}

// The listing that follows the create is lost, or its reply.
func TestF05TheListingAfterACreateIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		for _, loss := range []proxy.Action{proxy.CutOnReply, proxy.DropAndCut} {
			c := s.behind()
			s.release(s.acquire(c))
			begun := time.Now()
			s.acquireDespite(c, proxy.Fault{On: proxy.Lists, Do: loss})
			s.onTime("granted and released", begun, progress, time.Now())
		}
	}, zktest.Real)
}

func TestF04TheContextEndsWhileTheReplyToACreateIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		p := s.w.Proxy()
		lost := p.Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		s.release(s.acquire(s.client()))
		back := make(chan struct{}) // until then no client connects again
		c := s.open(p.Addr(), coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if lost.Fired() > 0 {
				select {
				case <-back:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		done := s.start(ctx, c)
		zktest.Receive(s, patience, lost.First(), "the create is not sent")
		cancel()
		s.fails(done, time.Now())
		require.Len(s, s.nodes(), 1, "the create took effect")
		close(back)
		require.Empty(s, s.drained(progress, s.nodes), "the node is left")
	})
}

// isClaim reports whether a create makes a claim's node, not its directory.
func isClaim(f *proxy.Frame) bool {
	return len(f.Paths) == 1 && f.Op == proxy.OpCreate
}

func TestF06TheReplyToADeleteIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.CutOnReply})
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		require.Empty(s, s.nodes())
		again := s.acquire(c)
		s.isSoleHolder(again)
		s.release(again)
	}, zktest.Real)
}

func TestF07ADeleteIsLost(t *testing.T) {
	eachRecovery(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		waiter := s.waiter(s.client(), 2)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		begun := time.Now()
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		s.release(s.grantedWithin(2*time.Second, waiter, begun))
	}, zktest.Real)
}

// A release whose caller does not wait goes on by itself.
func TestF07AReleaseThatIsLeftGoesOn(t *testing.T) {
	eachRecovery(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		p := s.w.Proxy()
		lost := p.Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		p.Refuse()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-lost.First()
			cancel()
		}()
		require.Error(s, h.Release(ctx))
		require.Len(s, s.nodes(), 1)
		p.Heal()
		s.release(h) // the same answer as the background's
		require.Empty(s, s.nodes())
	}, zktest.Embedded, zktest.Real)
}
