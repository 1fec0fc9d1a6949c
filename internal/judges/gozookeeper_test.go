package judges

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// leftOut are go-zookeeper's tests for which it starts an ensemble.
const leftOut = "BasicCluster|ClientClusterFailover|NoQuorum|RecurringReAuthHang|DNSHostProviderReconnect|Reconfig"

// go-zookeeper's own tests, on zkembed: they start and kill a script, which
// stands for a server.
func TestGoZookeeperAcceptsTheEmbeddedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("most of a minute: make judges")
	}
	zktest.Require(t, zktest.Embedded)
	bin := t.TempDir()
	host, port, err := net.SplitHostPort(standIns(t))
	require.NoError(t, err)
	zktest.WriteProgram(t, bin+"/zkServer.sh", fmt.Appendf(nil, `#!/bin/bash
exec 3<>/dev/tcp/%s/%s
sed -n s/clientPort=//p "$2" >&3
exec cat <&3
`, host, port), 0o700)

	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-timeout=5m",
		"-run=Integration", "-skip="+leftOut, "github.com/go-zookeeper/zk")
	cmd.Env = append(os.Environ(), "ZOOKEEPER_BIN_PATH="+bin)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Equal(t, 21, strings.Count(string(output), "\n--- PASS: "), "%s", output)
}

// standIns has an embedded server up on each port that somebody has sent it, a
// line each, for as long as the connection lasts. One that comes again on its
// port has its data still.
func standIns(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	servers := map[string]*zkembed.Server{} // by port
	serve := func(port string) (s *zkembed.Server, err error) {
		mu.Lock()
		defer mu.Unlock()
		if s = servers[port]; s != nil {
			s.Resume()
			return s, nil
		}
		s, err = zkembed.Start(zkembed.WithAddr("127.0.0.1:"+port), zkembed.WithTick(500*time.Millisecond)) // theirs
		if err == nil {
			servers[port] = s
		}
		return s, err
	}
	var standing sync.WaitGroup
	standIn := func(c net.Conn) {
		defer c.Close()
		lines := bufio.NewReader(c)
		port, _ := lines.ReadString('\n')
		s, err := serve(strings.TrimSpace(port))
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = lines.ReadByte() // until the script is killed
		s.Stop()
	}
	standing.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			standing.Go(func() { standIn(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		standing.Wait()
		for _, s := range servers {
			_ = s.Close()
		}
	})
	return l.Addr().String()
}
