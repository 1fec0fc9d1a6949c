package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestABlackHoleKeepsWhatIsUnderWayUntilHealed(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, way := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
			conn := zktest.Connect(t, w.Proxy().Addr(), 20*time.Second) // pings rarely
			name := map[proxy.Direction]string{proxy.ToServer: "request", proxy.ToClient: "reply"}[way]
			before := w.Proxy().Stats().Held
			w.Proxy().Blackhole(way)
			result := make(chan error, 1)
			go func() { result <- create(conn, w.Path("")+"-"+name) }()
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

	got := make(chan error, 1)
	go func() { _, err := server.Read(make([]byte, 1)); got <- err }()
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
	_, err = given.Write([]byte("up"))
	require.NoError(t, err)
	zktest.Eventually(t, patience, func() bool { return p.Stats().Held == 1 }, "it waits")
	require.NoError(t, given.Close())
	zktest.Eventually(t, patience, func() bool { return p.Stats().GivenUp == 1 }, "the proxy has noticed")
	p.Heal()

	later, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer later.Close()
	_, err = later.Write([]byte("kept"))
	require.NoError(t, err)
	server, err := listener.Accept()
	require.NoError(t, err)
	defer server.Close()
	first := make([]byte, 4)
	_, err = io.ReadFull(server, first)
	require.NoError(t, err)
	require.Equal(t, "kept", string(first))
	require.Equal(t, 1, p.Stats().Conns)
}

func TestADirectionThatIsCutLosesWhatItHeld(t *testing.T) {
	t.Parallel()
	client, server, p := rawPair(t)
	p.Blackhole(proxy.ToServer)
	_, err := client.Write([]byte("lost"))
	require.NoError(t, err)
	zktest.Eventually(t, patience, func() bool { return p.Stats().Held > 0 }, "it is held")
	require.Equal(t, 1, p.CutWay(proxy.ToServer))
	require.Zero(t, p.CutWay(proxy.ToServer))
	p.Heal()
	_, err = client.Write([]byte("lost, too"))
	require.NoError(t, err)
	zktest.Eventually(t, patience, func() bool { return p.Stats().Lost == 2 }, "counted")
	_, err = server.Write([]byte("!"))
	require.NoError(t, err)
	_, err = client.Read(make([]byte, 1))
	require.NoError(t, err, "the other direction goes on")
	require.Equal(t, 1, p.CutAll())
	_, err = server.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestARefusedConnectionEndsAndAHungOneStaysSilent(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
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
		_, err = hung.Write([]byte("ruok"))
		require.NoError(t, err)
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
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		conn := client(t, w)
		stop := w.Proxy().Flap(10*time.Millisecond, 50*time.Millisecond, 1)
		zktest.Eventually(t, patience, func() bool { return w.Proxy().Stats().Cut >= 2 }, "the client is cut, comes back, is cut")
		require.GreaterOrEqual(t, stop(), 2)
		require.Equal(t, stop(), w.Proxy().Stats().Cut, "a second stop gives the same answer")
		zktest.Eventually(t, patience, func() bool { return conn.State() == zk.StateHasSession }, "the client comes back")
	})
}

func TestNonsenseIsLeftForTheServerToJudge(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for name, bytes := range map[string]string{
			"a length beyond all bounds": "\xff\xff\xff\xff rest",
			"a connect packet too short": "\x00\x00\x00\x02ab",
			"an empty packet":            "\x00\x00\x00\x00",
		} {
			conn, err := net.Dial("tcp", w.Proxy().Addr())
			require.NoError(t, err)
			_, err = conn.Write([]byte(bytes))
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			_, err = io.ReadAll(conn)
			require.NotErrorIs(t, err, errTimeout, "%s: the server closes the connection", name)
			require.NoError(t, conn.Close())
		}
	})
}

func TestClosingAProxyEndsWhatItHolds(t *testing.T) {
	t.Parallel()
	client, _, p := rawPair(t)
	p.Blackhole(proxy.Both)
	stop := p.Flap(time.Hour, time.Hour, 1)
	_, err := client.Write([]byte("never"))
	require.NoError(t, err)
	p.Close()
	p.Close()
	require.Zero(t, stop())
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", p.Addr())
	require.Error(t, err)
}
