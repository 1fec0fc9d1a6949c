package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// answerNames is the name server of this package's tests: it answers for
// "two.test" with 127.0.0.2 and 127.0.0.3, and for "slow.test" after three
// seconds with 127.0.0.1.
func answerNames(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		for {
			head := make([]byte, 2)
			if _, err := io.ReadFull(far, head); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(head))
			if _, err := io.ReadFull(far, query); err != nil {
				return
			}
			answer := answerName(query)
			_, _ = far.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}
	}()
	return near, nil
}

// answerName answers one query (RFC 1035, 4.1).
func answerName(query []byte) []byte {
	const header, typeA = 12, 1
	end := header
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the last label, the type and the class
	name := string(query[header+1 : end-5])
	var last []byte // of 127.0.0.x
	switch {
	case binary.BigEndian.Uint16(query[end-4:]) != typeA:
	case strings.HasPrefix(name, "two"):
		last = []byte{2, 3}
	case strings.HasPrefix(name, "slow"):
		<-time.After(3 * time.Second)
		last = []byte{1}
	}
	answer := append([]byte{}, query[:end]...)
	answer[2], answer[3] = 0x81, 0x80 // an answer, by a server that asks others
	clear(answer[6:header])
	answer[7] = byte(len(last))
	for _, b := range last {
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, b)
	}
	return answer
}

// relay forwards connections, each when prepare has returned, until it is
// closed.
type relay struct {
	net.Listener
	accepted atomic.Int32
	mu       sync.Mutex
	conns    []net.Conn
	running  sync.WaitGroup
}

// relayTo listens on addr and forwards to a server; nothing answers if that is
// "".
func (s scene) relayTo(addr, server string, prepare func(net.Conn) net.Conn) *relay {
	s.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(s, err)
	r := &relay{Listener: l}
	r.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			r.keep(conn)
			if server != "" {
				r.running.Go(func() { r.forward(prepare(conn), server) })
			}
		}
	})
	s.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.running.Wait()
	})
	return r
}

func (r *relay) keep(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
}

func (r *relay) forward(conn net.Conn, server string) {
	defer conn.Close()
	back, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	r.keep(back)
	defer back.Close()
	r.running.Go(func() {
		_, _ = io.Copy(back, conn)
		_ = back.Close()
	})
	_, _ = io.Copy(conn, back)
}

// cut ends every connection.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

func TestF52AConnectionThatTakesSecondsIsMade(t *testing.T) {
	each(t, func(s scene) {
		secured := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
		secured.Close()
		pool := x509.NewCertPool()
		pool.AddCert(secured.Certificate())
		var reached atomic.Int32
		slow := func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-time.After(1100 * time.Millisecond):
				reached.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		terminator := s.relayTo("127.0.0.1:0", s.w.ConnectString(), func(conn net.Conn) net.Conn {
			<-time.After(6 * time.Second)
			return tls.Server(conn, &tls.Config{Certificates: secured.TLS.Certificates})
		})
		secure := coord.WithTLS(&tls.Config{RootCAs: pool})
		_, port, err := net.SplitHostPort(s.w.ConnectString())
		require.NoError(s, err)
		for what, open := range map[string]func() *coord.Client{
			"TCP, 1.1 s":         func() *coord.Client { return s.client(coord.WithDialer(slow)) },
			"a name server, 3 s": func() *coord.Client { return s.open("slow.test:" + port) },
			"TLS, 6 s":           func() *coord.Client { return s.open(terminator.Addr().String(), secure) },
			"both, over the dialer": func() *coord.Client {
				return s.open(terminator.Addr().String(), coord.WithDialer(slow), secure)
			},
		} {
			s.Run(what, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				c := open()
				t.Logf("connected after %v", time.Since(begun))
				require.NoError(t, coordtest.Write(t.Context(), c))
			})
		}
	})
}

func TestF54EachAddressOfAHostNameIsAServer(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 3 * T // the machine may stand still for a moment
		lasts := s.lasting(timeout)
		hung := s.relayTo("127.0.0.2:0", "", nil)
		port := hung.Addr().(*net.TCPAddr).Port
		plain := func(conn net.Conn) net.Conn { return conn }
		good := s.relayTo("127.0.0.3:"+strconv.Itoa(port), s.w.ConnectString(), plain)
		for range 6 {
			begun := time.Now()
			c := s.open("two.test:"+strconv.Itoa(port), lasts)
			s.onTime("connected", begun, timeout, time.Now())
			h := s.acquire(c)
			good.cut()
			require.NoError(s, coordtest.Write(s.Context(), c))
			require.NoError(s, h.Err(), "kept over the loss of the connection")
			s.release(h)
			require.NoError(s, c.Close(context.Background()))
		}
		s.Logf("%d connections to the address that does not answer", hung.accepted.Load())
		require.Positive(s, hung.accepted.Load())
	})
}

