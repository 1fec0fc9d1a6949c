package proxy_test

import (
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestABlackHoleKeepsWhatIsUnderWayUntilHealed(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		for _, way := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
			conn := zktest.Connect(t, w.Proxy().Addr(), 20*time.Second) // pings rarely
			name := map[proxy.Direction]string{proxy.ToServer: "request", proxy.ToClient: "reply"}[way]
			before := w.Proxy().Stats().Held
			w.Proxy().Blackhole(way)
			result := coordtest.Go(func() error { return create(conn, w.Path("")+"-"+name) })
			zktest.Eventually(t, patience, func() bool { return w.Proxy().Stats().Held > before }, "something is held")
			found, _, err := w.Admin().Exists(w.Path("") + "-" + name)
			require.NoError(t, err)
			require.Equal(t, way == proxy.ToClient, found, "only the reply is held, or only the request")
			require.Empty(t, result)

			w.Proxy().Heal()
			require.NoError(t, zktest.Receive(t, patience, result, "the create ends"))
			require.NoError(t, w.Admin().Delete(w.Path("")+"-"+name, -1))
		}
	})
}

func TestABlackHoleHidesTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	client, server, p := rawPair(t)
	p.Blackhole(proxy.Both)
	require.NoError(t, client.Close())

	got := coordtest.Go(func() error { return coordtest.Err(server.Read(make([]byte, 1))) })
	zktest.Eventually(t, patience, func() bool { return p.Stats().Held > 0 }, "the end is held")
	require.Empty(t, got, "the server has heard nothing")
	p.Heal()
	require.ErrorIs(t, zktest.Receive(t, patience, got, "the end arrives"), io.EOF)
}

func TestAConnectionGivenUpInABlackHoleNeverReachesTheServer(t *testing.T) {
	t.Parallel()
	listener, p := rawServer(t)
	p.Blackhole(proxy.Both)
	given, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	require.NoError(t, coordtest.Err(given.Write([]byte("up"))))
	zktest.Eventually(t, patience, func() bool { return p.Stats().Held == 1 }, "it waits")
	require.NoError(t, given.Close())
	zktest.Eventually(t, patience, func() bool { return p.Stats().GivenUp == 1 }, "the proxy has noticed")
	p.Heal()

	later, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer later.Close()
	require.NoError(t, coordtest.Err(later.Write([]byte("kept"))))
	server, err := listener.Accept()
	require.NoError(t, err)
	defer server.Close()
	first := make([]byte, 4)
	require.NoError(t, coordtest.Err(io.ReadFull(server, first)))
	require.Equal(t, "kept", string(first))
	require.Equal(t, 1, p.Stats().Conns)
}

func TestADirectionThatIsCutLosesWhatItHeld(t *testing.T) {
	t.Parallel()
	client, server, p := rawPair(t)
	p.Blackhole(proxy.ToServer)
	require.NoError(t, coordtest.Err(client.Write([]byte("lost"))))
	zktest.Eventually(t, patience, func() bool { return p.Stats().Held > 0 }, "it is held")
	require.Equal(t, 1, p.CutWay(proxy.ToServer))
	require.Zero(t, p.CutWay(proxy.ToServer))
	p.Heal()
	require.NoError(t, coordtest.Err(client.Write([]byte("lost, too"))))
	zktest.Eventually(t, patience, func() bool { return p.Stats().Lost == 2 }, "counted")
	require.NoError(t, coordtest.Err(server.Write([]byte("!"))))
	require.NoError(t, coordtest.Err(client.Read(make([]byte, 1))), "the other direction goes on")
	require.Equal(t, 1, p.CutAll())
	require.Error(t, coordtest.Err(server.Read(make([]byte, 1))))
}

func TestARefusedConnectionEndsAndAHungOneStaysSilent(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		p := w.Proxy()
		conn := zktest.Connect(t, p.Addr(), sessionTimeout)
		p.Refuse()
		require.NoError(t, create(conn, w.Path("")), "a connection that is there stays")
		refused, err := net.Dial("tcp", p.Addr())
		if err == nil {
			_, err = refused.Read(make([]byte, 1))
			refused.Close()
		}
		require.Error(t, err)
		zktest.Eventually(t, patience, func() bool { return p.Stats().Refused == 1 }, "counted")

		p.Heal()
		p.Hang()
		hung, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		defer hung.Close()
		require.NoError(t, coordtest.Err(hung.Write([]byte("ruok"))))
		zktest.Eventually(t, patience, func() bool { return p.Stats().Hung == 1 && p.Stats().Held > 0 }, "counted")
		_, _, err = conn.Exists(w.Path(""))
		require.NoError(t, err, "a connection that is there is served")
		p.Heal()
		answer, err := io.ReadAll(hung)
		require.NoError(t, err)
		require.Equal(t, "imok", string(answer), "the server has recovered")
	})
}

