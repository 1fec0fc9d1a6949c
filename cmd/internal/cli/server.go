package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/zkembed"
)

type serverVerb struct {
	Addr string        `default:"127.0.0.1:2181" help:"Where to listen; port 0 takes a free one."`
	Tick time.Duration `default:"2s" help:"ZooKeeper's tickTime. Session time-outs are from 2 to 20 ticks."`
}

// Run serves until it is interrupted.
func (v *serverVerb) Run(s *term.Streams) error {
	if v.Tick <= 0 {
		return term.UsageError("--tick %v: it must be positive", v.Tick)
	}
	if _, err := conn.AddressOf("--addr", v.Addr); err != nil {
		return err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	server, err := zkembed.Start(zkembed.WithAddr(v.Addr), zkembed.WithTick(v.Tick))
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w (--addr sets the address)", err)
	}
	if err := s.Print(map[string]string{"connect": server.ConnectString()}, "%s\n", server.ConnectString()); err != nil {
		return errors.Join(term.ExitWith(term.ExitFailed, "the address could not be written: %w", err), server.Close())
	}
	if term.IsTerminal(s.Err) {
		s.Note("serving until interrupted; everything is kept in memory, for development and tests only")
	}
	<-interrupted
	return server.Close()
}