// leader returns the ensemble's leader.
func (s scene) leader(except ...*zktest.Server) *zktest.Server {
	s.Helper()
	leader, err := s.w.Ensemble().Leader(except...)
	require.NoError(s, err)
	return leader
}

// learns waits until a server that was started again carries out writes.
// Servers of 3.8.0 that are killed in quick succession, while one is still
// learning from the leader, can end up with different trees, or without a
// leader.
func (s scene) learns(server *zktest.Server) {
	s.Helper()
	s.leader()
	c := coordtest.Open(s, server.ConnectString())
	require.NoError(s, coordtest.Write(coordtest.Limited(s), c))
	require.NoError(s, c.Close(coordtest.Limited(s)))
}

// clients opens n clients that know all servers.
func (s scene) clients(n int, opts ...coord.Option) (clients []*coord.Client) {
	s.Helper()
	for range n {
		clients = append(clients, s.client(opts...))
	}
	return clients
}

func TestF14TheLeaderStops(t *testing.T) {
	onEnsemble(t, func(s scene) {
		c := s.contest(s.clients(3), steady(10*time.Millisecond))
		c.progresses(patience)
		leader := s.leader()
		require.NoError(s, leader.Stop())
		stopped := time.Now()
		next := s.leader(leader)
		require.NotEqual(s, leader, next)
		c.progresses(progress)
		s.Logf("granted again %v after the leader stopped", time.Since(stopped))
		require.NoError(s, leader.Continue())
		require.NoError(s, s.w.Ensemble().AwaitReady())
		c.progresses(progress)
		c.stop()
	}, zktest.WithSyncLimit(10))
}

func TestF15TheLeaderIsKilled(t *testing.T) {
	onEnsemble(t, func(s scene) {
		c := s.contest(s.clients(3), steady(10*time.Millisecond))
		c.progresses(patience)
		leader := s.leader()
		require.NoError(s, leader.Kill())
		killed := time.Now()
		s.leader(leader)
		c.progresses(progress)
		s.Logf("granted again %v after the leader was killed", time.Since(killed))
		require.NoError(s, leader.Restart())
		c.progresses(progress)
		c.stop()
	})
}

// The busy clients hand a lock on. The others, one at each server, hold locks
// and do nothing, with a session timeout that an attendant lets be long.
func TestF16ARollingRestartLosesNoHold(t *testing.T) {
	onEnsemble(t, func(s scene) {
		const timeout, attended = 5 * T, 30 * time.Second // an election takes about a second
		s.w.SetTimeout(attended)
		servers := s.w.Ensemble().Servers()
		leader := slices.Index(servers, s.leader())
		servers = slices.Concat(servers[leader:], servers[:leader])
		attendant, socket := s.attendant()
		var idle []*coord.Client
		var holds []*coord.Hold
		for i, server := range servers {
			opts := []coord.Option{coord.WithSessionTimeout(attended), coord.WithDialer(dialAtFirst(server))}
			if i > 0 {
				opts = append(opts, coord.WithAttendant(socket))
			}
			c := s.client(opts...)
			for j := range []int{1, 1, 50}[i] {
				holds = append(holds, s.acquireAt(c, s.w.Path(fmt.Sprint("lock-of-", i, "-", j))))
			}
			idle = append(idle, c)
		}
		zktest.Eventually(s, patience, func() bool { return attendant.Stats().Sessions == 2 }, "they are not attended")
		lost, count := counting(func(e event.Event) bool { return errors.Is(e.Err, coord.ErrLost) })
		c := s.contest(s.clients(3, coord.WithSessionTimeout(timeout), count), steady(20*time.Millisecond))
		for i, server := range servers {
			c.progresses(patience)
			zktest.Eventually(s, patience, func() bool { return connected(idle[i], server) }, "the server's client is elsewhere")
			require.NoError(s, server.Kill())
			c.progresses(patience)
			require.NoError(s, coordtest.Write(s.Context(), idle[i]), "at another server")
			require.NoError(s, server.Restart())
			s.learns(server)
			c.progresses(patience)
		}
		c.stop()
		require.Zero(s, lost.Load())
		require.Zero(s, c.lost)
		for _, h := range holds {
			require.NoError(s, h.Err())
			s.release(h)
		}
		require.Equal(s, attend.Stats{Connections: 2, Sessions: 2}, attendant.Stats())
	})
}

