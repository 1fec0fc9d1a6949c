package see

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"os"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

type UIVerb struct {
	Listen      string        `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where to listen, on loopback; port 0 takes a free one."`
	AllowRemote bool          `help:"Listen beyond loopback, too, unencrypted."`
	AllowBreak  bool          `help:"Let the page revoke and break, each after a question."`
	Every       time.Duration `default:"2s" positive:"" help:"How often to look, while the page is looked at."`
	Most        int           `default:"10000" placeholder:"N" help:"Look at so many nodes at most."`
	Path        string        `arg:"" predictor:"path" optional:"" default:"/" help:"Where to look: the path itself and all below it."`
}

// Run serves the page until it is interrupted.
func (v *UIVerb) Run(s *term.Streams, c *conn.Connection) error {
	if err := (look.Surveyed{Most: v.Most, Path: v.Path}).Validate(); err != nil {
		return term.UsageError("%w", err)
	}
	address, err := v.address()
	if err != nil {
		return err
	}
	return c.Serving(address, func(ctx context.Context, client *coord.Client, listener net.Listener) error {
		config := v.config(client, c)
		at := "http://" + v.host(listener) + "/" + config.Token + "/"
		if err := s.Print(map[string]string{"url": at}, "%s\n", at); err != nil {
			return term.ExitWith(term.ExitFailed, "the URL could not be written: %w", err)
		}
		if !address.IP.IsLoopback() {
			s.Note("others can reach the page, and see its URL on the way: it is not encrypted, and the URL is all that the page asks for")
		}
		return ui.Serve(ctx, listener, config)
	})
}

// address is where to listen.
func (v *UIVerb) address() (*net.TCPAddr, error) {
	address, err := conn.AddressOf("--listen", v.Listen)
	switch {
	case err != nil:
		return nil, err
	case !address.IP.IsLoopback() && !v.AllowRemote:
		return nil, term.UsageError("--listen %s: that is not loopback, and others could reach it, unencrypted; --allow-remote allows it", v.Listen)
	}
	return address, nil
}

// names are the names of the page besides loopback: the one that was said,
// or this machine's.
func (v *UIVerb) names() []string {
	name, _, _ := net.SplitHostPort(v.Listen)
	machine, _ := os.Hostname()
	return []string{cmp.Or(name, machine), machine}
}

// host is the host and port of the URL.
func (v *UIVerb) host(listener net.Listener) string {
	address := listener.Addr().(*net.TCPAddr)
	if !address.IP.IsUnspecified() {
		return address.String()
	}
	_, port, _ := net.SplitHostPort(address.String())
	machine, err := os.Hostname()
	if err != nil {
		machine = "localhost"
	}
	return net.JoinHostPort(machine, port)
}

func (v *UIVerb) config(client *coord.Client, c *conn.Connection) ui.Config {
	config := ui.Config{Token: rand.Text(), Every: v.Every, Within: c.ConnectTimeout, Look: v.look(client, c)}
	if v.AllowRemote {
		config.Remote, config.Hosts = true, v.names()
	}
	if v.AllowBreak {
		config.Acts = map[string]ui.Act{"revoke": v.act(client, inspect.Revoke), "break": v.act(client, inspect.Break)}
	}
	return config
}
