package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
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
	Control    string        `placeholder:"HOST:PORT" help:"Let tests make faults there, on loopback, by HTTP; the URL is written on a line of its own."`
	SecureAddr string        `placeholder:"HOST:PORT" help:"Listen there by TLS, too, with --tls-cert and --tls-key; with --tls-ca, to clients whose certificates it signed. The address is written on the next line."`
	SASLUsers  string        `name:"sasl-users" placeholder:"FILE" help:"Have clients prove passwords by SASL (DIGEST-MD5): of the users in FILE, each a line NAME:PASSWORD."`
	Admin      string        `placeholder:"HOST:PORT" help:"Answer there as ZooKeeper's admin server does, at /commands; the URL is written on the last line."`
}

// serving is what the server writes when it can be reached.
type serving struct {
	Connect string `json:"connect"`
	Control string `json:"control,omitempty"`
	Secure  string `json:"secure,omitempty"`
	Admin   string `json:"admin,omitempty"`
}

func (v serving) lines() (text string) {
	for _, line := range []string{v.Connect, v.Control, v.Secure, v.Admin} {
		if line != "" {
			text += line + "\n"
		}
	}
	return text
}

// Run serves until it is interrupted.
func (v *serverVerb) Run(s *term.Streams, c *conn.Connection) (err error) {
	opts, err := v.options(c)
	if err != nil {
		return err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	controls, err := listen("--control", v.Control, true)
	if err != nil {
		return err
	}
	admin, err := listen("--admin", v.Admin, false)
	if err != nil {
		return err
	}
	server, err := zkembed.Start(opts...)
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w (--addr and --secure-addr set the addresses)", err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	token := rand.Text()
	at := serving{
		Connect: server.ConnectString(), Secure: server.SecureAddr(),
		Control: controls.url("/" + token), Admin: admin.url("/commands"),
	}
	failed := make(chan error, 2)
	defer controls.serve(control.Handler(server, token), failed)()
	defer admin.serve(server.AdminHandler(), failed)()
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
		return term.ExitWith(term.ExitFailed, "%w", err)
	}
}

func (v *serverVerb) options(c *conn.Connection) ([]zkembed.Option, error) {
	if _, err := conn.AddressOf("--addr", v.Addr); err != nil {
		return nil, err
	}
	opts := []zkembed.Option{zkembed.WithAddr(v.Addr), zkembed.WithTick(v.Tick)}
	if v.SASLUsers != "" {
		users, err := saslUsers(v.SASLUsers)
		if err != nil {
			return nil, err
		}
		opts = append(opts, zkembed.WithSASL(users))
	}
	if v.SecureAddr == "" {
		return opts, nil
	}
	if _, err := conn.AddressOf("--secure-addr", v.SecureAddr); err != nil {
		return nil, err
	}
	config, err := c.ServerConfig()
	return append(opts, zkembed.WithTLS(v.SecureAddr, config)), err
}

// saslUsers reads users and their passwords.
func saslUsers(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, term.UsageError("--sasl-users: %v", err)
	}
	users := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		name, password, ok := strings.Cut(line, ":")
		switch {
		case line == "":
		case !ok || name == "":
			return nil, term.UsageError("--sasl-users: a line of %s is not NAME:PASSWORD", file)
		default:
			users[name] = password
		}
	}
	if len(users) == 0 {
		return nil, term.UsageError("--sasl-users: %s names no user", file)
	}
	return users, nil
}

// pages is where the server speaks HTTP; nil where it does not.
type pages struct {
	flag     string
	listener net.Listener
}

func listen(flag, at string, loopback bool) (*pages, error) {
	if at == "" {
		return nil, nil
	}
	address, err := conn.AddressOf(flag, at)
	switch {
	case err != nil:
		return nil, err
	case loopback && !address.IP.IsLoopback():
		return nil, term.UsageError("%s %s: that is not loopback, and others could reach it", flag, at)
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return nil, term.ExitWith(term.ExitFailed, "%w (%s sets the address)", err, flag)
	}
	return &pages{flag, listener}, nil
}

func (p *pages) url(path string) string {
	if p == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String() + path
}

// requestWithin bounds how long a request may take to come.
const requestWithin = 10 * time.Second

func (p *pages) serve(handler http.Handler, failed chan<- error) (stop func()) {
	if p == nil {
		return func() {}
	}
	server := &http.Server{Handler: handler, ReadTimeout: requestWithin, MaxHeaderBytes: 16 << 10}
	go func() { failed <- fmt.Errorf("%s: %w", p.flag, server.Serve(p.listener)) }()
	return func() { _ = server.Close() }
}