// attendant starts one for as long as the scenario lasts.
func (s scene) attendant() (a *attend.Attendant, socket string) {
	s.Helper()
	dir, err := os.MkdirTemp("", "attend") // a short name, for a socket
	require.NoError(s, err)
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = dir + "/s"
	l, err := attend.Listen(socket, 0o600)
	require.NoError(s, err)
	a = attend.New(attend.Options{Grace: time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	served := coordtest.Go(func() error { return a.Serve(ctx, l) })
	s.Cleanup(func() {
		cancel()
		require.NoError(s, zktest.Receive(s, patience, served, "the attendant does not end"))
	})
	return a, socket
}

// dialAtFirst connects to one server as long as that accepts connections.
func dialAtFirst(server *zktest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, network, server.Addr()); err == nil {
			return conn, nil
		}
		return dialer.DialContext(ctx, network, addr)
	}
}

// connected reports whether a client is connected to a server, which says so.
func connected(c *coord.Client, server *zktest.Server) bool {
	connections, err := server.FourLetter("cons")
	return err == nil && strings.Contains(connections, fmt.Sprintf("sid=0x%x,", uint64(c.Info().SessionID)))
}

func TestF17TwoOfThreeServersAreDownForLongerThanTheSessionTimeout(t *testing.T) {
	onEnsemble(t, func(s scene) {
		ens := s.w.Ensemble()
		clients := s.clients(3)
		h := s.acquire(clients[0])
		waiting := s.waiter(clients[1], 2)
		held := []*coord.Hold{h}
		for i, c := range clients {
			held = append(held, s.acquireAt(c, s.w.Path(fmt.Sprint("lock-of-", i))))
		}
		down := []*zktest.Server{s.leader(), ens.Followers()[0]}
		for _, server := range down {
			require.NoError(s, server.Kill())
		}
		killed := time.Now()
		s.endWithTheirWindow(held...)
		s.wait(2*T, killed)
		require.Empty(s, waiting, "a grant without a quorum")
		for _, server := range down {
			require.NoError(s, server.Launch())
		}
		require.NoError(s, ens.AwaitReady())
		ready := time.Now()
		next, granted := s.granted(waiting)
		s.onTime("granted", ready, progress, granted)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
		c := s.contest(clients, steady(time.Millisecond))
		c.progresses(progress)
		c.stop()
	})
}

// A follower that is cut off from its leader goes on answering its clients,
// while the leader expires their sessions.
func TestF18TheHoldersFollowerIsCutOffFromItsLeader(t *testing.T) {
	onEnsemble(t, func(s scene) {
		ens := s.w.Ensemble()
		follower, leader := ens.Followers()[0], s.leader()
		h := s.acquire(s.open(follower.Addr()))
		witness := zktest.Connect(s, follower.Addr(), T)
		waiter := s.start(context.Background(), s.open(leader.Addr()))
		s.awaitWatchers(h.Node(), 2)
		ended := s.endOf(h)
		ens.Link(follower).Isolate()
		next := s.succeeds(h, ended, waiter)
		_, _, err := witness.Get(h.Node())
		require.NoError(s, err, "the follower still answers, and shows the old holder's node")
		require.Positive(s, ens.Link(follower).Stats().Held, "the follower was not cut off")
		ens.Link(follower).Heal()
		require.NoError(s, ens.AwaitReady())
		s.release(next)
	}, zktest.WithQuorumLinks())
}

func TestF19AFollowerLagsBehind(t *testing.T) {
	onEnsemble(t, func(s scene) {
		const timeout, lag = 4 * T, 600 * time.Millisecond
		s.w.SetTimeout(timeout)
		ens := s.w.Ensemble()
		follower, leader := ens.Followers()[0], s.leader()
		atLeader := zktest.Connect(s, leader.Addr(), timeout)
		slow := s.open(follower.Addr(), coord.WithSessionTimeout(timeout))
		fast := s.open(leader.Addr(), coord.WithSessionTimeout(timeout))
		ens.Link(follower).Delay(lag)
		defer ens.Link(follower).Heal()
		var h *coord.Hold
		zktest.Eventually(s, patience, func() bool { // a process that stands still meanwhile sees nothing of it
			h = s.acquire(fast)
			_, shown, err := slow.Exists(s.Context(), h.Node())
			require.NoError(s, err)
			if shown {
				s.release(h)
			}
			return !shown
		}, "the follower does not lag")
		// The lagging server shows an empty line, and yet no two hold.
		_, err := s.mutex(slow).TryAcquire(s.Context())
		require.ErrorIs(s, err, coord.ErrBusy)
		require.NoError(s, coordtest.Write(s.Context(), slow))
		seen, err := slow.Children(s.Context(), s.dir())
		require.NoError(s, err)
		names, _, err := atLeader.Children(s.dir())
		require.NoError(s, err)
		require.Equal(s, names, seen, "up to date after a write")
		require.Len(s, seen, 1)
		s.release(h)
		c := s.contest([]*coord.Client{slow, fast, slow, fast}, steady(10*time.Millisecond))
		everyWorker := func() bool { return c.served(time.Time{}) == 4 && c.count() > 8 }
		zktest.Eventually(s, patience, everyWorker, "not every worker is granted the lock")
		c.stop()
		require.Zero(s, c.lost)
		require.Positive(s, ens.Link(follower).Stats().Delayed)
	}, zktest.WithQuorumLinks())
}

