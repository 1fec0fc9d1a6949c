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

// ServerOption changes how a real server, or every server of an ensemble, is
// started.
type ServerOption func(*serverConfig)

// serverConfig configures a server: lines of zoo.cfg and system properties of
// the JVM.
type serverConfig struct {
	lines      map[string]string
	properties map[string]string
	jvm        []string // further arguments of java
	links      bool     // route the followers' quorum links through proxies
	ahead      time.Duration
}

// DefaultTick is the tickTime of real servers: a tenth of ZooKeeper's default,
// so faults and expiries take a tenth of the time.
const DefaultTick = 200 * time.Millisecond

func newServerConfig(opts []ServerOption) serverConfig {
	cfg := serverConfig{
		lines: map[string]string{
			"clientPortAddress":      "127.0.0.1",
			"4lw.commands.whitelist": "*",
			"admin.enableServer":     "false",
			"maxClientCnxns":         "0",
			"minSessionTimeout":      millis(minSessionTimeout),
			"maxSessionTimeout":      millis(maxSessionTimeout),
			"initLimit":              "25",
			"syncLimit":              "20",
		},
		properties: map[string]string{
			"zookeeper.extendedTypesEnabled":                     "true",
			"zookeeper.forceSync":                                "no",
			"zookeeper.DigestAuthenticationProvider.superDigest": superDigest,
			"zookeeper.preAllocSize":                             "1024",
			"znode.container.checkIntervalMs":                    "60000",
			// Logging to stderr, with times that can be compared with a test's
			// log.
			"org.slf4j.simpleLogger.defaultLogLevel": "info",
			"org.slf4j.simpleLogger.showDateTime":    "true",
			"org.slf4j.simpleLogger.dateTimeFormat":  "HH:mm:ss.SSS",
		},
	}
	WithTick(DefaultTick)(&cfg)
	for _, opt := range opts {
		opt(&cfg)
	}
	return cfg
}

// WithTick sets tickTime; DefaultTick if not given.
func WithTick(d time.Duration) ServerOption { return WithConfig("tickTime", millis(d)) }

// WithSyncLimit sets after how many ticks without a word a follower and its
// leader give each other up; 20 if not given.
func WithSyncLimit(ticks int) ServerOption { return WithConfig("syncLimit", strconv.Itoa(ticks)) }

// WithContainerCheck sets how often the server looks for empty containers and
// overdue TTL nodes; a minute if not given.
func WithContainerCheck(d time.Duration) ServerOption {
	return WithProperty("znode.container.checkIntervalMs", millis(d))
}

// WithConfig sets one line of zoo.cfg.
func WithConfig(key, value string) ServerOption {
	return func(c *serverConfig) { c.lines[key] = value }
}

// WithProperty sets one system property of the server's JVM.
func WithProperty(key, value string) ServerOption {
	return func(c *serverConfig) { c.properties[key] = value }
}

// WithJVM adds arguments for java, which override a server's defaults: tests
// want servers that start fast and are small.
func WithJVM(args ...string) ServerOption {
	return func(c *serverConfig) { c.jvm = append(c.jvm, args...) }
}

// WithQuorumLinks routes the links from the followers to their leader through
// proxies, for Ensemble.Link to delay or cut. Elections stay direct.
func WithQuorumLinks() ServerOption { return func(c *serverConfig) { c.links = true } }

// WithClock puts the server's wall clock ahead of this machine's, or behind it,
// by Debian's libfaketime; a test that needs it fails where that is missing.
// Its monotonic clock is right: sessions last as long as ever. There is no such
// option for clients: a Go program does not ask libc for the time.
func WithClock(ahead time.Duration) ServerOption { return func(c *serverConfig) { c.ahead = ahead } }

// fakeTime is the environment of a process whose wall clock is wrong.
func fakeTime(ahead time.Duration) ([]string, error) {
	const library = "/usr/lib/*/faketime/libfaketime.so.1"
	found, err := filepath.Glob(library)
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("zktest: no %s found; \"make deps\" installs it, or: apt-get install faketime", library)
	}
	return []string{
		"LD_PRELOAD=" + found[0], fmt.Sprintf("FAKETIME=%+d", int(ahead.Seconds())),
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", // by the library's versions
	}, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// EnvClasses names an archive of the classes that a server loads, which saves
// it a third of its start. "make test" and "make proofs" make one. Java ignores
// it where it does not fit.
const EnvClasses = "ZKTEST_CLASSES"

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

func newServer(id int, opts []ServerOption) (*Server, error) {
	dir, err := host.dataDir("server" + strconv.Itoa(id))
	if err != nil {
		return nil, err
	}
	client, err := reservePort()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, id: id, config: newServerConfig(opts), client: client}
	s.config.lines["dataDir"] = s.DataDir()
	s.config.lines["clientPort"] = strconv.Itoa(client.number)
	return s, nil
}

// startAlone starts a single server and waits until it serves.
func startAlone(opts []ServerOption) (*Server, error) {
	s, err := newServer(0, opts)
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

// Launch is Restart without waiting until the server serves. It writes the
// configuration and starts the process.
func (s *Server) Launch() error {
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
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=5"}
	if archive := os.Getenv(EnvClasses); archive != "" {
		args = append(args, "-XX:SharedArchiveFile="+archive)
	}
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
	if s.config.ahead != 0 {
		env, err := fakeTime(s.config.ahead)
		if err != nil {
			return err
		}
		cmd.Env = append(os.Environ(), env...)
	}
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

// removeEmptyLogs removes transaction logs without a header. A server that is
// killed when it has just begun a log leaves one, and ZooKeeper 3.8.0 does not
// start on it (an EOFException in FileHeader.deserialize).
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
		return fmt.Errorf("zktest: server %s does not serve; the end of its log:\n%s", s.Addr(), s.logTail(30))
	}
	return nil
}

// logTail returns the last lines of the server's log.
func (s *Server) logTail(lines int) string {
	data, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	all := bytes.SplitAfter(data, []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], nil))
}
