package cli

import (
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/zkembed"
	"github.com/zkcoord/zkcoord/zkembed/control"
)

type serverVerb struct {
	Addr       string        `default:"127.0.0.1:2181" help:"Where to listen; port 0 takes a free one."`
	Tick       time.Duration `default:"2s" positive:"" help:"ZooKeeper's tickTime. Session timeouts are from 2 to 20 ticks."`
	Control    string        `placeholder:"HOST:PORT" help:"Let tests make faults there, on loopback, by HTTP; the URL is on the second line."`
	SecureAddr string        `placeholder:"HOST:PORT" help:"Listen there by TLS, too, with --tls-cert and --tls-key; with --tls-ca, to clients whose certificates it signed. On the last line."`
}

// serving is what the server writes when it can be reached.
type serving struct {
	Connect string `json:"connect"`
	Control string `json:"control,omitempty"`
	Secure  string `json:"secure,omitempty"`
}

func (v serving) lines() (text string) {
	for _, line := range []string{v.Connect, v.Control, v.Secure} {
		if line != "" {
			text += line + "\n"
		}
	}
	return text
}

// controlWithin bounds how long a request to the control may take to come.
const controlWithin = 10 * time.Second

// Run serves until it is interrupted.
func (v *serverVerb) Run(s *term.Streams, c *conn.Connection) (err error) {
	opts, err := v.options(c)
	if err != nil {
		return err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	listener, err := v.listen()
	if err != nil {
		return err
	}
	server, err := zkembed.Start(opts...)
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w (--addr and --secure-addr set the addresses)", err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	at := serving{Connect: server.ConnectString(), Secure: server.SecureAddr()}
	failed := make(chan error, 1)
	if listener != nil {
		token := rand.Text()
		at.Control = "http://" + listener.Addr().String() + "/" + token
		controls := &http.Server{Handler: control.Handler(server, token), ReadTimeout: controlWithin, MaxHeaderBytes: 16 << 10}
		go func() { failed <- controls.Serve(listener) }()
		defer func() { _ = controls.Close() }()
	}
	if err := s.Print(at, "%s", at.lines()); err != nil {
		return term.ExitWith(term.ExitFailed, "the address could not be written: %w", err)
	}
	if term.IsTerminal(s.Err) {
		s.Note("serving until interrupted; everything is kept in memory, for development and tests only")
	}
	select {
	case <-interrupted:
		return nil
	case err := <-failed:
		return term.ExitWith(term.ExitFailed, "--control: %w", err)
	}
}

func (v *serverVerb) options(c *conn.Connection) ([]zkembed.Option, error) {
	if _, err := conn.AddressOf("--addr", v.Addr); err != nil {
		return nil, err
	}
	opts := []zkembed.Option{zkembed.WithAddr(v.Addr), zkembed.WithTick(v.Tick)}
	if v.SecureAddr == "" {
		return opts, nil
	}
	if _, err := conn.AddressOf("--secure-addr", v.SecureAddr); err != nil {
		return nil, err
	}
	config, err := c.ServerConfig()
	return append(opts, zkembed.WithTLS(v.SecureAddr, config)), err
}

// listen returns nil without --control.
func (v *serverVerb) listen() (net.Listener, error) {
	if v.Control == "" {
		return nil, nil
	}
	address, err := conn.AddressOf("--control", v.Control)
	switch {
	case err != nil:
		return nil, err
	case !address.IP.IsLoopback():
		return nil, term.UsageError("--control %s: that is not loopback, and others could reach it", v.Control)
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return nil, term.ExitWith(term.ExitFailed, "%w (--control sets the address)", err)
	}
	return listener, nil
}
