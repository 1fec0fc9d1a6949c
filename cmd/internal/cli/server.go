package cli

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

type serverVerb struct {
	Addr string        `default:"127.0.0.1:2181" help:"Where to listen; port 0 takes a free one."`
	Tick time.Duration `default:"2s" help:"ZooKeeper's tickTime. Session time-outs are from 2 to 20 ticks."`
}

// Run serves until it is interrupted.
func (v *serverVerb) Run(s *streams) error {
	if v.Tick <= 0 {
		return usageError("--tick %v: it must be positive", v.Tick)
	}
	_, port, err := net.SplitHostPort(v.Addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return usageError("--addr: %w; write HOST:PORT", err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	server, err := zkembed.Start(zkembed.WithAddr(v.Addr), zkembed.WithTick(v.Tick))
	if err != nil {
		return exitWith(exitFailed, "%w (--addr tells where to listen)", err)
	}
	if err := s.print(map[string]string{"connect": server.ConnectString()}, "%s\n", server.ConnectString()); err != nil {
		return errors.Join(exitWith(exitFailed, "the address could not be written: %w", err), server.Close())
	}
	if isTerminal(s.err) {
		s.note("serving until interrupted; everything is kept in memory, for development and tests only")
	}
	<-interrupted
	return server.Close()
}
