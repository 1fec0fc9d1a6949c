package zkembed

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// version is the release whose behaviour this server follows. Kazoo reads it.
const version = "3.8.0-zkembed, built on 01/01/2024 00:00 UTC"

// fourLetterWords are the commands that a connection may begin with instead
// of a session. They run with mu held.
var fourLetterWords = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"isro": func(*Server) string { return "rw" },
	"srvr": (*Server).srvr,
	"stat": (*Server).statWord,
	"cons": (*Server).cons,
	"mntr": (*Server).mntr,
	"conf": (*Server).conf,
	"envi": (*Server).envi,
}

func (s *Server) fourLetter(word string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fourLetterWords[word](s)
}

func (s *Server) traffic() (received, sent, alive int64) {
	for c := range s.conns {
		received += c.recv
		sent += c.sent
		if c.session != nil {
			alive++
		}
	}
	return received, sent, alive
}

// nodeCount counts the root twice, as a real server does, which knows it by two
// names.
func (s *Server) nodeCount() int { return len(s.leader.tree.nodes) + 1 }

func (s *Server) srvr() string {
	received, sent, alive := s.traffic()
	return fmt.Sprintf("Zookeeper version: %s\nLatency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\n"+
		"Connections: %d\nOutstanding: 0\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		version, received, sent, alive, s.leader.tree.zxid, s.nodeCount())
}

func (s *Server) statWord() string {
	first, rest, _ := strings.Cut(s.srvr(), "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nClients:\n", first)
	for _, c := range s.sortedConns() {
		fmt.Fprintf(&b, " /%s[%d](queued=0,recved=%d,sent=%d)\n", c.remote, connected(c), c.recv, c.sent)
	}
	return b.String() + "\n" + rest
}

func (s *Server) cons() string {
	var b strings.Builder
	for _, c := range s.sortedConns() {
		fmt.Fprintf(&b, " /%s[%d](queued=0,recved=%d,sent=%d", c.remote, connected(c), c.recv, c.sent)
		if c.session != nil {
			fmt.Fprintf(&b, ",sid=%s,est=%d,to=%d", sessionName(c.session.id), c.since.UnixMilli(),
				c.session.timeout.Milliseconds())
			if !c.heard.IsZero() {
				fmt.Fprintf(&b, ",lresp=%d", c.heard.Sub(s.started).Milliseconds())
			}
		}
		b.WriteString(")\n")
	}
	return b.String() + "\n"
}

func connected(c *conn) int {
	if c.session == nil {
		return 0
	}
	return 1
}

func (s *Server) sortedConns() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns),
		func(a, b *conn) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) })
}

// figure is a figure that mntr and the admin server's monitor report.
type figure struct {
	key   string
	value any
}

func (s *Server) monitored() []figure {
	received, sent, alive := s.traffic()
	ephemerals := 0
	for _, paths := range s.leader.tree.ephemerals {
		ephemerals += len(paths)
	}
	return []figure{
		{"version", version},
		{"server_state", "standalone"},
		{"packets_received", received},
		{"packets_sent", sent},
		{"num_alive_connections", alive},
		{"outstanding_requests", 0},
		{"znode_count", s.nodeCount()},
		{"watch_count", s.watchCount()},
		{"ephemerals_count", ephemerals},
		{"global_sessions", len(s.sessions)},
		{"uptime", time.Since(s.started).Milliseconds()},
	}
}

func (s *Server) mntr() string {
	var b strings.Builder
	for _, kv := range s.monitored() {
		fmt.Fprintf(&b, "zk_%s\t%v\n", kv.key, kv.value)
	}
	return b.String()
}

func (s *Server) conf() string {
	return fmt.Sprintf("clientPort=%s\ntickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=1\n",
		s.port(), s.cfg.tick.Milliseconds(), s.cfg.minTime.Milliseconds(), s.cfg.maxTime.Milliseconds())
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr()) // an IPv6 address has colons, too
	return port
}

func (s *Server) envi() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("Environment:\nzookeeper.version=%s\nhost.name=%s\nos.name=%s\nos.arch=%s\n",
		version, host, runtime.GOOS, runtime.GOARCH)
}