// The client's server and the next accept connections and answer nothing.
func TestF22TwoOfThreeServersHang(t *testing.T) {
	onEnsemble(t, func(s scene) {
		const timeout = 2 * T
		proxies := s.w.Proxies()
		var dials atomic.Int64
		inOrder := func() string { return proxies[(dials.Add(1)-1)%3].Addr() }
		c := s.behind(s.lasting(timeout), dialing(inOrder))
		h := s.acquire(c)
		require.EqualValues(s, 1, dials.Load())
		session := h.Session()
		for _, p := range proxies[:2] {
			p.Hang()
			p.Blackhole(proxy.Both)
		}
		hung := time.Now()
		require.NoError(s, coordtest.Write(s.Context(), c))
		require.Less(s, time.Since(hung), timeout)
		s.Logf("failed over in %v, T = %v", time.Since(hung), timeout)
		require.Equal(s, session, c.Info().SessionID)
		require.GreaterOrEqual(s, dials.Load(), int64(3))
		require.Positive(s, proxies[0].Stats().Held)
		require.Positive(s, proxies[1].Stats().Hung)
		s.release(h)
		require.Empty(s, s.nodes())
	})
}

func TestF23OnlyAReadOnlyServerIsLeft(t *testing.T) {
	onEnsemble(t, func(s scene) {
		servers := s.w.Ensemble().Servers()
		c := s.client()
		h := s.acquire(c)
		for _, server := range servers[:2] {
			require.NoError(s, server.Kill())
		}
		s.lost(h, patience)
		zktest.Eventually(s, patience, func() bool { return servers[2].Mode() == "read-only" },
			"the server does not turn read-only")
		s.failsBy(time.Now().Add(T), c)
		require.Equal(s, "read-only", servers[2].Mode())
		for _, server := range servers[:2] {
			require.NoError(s, server.Launch())
		}
		require.NoError(s, s.w.Ensemble().AwaitReady())
		s.release(s.acquire(c))
	}, zktest.WithProperty("readonlymode.enabled", "true"))
}

// A leader that stood still does not know that another was elected. For a
// moment it goes on serving the clients attached to it, and it acknowledges
// syncs, but no writes. The holder is attached to it, and cannot go elsewhere;
// the new leader gives its session T from the election on.
func TestF46ASupersededLeaderGoesOnServingTheHolder(t *testing.T) {
	onEnsemble(t, func(s scene) {
		s.w.SetTimeout(4 * T)
		for range 3 { // on a busy machine the old leader may learn it before it serves a client
			if s.supersede(4 * T) {
				return
			}
		}
		s.Error("the old leader never went on serving")
	}, zktest.WithSyncLimit(5))
}

// supersede reports whether the old leader went on serving while the hold
// lasted.
func (s scene) supersede(timeout time.Duration) (served bool) {
	s.Helper()
	leader := s.leader()
	witness := zktest.Connect(s, leader.Addr(), timeout)
	front := zktest.NewProxy(s, leader.Addr())
	holder := s.open(front.Addr(), coord.WithSessionTimeout(timeout))
	h := s.acquire(holder)
	front.Refuse()
	waiter := s.start(context.Background(), s.client(coord.WithSessionTimeout(timeout), s.dialOthers(leader)))
	s.awaitWatchers(h.Node(), 2)
	ended := s.endOf(h)
	require.NoError(s, leader.Stop())
	s.leader(leader)
	// All that the old leader acknowledges now comes long after the election.
	s.waitUntil(time.Now().Add(timeout / 6))
	answered := coordtest.Go(func() error {
		_, _, err := witness.Get("/") // fails if the connection does
		return err
	})
	stop := s.repeat(20*time.Millisecond, func(ctx context.Context) error { return coordtest.Write(ctx, holder) })
	held := h.Err() == nil
	require.NoError(s, leader.Continue())
	served = zktest.Receive(s, patience, answered, "the witness gets no answer") == nil && held
	next := s.succeeds(h, ended, waiter)
	s.Logf("served %v", served)
	stop()
	require.NoError(s, s.w.Ensemble().AwaitReady())
	s.release(next)
	return served
}

// dialOthers connects to the servers other than one.
func (s scene) dialOthers(one *zktest.Server) coord.Option {
	isOne := func(server *zktest.Server) bool { return server == one }
	others := slices.DeleteFunc(slices.Clone(s.w.Ensemble().Servers()), isOne)
	var dials atomic.Int64
	return dialing(func() string { return others[dials.Add(1)%int64(len(others))].Addr() })
}