func TestLatencyIsAddedInEachDirection(t *testing.T) {
	t.Parallel()
	const latency = 60 * time.Millisecond
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		w.Proxy().Delay(proxy.Both, latency, 10*time.Millisecond)
		begin := time.Now()
		_, _, err := conn.Exists(w.Path(""))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begin), 2*latency)
		require.GreaterOrEqual(t, w.Proxy().Stats().Delayed, 2)
	})
}

func TestAFlappingProxyCutsUntilStopped(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		stop := w.Proxy().Flap(10*time.Millisecond, 50*time.Millisecond, 1)
		zktest.Eventually(t, patience, func() bool { return w.Proxy().Stats().Cut >= 2 },
			"the client is cut, comes back, is cut")
		require.GreaterOrEqual(t, stop(), 2)
		require.Equal(t, stop(), w.Proxy().Stats().Cut, "a second stop gives the same answer")
		zktest.Eventually(t, patience, func() bool { return conn.State() == zk.StateHasSession }, "the client comes back")
	})
}

func TestNonsenseIsLeftForTheServerToJudge(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		for name, bytes := range map[string]string{
			"a length beyond all bounds": "\xff\xff\xff\xff rest",
			"a connect packet too short": "\x00\x00\x00\x02ab",
			"an empty packet":            "\x00\x00\x00\x00",
		} {
			conn, err := net.Dial("tcp", w.Proxy().Addr())
			require.NoError(t, err)
			require.NoError(t, coordtest.Err(conn.Write([]byte(bytes))))
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			_, err = io.ReadAll(conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%s: the server closes the connection", name)
			require.NoError(t, conn.Close())
		}
	})
}

func TestClosingAProxyEndsWhatItHolds(t *testing.T) {
	t.Parallel()
	client, _, p := rawPair(t)
	p.Blackhole(proxy.Both)
	stop := p.Flap(time.Hour, time.Hour, 1)
	require.NoError(t, coordtest.Err(client.Write([]byte("never"))))
	p.Close()
	p.Close()
	require.Zero(t, stop())
	require.Error(t, coordtest.Err(client.Read(make([]byte, 1))))
	require.Error(t, coordtest.Err(net.Dial("tcp", p.Addr())))
}

func TestMain(m *testing.M) { zktest.Main(m) }

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// sessionTimeout is more than what a busy machine takes to answer: by itself, a
// client gives no connection up.
const sessionTimeout = 30 * time.Second

// rawServer is a listener behind a raw proxy.
func rawServer(t *testing.T) (net.Listener, *proxy.Proxy) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	p, err := proxy.NewRaw(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return listener, p
}

// rawPair is both ends of one connection through a raw proxy.
func rawPair(t *testing.T) (client, server net.Conn, p *proxy.Proxy) {
	t.Helper()
	listener, p := rawServer(t)
	client, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	require.NoError(t, coordtest.Err(client.Write([]byte("x"))))
	server, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	require.NoError(t, coordtest.Err(server.Read(make([]byte, 1))))
	return client, server, p
}

// client is a session through the world's proxy, and the namespace's root to
// work in.
func client(t *testing.T, w *zktest.World) *zk.Conn {
	t.Helper()
	exists, _, err := w.Admin().Exists(w.Path(""))
	require.NoError(t, err)
	if !exists {
		require.NoError(t, create(w.Admin(), w.Path("")))
	}
	return zktest.Connect(t, w.Proxy().Addr(), sessionTimeout)
}

func create(conn *zk.Conn, path string) error {
	_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

func exists(t *testing.T, w *zktest.World, rel string) bool {
	t.Helper()
	found, _, err := w.Admin().Exists(w.Path(rel))
	require.NoError(t, err)
	return found
}

func TestALostReplyLeavesTheRequestApplied(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		lost := w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: w.Path("a"), Do: proxy.CutOnReply})
		require.NoError(t, create(conn, w.Path("b")), "another path is not meant")

		require.ErrorIs(t, create(conn, w.Path("a")), zk.ErrConnectionClosed)
		zktest.Receive(t, patience, lost.First(), "the fault fires")
		require.True(t, exists(t, w, "a"), "the server had answered")

		zktest.Eventually(t, patience, func() bool { return create(conn, w.Path("a")) == zk.ErrNodeExists },
			"the client is back, and the fault is used up")
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, w.Proxy().Stats().Cut)
	})
}

