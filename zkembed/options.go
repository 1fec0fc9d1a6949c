package zkembed

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

type config struct {
	addr           string
	tick           time.Duration
	minTime        time.Duration
	maxTime        time.Duration
	reaperInterval time.Duration
	pingLateness   time.Duration
	maxPacket      int
	log            *slog.Logger
}

// Option changes how a [Server] runs.
type Option func(*config) error

// WithAddr makes the server listen on a TCP address, for instance
// "127.0.0.1:0" for a free port, which is the default. The empty address
// means no listener: connections then come by [Server.Dial] and
// [Server.ServeConn] only.
func WithAddr(addr string) Option {
	return func(c *config) error {
		c.addr = addr
		return nil
	}
}

// WithTick sets ZooKeeper's tickTime, 2 s unless set. Sessions expire on the
// tick's grid, and the default bounds of session time-outs are 2 and 20 ticks.
func WithTick(tick time.Duration) Option {
	return func(c *config) error {
		if tick < time.Millisecond {
			return fmt.Errorf("zkembed: tick %v is below 1ms", tick)
		}
		c.tick = tick
		return nil
	}
}

// WithSessionTimeouts limits the time-outs that sessions get. Zero leaves a
// bound at its default of 2 or 20 ticks.
func WithSessionTimeouts(lowest, highest time.Duration) Option {
	return func(c *config) error {
		if lowest < 0 || highest < 0 || lowest > highest && highest > 0 {
			return fmt.Errorf("zkembed: session time-outs from %v to %v: want 0 <= lowest <= highest", lowest, highest)
		}
		c.minTime, c.maxTime = lowest, highest
		return nil
	}
}

// WithReaper sets how often empty containers and outlived TTL nodes are
// removed, one minute unless set. With zero only [Server.Reap] removes them.
func WithReaper(interval time.Duration) Option {
	return func(c *config) error {
		if interval < 0 {
			return fmt.Errorf("zkembed: negative reaper interval %v", interval)
		}
		c.reaperInterval = interval
		return nil
	}
}

// WithPingLateness makes the leader ping its followers up to so much later than
// half a tick after the ping before, by chance. Unless given, it is on time.
func WithPingLateness(most time.Duration) Option {
	return func(c *config) error {
		if most < 0 {
			return fmt.Errorf("zkembed: negative ping lateness %v", most)
		}
		c.pingLateness = most
		return nil
	}
}

// WithMaxPacket sets ZooKeeper's jute.maxbuffer, 0xfffff unless set: on a
// larger packet the server closes the connection.
func WithMaxPacket(bytes int) Option {
	return func(c *config) error {
		if bytes < 64 {
			return fmt.Errorf("zkembed: packets of %d bytes: want 64 or more", bytes)
		}
		c.maxPacket = bytes
		return nil
	}
}

// WithLogger has the server log connections and sessions. Without it the server
// logs nothing.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) error {
		if log == nil {
			return errors.New("zkembed: nil logger")
		}
		c.log = log
		return nil
	}
}

func newConfig(opts []Option) (config, error) {
	c := config{
		addr: "127.0.0.1:0", maxPacket: 0xfffff, tick: 2 * time.Second, reaperInterval: time.Minute,
		log: slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		if err := o(&c); err != nil {
			return c, err
		}
	}
	if c.minTime == 0 {
		c.minTime = 2 * c.tick
	}
	if c.maxTime == 0 {
		c.maxTime = max(20*c.tick, c.minTime)
	}
	if c.minTime > c.maxTime {
		return c, fmt.Errorf("zkembed: lowest session time-out %v is above the highest, %v", c.minTime, c.maxTime)
	}
	return c, nil
}
