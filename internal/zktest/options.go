package zktest

import (
	"maps"
	"strconv"
	"time"
)

// ServerOption changes how a real server, or every server of an ensemble, is
// started.
type ServerOption func(*serverConfig)

// serverConfig is what a server is started with: lines of zoo.cfg and system
// properties of the JVM.
type serverConfig struct {
	lines      map[string]string
	properties map[string]string
	jvm        []string // further arguments of java
	links      bool     // route the followers' quorum links through proxies
}

// DefaultTick is the tickTime of real servers: a tenth of ZooKeeper's default,
// so that faults and expiries take a tenth of the time.
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

// WithJVM adds arguments for java, which win over those that a server gets in
// any case: tests want servers that start fast and are small.
func WithJVM(args ...string) ServerOption {
	return func(c *serverConfig) { c.jvm = append(c.jvm, args...) }
}

// WithQuorumLinks routes the links from the followers to their leader through
// proxies, so that Ensemble.Link can delay or cut them. Elections stay direct.
func WithQuorumLinks() ServerOption { return func(c *serverConfig) { c.links = true } }

func (c serverConfig) clone() serverConfig {
	c.lines, c.properties = maps.Clone(c.lines), maps.Clone(c.properties)
	return c
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
