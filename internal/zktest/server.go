package zktest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// mainClass is what Debian's zkServer.sh starts, for a single server and for a
// member of an ensemble alike.
const mainClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// readyWithin bounds every wait for a server to serve. It starts in half a
// second on an idle machine.
const readyWithin = 60 * time.Second

// Server is one real ZooKeeper server: a child process that dies with the test
// binary. Its address stays the same over restarts. Its methods may be called
// from any goroutine.
type Server struct {
	dir    string // holds zoo.cfg, the log and data/
	id     int    // myid in an ensemble, 0 alone
	config serverConfig
	client *port

	mu   sync.Mutex
	proc *process
}

func newServer(id int, cfg serverConfig) (*Server, error) {
	dir, err := host.dataDir("server" + strconv.Itoa(id))
	if err != nil {
		return nil, err
	}
	client, err := reservePort()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, id: id, config: cfg.clone(), client: client}
	s.config.lines["dataDir"] = s.DataDir()
	s.config.lines["clientPort"] = strconv.Itoa(client.number)
	return s, nil
}

// startAlone starts a single server and waits until it serves.
func startAlone(opts []ServerOption) (*Server, error) {
	s, err := newServer(0, newServerConfig(opts))
	if err != nil {
		return nil, err
	}
	if err := s.Restart(); err != nil {
		s.close(true, "start")
		return nil, err
	}
	return s, nil
}

// DataDir returns the folder with the server's snapshots and logs of
// transactions.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

func (s *Server) log() string { return filepath.Join(s.dir, "server.log") }

// Addr returns the address clients connect to, "127.0.0.1:port".
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.client.number) }

// ConnectString returns the same as Addr.
func (s *Server) ConnectString() string { return s.Addr() }

// launch writes the configuration and starts the process, without waiting until
// it serves.
func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
	}
	java, classPath, err := findReal()
	if err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	cfg, err := s.writeConfig()
	if err == nil {
		err = s.removeEmptyLogs()
	}
	if err != nil {
		return err
	}
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	args = append(args, s.config.jvm...)
	for _, key := range slices.Sorted(maps.Keys(s.config.properties)) {
		args = append(args, "-D"+key+"="+s.config.properties[key])
	}
	cmd := exec.Command(java, append(args, "-cp", classPath, mainClass, cfg)...)
	out, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the child has its own
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	s.proc, err = start(cmd)
	return err
}

func (s *Server) writeConfig() (string, error) {
	if err := os.MkdirAll(s.DataDir(), 0o755); err != nil {
		return "", err
	}
	if s.id > 0 {
		if err := os.WriteFile(filepath.Join(s.DataDir(), "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o644); err != nil {
			return "", err
		}
	}
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(s.config.lines)) {
		fmt.Fprintf(&b, "%s=%s\n", key, s.config.lines[key])
	}
	path := filepath.Join(s.dir, "zoo.cfg")
	return path, os.WriteFile(path, b.Bytes(), 0o644)
}

// removeEmptyLogs removes logs of transactions without a header, which a server
// leaves that is killed when it has just begun one. ZooKeeper 3.8.0 does not
// start on them (an EOFException in FileHeader.deserialize).
func (s *Server) removeEmptyLogs() error {
	logs, err := filepath.Glob(filepath.Join(s.DataDir(), "version-2", "log.*"))
	for _, path := range logs {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && info.Size() == 0 {
			err = os.Remove(path)
		}
		if err != nil {
			break
		}
	}
	return err
}

// AwaitReady returns when the server serves clients: alone, or as leader or
// follower of a quorum.
func (s *Server) AwaitReady() error {
	serves := func() bool { return s.Mode() != "" || !s.Alive() }
	if !poll(readyWithin, serves) || !s.Alive() {
		return fmt.Errorf("zktest: server %s does not serve; the end of its log:\n%s", s.Addr(), s.LogTail(30))
	}
	return nil
}

// Version returns the version the server reports, such as 3.8.0; "" while it
// serves no clients.
func (s *Server) Version() string { return version(s.Addr()) }

// Mode returns the role the server reports: standalone, leader or follower; ""
// while it serves no clients.
func (s *Server) Mode() string { return mode(s.Addr()) }

// Mntr returns one number from the server's monitoring output, such as
// zk_watch_count or zk_ephemerals_count.
func (s *Server) Mntr(key string) (int64, error) { return mntr(s.Addr(), key) }

// FourLetter sends a four-letter word and returns the answer.
func (s *Server) FourLetter(word string) (string, error) { return fourLetter(s.Addr(), word) }

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail(lines int) string {
	data, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	all := bytes.SplitAfter(data, []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], nil))
}
