package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// sessions are the sessions of one task, and the goroutines that use them.
type sessions struct {
	open   open
	all    []*session
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu  sync.Mutex
	err error // the first that came before the end
}

// openAll opens a task's sessions, some at a time.
func (s *sessions) openAll(t task) ([]*session, error) {
	all := make([]*session, t.sessions)
	err := together(t.sessions, func(i int) (err error) {
		all[i], err = s.open(s.ctx, t.addrs[i%len(t.addrs)], t.timeout)
		return err
	})
	s.all = append(s.all, all...)
	return all, err
}

// openOne opens a session more.
func (s *sessions) openOne(t task) (*session, error) {
	one, err := s.open(s.ctx, t.addrs[0], t.timeout)
	s.all = append(s.all, one)
	return one, err
}

// acquire acquires a lock, which is kept until the session is closed.
func (s *sessions) acquire(by *session, path string) error {
	lock, err := by.lock(path)
	if err == nil {
		_, err = lock(s.ctx)
	}
	return err
}

// work runs f in a goroutine, which is to end when the context does.
func (s *sessions) work(f func(ctx context.Context) error) {
	s.wg.Go(func() { s.note(f(s.ctx)) })
}

// note keeps an error, unless all is over and errors are expected.
func (s *sessions) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil && s.err == nil {
		s.err = err
	}
}

func (s *sessions) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// endsWithin is how long a goroutine may go on when its session is closed. Some
// wait for ever in go-zookeeper's lock, when a watch is made at that moment.
const endsWithin = 3 * time.Second

// close ends what is under way: by the context, or, if a contender ignores it,
// with its connection.
func (s *sessions) close() {
	s.cancel()
	var closing sync.WaitGroup
	for _, one := range s.all {
		if one != nil {
			closing.Go(one.close)
		}
	}
	closing.Wait()
	ended := make(chan struct{})
	go func() { s.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(endsWithin):
	}
}

// tick is the tick of the real ZooKeeper servers.
const tick = 500 * time.Millisecond

// server is one of a site, with a proxy in front of it that counts, and delays
// what a link would.
type server struct {
	addr  string
	pid   int
	other bool // than ZooKeeper's protocol
	proxy *proxy.Proxy
	// counts says how many requests the server has had and answered; it is nil
	// where the proxy knows.
	counts func() (requests, answers int, err error)
}

// writes returns how many requests it was sent that its ensemble agrees on.
func (s *server) writes() (n int) {
	if !s.other {
		for _, op := range []int32{1, 2, 5, 14, 15, 19, 21, -11} { // ZooDefs.OpCode
			n += s.proxy.Requests()[op]
		}
	}
	return n
}

// address is the way to the server, past the proxy if that has nothing to do.
func (s *server) address(through bool) string {
	if through {
		return s.proxy.Addr()
	}
	return s.addr
}

// start puts the proxy in front.
func (s *server) start(t testing.TB, delay time.Duration) {
	t.Helper()
	begin := proxy.New
	if s.other {
		begin = proxy.NewRaw
	}
	var err error
	s.proxy, err = begin(s.addr)
	require.NoError(t, err)
	t.Cleanup(s.proxy.Close)
	if delay > 0 {
		s.proxy.Delay(proxy.Both, delay, 0)
	}
}

// startServers starts what contenders of a kind of server need.
func startServers(t testing.TB, kind string, n int) []*server {
	t.Helper()
	switch kind {
	case etcdServer:
		return startEtcd(t, n)
	case redisServer:
		return startRedis(t)
	}
	return startZooKeeper(t, n)
}

// startZooKeeper starts servers with a compiler that is worth measuring. The
// leader comes last: single sessions get a follower.
func startZooKeeper(t testing.TB, n int) (all []*server) {
	t.Helper()
	options := []zktest.ServerOption{
		zktest.WithTick(tick), zktest.WithJVM("-XX:TieredStopAtLevel=4", "-XX:CompileThresholdScaling=1", "-Xmx512m"),
	}
	if n == 1 {
		one := zktest.RequireReal(t, options...)
		return []*server{{addr: one.Addr(), pid: one.PID()}}
	}
	ensemble := zktest.RequireEnsemble(t, options...)
	leader, err := ensemble.Leader()
	require.NoError(t, err)
	for _, s := range append(ensemble.Followers(), leader) {
		all = append(all, &server{addr: s.Addr(), pid: s.PID()})
	}
	return all
}

// startEtcd starts Debian's etcd, with its data in memory as ZooKeeper's.
func startEtcd(t testing.TB, n int) (all []*server) {
	t.Helper()
	var clients, members, cluster []string
	for i := range n {
		clients, members = append(clients, freeAddress(t)), append(members, freeAddress(t))
		cluster = append(cluster, fmt.Sprintf("n%d=http://%s", i, members[i]))
	}
	for i := range n {
		child := command(t, "etcd", "--name", fmt.Sprintf("n%d", i), "--data-dir", memoryDir(t), "--log-level", "error",
			"--listen-client-urls", "http://"+clients[i], "--advertise-client-urls", "http://"+clients[i],
			"--listen-peer-urls", "http://"+members[i], "--initial-advertise-peer-urls", "http://"+members[i],
			"--initial-cluster", strings.Join(cluster, ","))
		counts := func() (requests, answers int, err error) { return etcdCounts(clients[i]) }
		all = append(all, &server{addr: clients[i], pid: child.PID(), other: true, counts: counts})
	}
	for _, s := range all {
		zktest.Eventually(t, time.Minute, func() bool {
			answer, err := get("http://" + s.addr + "/health")
			return err == nil && strings.Contains(answer, `"true"`)
		}, "etcd at %s does not serve", s.addr)
	}
	return all
}

// etcdCounts sums up the messages that a server was sent, and has sent.
func etcdCounts(addr string) (requests, answers int, err error) {
	metrics, err := get("http://" + addr + "/metrics")
	for line := range strings.Lines(metrics) {
		name, _, _ := strings.Cut(line, "{")
		n, _ := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
		switch name {
		case "grpc_server_msg_received_total":
			requests += n
		case "grpc_server_msg_sent_total":
			answers += n
		}
	}
	return requests, answers, err
}

func get(url string) (string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// startRedis starts Debian's Redis, which keeps nothing. It is always one.
func startRedis(t testing.TB) []*server {
	t.Helper()
	addr := freeAddress(t)
	_, port, _ := net.SplitHostPort(addr)
	child := command(t, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--logfile", "/dev/null")
	zktest.Eventually(t, time.Minute, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, "Redis does not serve")
	return []*server{{addr: addr, pid: child.PID(), other: true}}
}

// command runs a command that is installed.
func command(t testing.TB, name string, args ...string) *zktest.ChildProcess {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, `"make bench" installs it, or: apt-get install %s-server`, strings.TrimSuffix(name, "-server"))
	return interop.Program{path}.Start(t, args...)
}

// memoryDir is a folder in memory where there is such a file system.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bench-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// freeAddress is free now; no other takes it in the second until it is used.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