func TestACutAfterARequestReachesTheServerNonetheless(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		cut := w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Do: proxy.CutAfter})
		require.ErrorIs(t, create(conn, w.Path("a")), zk.ErrConnectionClosed)
		zktest.Eventually(t, patience, func() bool { return exists(t, w, "a") }, "the request is applied")
		require.Equal(t, 1, cut.Fired())
	})
}

func TestADroppedRequestNeverReachesTheServer(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		cut := w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Do: proxy.DropAndCut})
		require.ErrorIs(t, create(conn, w.Path("a")), zk.ErrConnectionClosed)
		require.Equal(t, 1, cut.Fired())
		zktest.Eventually(t, patience, func() bool { // earlier requests may fail
			_, _, err := conn.Exists(w.Path("a"))
			return err == nil
		}, "the client is back")

		silent := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Do: proxy.Drop})
		result := coordtest.Go(func() error { return conn.Delete(w.Path("a"), -1) })
		zktest.Receive(t, patience, silent.First(), "the delete is dropped")
		_, _, err := conn.Exists(w.Path("a"))
		require.NoError(t, err, "the connection stays")
		require.False(t, exists(t, w, "a"))
		require.Empty(t, result, "the delete has no answer")
		require.Equal(t, 1, w.Proxy().CutAll())
		require.ErrorIs(t, zktest.Receive(t, patience, result, "the delete ends"), zk.ErrConnectionClosed)
	})
}

func TestAHeldRequestKeepsItsPlaceUntilItIsReleased(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		release := make(chan struct{})
		held := w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: w.Path("a"), Do: proxy.Hold(release)})
		results := make(chan error, 2)
		go func() { results <- create(conn, w.Path("a")) }()
		zktest.Receive(t, patience, held.First(), "the create is held")
		go func() { results <- create(conn, w.Path("a/b")) }() // fails unless it comes second

		require.False(t, exists(t, w, "a"))
		close(release)
		require.NoError(t, zktest.Receive(t, patience, results, "the first create ends"))
		require.NoError(t, zktest.Receive(t, patience, results, "the second create ends"))
	})
}

func TestADelayedReplyComesNoEarlier(t *testing.T) {
	t.Parallel()
	const delay = 150 * time.Millisecond
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		for _, action := range []proxy.Action{proxy.Delay(delay), proxy.DelayReply(delay)} {
			rule := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpExists}, Do: action})
			begin := time.Now()
			_, _, err := conn.Exists(w.Path(""))
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(begin), delay)
			require.Equal(t, 1, rule.Fired())
		}
	})
}

func TestAnErrorCanBePutInTheServersMouth(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Do: proxy.Reject(-127)})
		require.ErrorContains(t, create(conn, w.Path("a")), "-127")
		require.False(t, exists(t, w, "a"), "rejected before the server saw it")
	})
}

func TestSkipTimesAndWhereChooseTheVictims(t *testing.T) {
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		third := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpExists}, Skip: 2, Times: 2, Do: proxy.Watch})
		mine := w.Proxy().Inject(proxy.Fault{
			On: []int32{proxy.OpMulti}, Path: w.Path("b"), Times: proxy.Always, Do: proxy.Watch,
			Where: func(f *proxy.Frame) bool {
				return f.Session == conn.SessionID() && slices.Contains(f.Paths, w.Path("a"))
			},
		})
		for i, want := range []int{0, 0, 1, 2, 2} {
			_, _, err := conn.Exists(w.Path(""))
			require.NoError(t, err)
			require.Equal(t, want, third.Fired(), "after %d requests", i+1)
		}
		acl := zk.WorldACL(zk.PermAll)
		for range 2 {
			_, err := conn.Multi(&zk.CreateRequest{Path: w.Path("a"), Acl: acl},
				&zk.SetDataRequest{Path: w.Path("a"), Version: -1},
				&zk.CreateRequest{Path: w.Path("b"), Acl: acl}, &zk.DeleteRequest{Path: w.Path("b"), Version: -1},
				&zk.CheckVersionRequest{Path: w.Path("a"), Version: -1}, &zk.DeleteRequest{Path: w.Path("a"), Version: -1})
			require.NoError(t, err)
		}
		require.Equal(t, 2, mine.Fired())
		mine.Remove()
		require.Error(t, coordtest.Err(conn.Multi(&zk.CheckVersionRequest{Path: w.Path("b"), Version: -1})))
		require.Equal(t, 2, mine.Fired(), "a removed rule sees nothing")
		require.Equal(t, 3, w.Proxy().Requests()[proxy.OpMulti])
		w.Proxy().ResetRequests()
		require.Zero(t, w.Proxy().Requests()[proxy.OpMulti])
	})
}
