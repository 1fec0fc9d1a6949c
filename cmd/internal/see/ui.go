package see

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
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
	AllowBreak  bool          `help:"Let the page revoke and break holds, each after asking."`
	Every       time.Duration `default:"2s" positive:"" help:"How often to look, while the page is looked at."`
	Always      bool          `help:"Look also while nobody looks at the page, so that it knows what happened meanwhile."`
	Most        int           `default:"10000" placeholder:"N" help:"Look at N nodes at most."`
	Path        string        `arg:"" predictor:"path" optional:"" default:"/" help:"Where to look: the path itself and all below it."`
}

// Run serves the page until it is interrupted.
func (v *UIVerb) Run(s *term.Streams, c *conn.Connection) error {
	if err := (look.Surveyed{Most: v.Most, Path: v.Path}).Validate(); err != nil {
		return term.UsageError("%w", err)
	}
	address, err := conn.AddressOf("--listen", v.Listen)
	switch {
	case err != nil:
		return err
	case !address.IP.IsLoopback() && !v.AllowRemote:
		return term.UsageError(
			"--listen %s: that is not loopback, and others could reach it, unencrypted; --allow-remote allows it", v.Listen)
	}
	d := c.LineDialect()
	return c.Serving(address, func(ctx context.Context, client *coord.Client, listener net.Listener) error {
		past := newRecorder(client, v.Every)
		watching, stop := context.WithCancel(ctx)
		var watches sync.WaitGroup
		watches.Go(func() { (&watcher{recorder: past, dialect: d, gone: map[string]bool{}}).keep(watching) })
		defer watches.Wait()
		defer stop()
		config := ui.Config{
			Token: rand.Text(), Every: v.Every, Always: v.Always, Within: c.ConnectTimeout, Look: v.look(client, c, d, past),
			Node: v.node(client, d),
		}
		if v.AllowRemote {
			config.Remote, config.Hosts = true, v.names()
		}
		if v.AllowBreak {
			config.Acts = map[string]ui.Act{"revoke": v.act(client, d, revoke), "break": v.act(client, d, breaking(past))}
		}
		at := "http://" + v.host(listener) + "/" + config.Token + "/"
		if err := s.Print(map[string]string{"url": at}, "%s\n", at); err != nil {
			return term.ExitWith(term.ExitFailed, "the URL could not be written: %w", err)
		}
		if !address.IP.IsLoopback() {
			s.Note(
				"others can reach the page, and read its URL on the network, since it is not encrypted; who knows the URL may use the page")
		}
		return ui.Serve(ctx, listener, config)
	})
}

// names are the host names of the page besides loopback: the one in --listen,
// and this machine's.
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

func (v *UIVerb) look(
	client *coord.Client, c *conn.Connection, d coord.Dialect, past *recorder,
) func(context.Context) (any, error) {
	book := look.NewAddressBook(c)
	return func(ctx context.Context) (any, error) {
		began := time.Now()
		stamps := past.stamps(ctx)
		found, err := look.Surveyed{Dialect: d, Most: v.Most, Path: v.Path}.Look(ctx, client)
		if err != nil {
			return nil, err
		}
		book.Refresh(ctx)
		found.Hear(ctx, book)
		seen := sightOf(found, time.Now())
		seen.past = past.see(found, stamps, book, began)
		return seen, nil
	}
}

// breaking is inspect.BreakClaim, of a claim that the history remembers as
// broken.
func breaking(past *recorder) func(context.Context, *coord.Client, coord.Dialect, look.Contender) error {
	return func(ctx context.Context, client *coord.Client, _ coord.Dialect, c look.Contender) error {
		past.breaks(c.Node, true)
		deleted, err := inspect.BreakClaim(ctx, client, c.Node, c.Token)
		if !deleted {
			past.breaks(c.Node, false)
		}
		return err
	}
}

// shown are the contenders that target names, if the page may show its path,
// and its session still has them.
func (v *UIVerb) shown(
	ctx context.Context, client *coord.Client, d coord.Dialect, target ui.Target,
) ([]look.Contender, error) {
	if err := conn.NodePath(target.Path).Validate(); target.Path != "/" && err != nil {
		return nil, err
	}
	if target.Path != v.Path && !strings.HasPrefix(target.Path, strings.TrimSuffix(v.Path, "/")+"/") {
		return nil, errors.New("the page does not show " + target.Path)
	}
	found, err := targets(ctx, client, d, conn.NodePath(target.Path), target.Node)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c look.Contender) bool { return c.Session != target.Session })
	if len(found) == 0 {
		return nil, errors.New("another session has " + target.Node + " by now")
	}
	found = slices.DeleteFunc(found,
		func(c look.Contender) bool { return target.Made != 0 && float64(momentOf(c.Made)) != target.Made })
	if len(found) == 0 {
		return nil, errors.New(target.Node + " has been made anew")
	}
	return found, nil
}

// node reads the data of a contender's node.
func (v *UIVerb) node(client *coord.Client, d coord.Dialect) func(context.Context, ui.Target) (any, error) {
	return func(ctx context.Context, target ui.Target) (any, error) {
		found, err := v.shown(ctx, client, d, target)
		if err != nil {
			return nil, err
		}
		data, _, err := client.Get(ctx, found[0].Node)
		return term.DataOf(data), err
	}
}

// act does something to the contender that target names, unless its node is
// another session's by now.
func (v *UIVerb) act(
	client *coord.Client, d coord.Dialect, do func(context.Context, *coord.Client, coord.Dialect, look.Contender) error,
) ui.Act {
	return func(ctx context.Context, target ui.Target) error {
		found, err := v.shown(ctx, client, d, target)
		if err != nil {
			return err
		}
		fresh := client.Synced()
		for _, c := range found {
			// The claim on an item has the same name, whichever consumer has
			// it.
			stat, there, err := fresh.Exists(ctx, c.Node)
			if err != nil {
				return err
			}
			if there && look.SessionName(stat.Owner) != target.Session {
				return errors.New("another session has " + c.Node + " by now")
			}
			if err := do(ctx, client, d, c); err != nil {
				return err
			}
		}
		return nil
	}
}
