package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/self"
	"github.com/zkcoord/zkcoord/coord"
)

// closeWithin bounds the farewell to the servers.
const closeWithin = 500 * time.Millisecond

// connection says which servers to use, and how.
type connection struct {
	ZK   string   `name:"zk" env:"ZK_SERVERS" placeholder:"HOST:PORT,…" group:"connection" help:"The ZooKeeper servers, with a chroot if wanted."`
	Auth []string `name:"auth" env:"ZK_AUTH" sep:"none" placeholder:"SCHEME:…" group:"connection" help:"Credentials to present, for example digest:user:password; may be repeated. Others can see a command line, so better put them into the environment, one per line."`
	tlsOptions
	SessionTimeout time.Duration `placeholder:"10s" positive:"" group:"connection" help:"After a crash, others wait so long. Demos use less."`
	ServerTick     time.Duration `placeholder:"D" positive:"" group:"connection" help:"The servers' tickTime. Knowing it, CMD survives longer outages."`
	ConnectTimeout time.Duration `default:"10s" positive:"" group:"connection" help:"How long to try to get a session."`
	RequireChroot  bool          `env:"ZK_REQUIRE_CHROOT" group:"connection" help:"Refuse a chroot that does not exist, instead of warning of it."`
	Dialect        string        `enum:"curator,kazoo" default:"curator" group:"connection" help:"Whose node names to use: curator (Java) or kazoo (Python). All who share a path must use the same."`

	note    func(format string, args ...any)
	observe func(coord.Event) // unless it is nil
	label   label             // see [labelled]; the program's name by default
}

// environmentVariables are those of the options above. An empty one counts as
// unset.
var environmentVariables = []string{"ZK_SERVERS", "ZK_AUTH", "ZK_REQUIRE_CHROOT", "ZK_TLS", "ZK_TLS_CA", "ZK_TLS_CERT", "ZK_TLS_KEY"}

func unsetEmptyVariables() {
	for _, name := range environmentVariables {
		if os.Getenv(name) == "" {
			_ = os.Unsetenv(name) // fails for names that cannot be
		}
	}
}

func (c *connection) dialect() coord.Dialect {
	if c.Dialect == string(coord.Kazoo) {
		return coord.Kazoo
	}
	return coord.Curator
}

// gaveUp is the error of a wait that was given up. It says how long the wait
// was.
type gaveUp time.Duration

func (g gaveUp) Error() string { return fmt.Sprintf("gave up after %v", time.Duration(g)) }

func (g gaveUp) Is(target error) bool { return target == context.DeadlineExceeded }

// within bounds a wait.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, gaveUp(d))
}

// options are those for the client.
func (c *connection) options() ([]coord.Option, error) {
	if c.ZK == "" {
		return nil, usageError("no servers are named: use --zk or ZK_SERVERS, for example ZK_SERVERS=zk1:2181,zk2:2181\n"+
			"(for development, \"%s server\" runs one on 127.0.0.1:2181)", program)
	}
	opts := []coord.Option{coord.WithIdentity(string(cmp.Or(c.label, label(program)))), coord.WithDialect(c.dialect())}
	if c.SessionTimeout != 0 {
		opts = append(opts, coord.WithSessionTimeout(c.SessionTimeout))
	}
	if c.ServerTick != 0 {
		opts = append(opts, coord.WithTick(c.ServerTick))
	}
	if c.observe != nil {
		opts = append(opts, coord.WithObserver(c.observe))
	}
	if c.RequireChroot {
		opts = append(opts, coord.RequireChroot())
	}
	for _, credential := range strings.Split(strings.Join(c.Auth, "\n"), "\n") {
		scheme, value, ok := strings.Cut(strings.TrimSuffix(credential, "\r"), ":")
		switch {
		case scheme == "" && !ok:
		case scheme == "" || !ok: // without showing it
			return nil, usageError("--auth or ZK_AUTH: write SCHEME:CREDENTIALS, for example digest:user:password")
		default:
			opts = append(opts, coord.WithAuth(scheme, value))
		}
	}
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if config != nil {
		opts = append(opts, coord.WithTLS(config))
	}
	return opts, nil
}

// open connects. It takes no longer than ConnectTimeout and ctx allow.
func (c *connection) open(ctx context.Context) (*coord.Client, error) {
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	connecting, cancel := within(ctx, c.ConnectTimeout)
	defer cancel()
	client, err := coord.Open(connecting, c.ZK, opts...)
	var told *coord.OpError
	if errors.As(err, &told) && told.Op == "open" {
		err = told.Err // without "open": the message says it already
	}
	switch {
	case err == nil:
		c.lookForChroot(connecting, client)
		return client, nil
	case errors.Is(err, coord.ErrInvalid), errors.Is(err, coord.ErrNoNode):
		return nil, &exitError{code: exitUsage, err: err}
	case errors.Is(err, coord.ErrAuthFailed):
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf("%w: do the servers know the scheme of --auth or ZK_AUTH?", err)}
	case ctx.Err() != nil:
		return nil, &exitError{code: exitUnavailable, err: err}
	default:
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf("%w\n(%s --connect-timeout tells how long to try)", err, c.hint())}
	}
}

// lookForChroot warns of a chroot that does not exist.
func (c *connection) lookForChroot(ctx context.Context, client *coord.Client) {
	if c.RequireChroot || client.Chroot() == "" {
		return
	}
	if _, there, err := client.Exists(ctx, "/"); err == nil && !there {
		c.note("there is no chroot %s; it is made when it is needed (a misspelt one makes two locks of one: "+
			"--require-chroot refuses it)", client.Chroot())
	}
}

// hint says what to check when no server answers.
func (c *connection) hint() string {
	if config, err := c.config(); err == nil && config != nil {
		return "do servers run there, and speak TLS at that port?"
	}
	return "do servers run there? do they want --tls?"
}

// child is a further process of this program, with the same servers. The
// environment carries the credentials, since every user can see a command line.
func (c *connection) child(verb string, args ...string) (*exec.Cmd, error) {
	all := append(strings.Fields(verb), "--connect-timeout", c.ConnectTimeout.String(), "--dialect", c.Dialect)
	if c.SessionTimeout != 0 {
		all = append(all, "--session-timeout", c.SessionTimeout.String())
	}
	if c.ServerTick != 0 {
		all = append(all, "--server-tick", c.ServerTick.String())
	}
	cmd, err := self.Command(append(all, args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(environmentVariables, name)
	})
	cmd.Env = append(cmd.Env, "ZK_SERVERS="+c.ZK, "ZK_AUTH="+strings.Join(c.Auth, "\n"))
	cmd.Env = append(cmd.Env, c.environment()...)
	return cmd, nil
}

// connected runs f with a connection.
func (c *connection) connected(f func(client *coord.Client) error) error {
	client, err := c.open(context.Background())
	if err != nil {
		return err
	}
	defer hangUp(client)
	return failure(f(client))
}

// with is connected for verbs that ask one thing: f's context ends after
// ConnectTimeout, too.
func (c *connection) with(f func(ctx context.Context, client *coord.Client) error) error {
	return c.connected(func(client *coord.Client) error {
		ctx, cancel := within(context.Background(), c.ConnectTimeout)
		defer cancel()
		return f(ctx, client)
	})
}

// failure gives an error its status, unless it has one.
func failure(err error) error {
	var known *exitError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{code: exitUnavailable, err: err}
	default:
		return orUsage(err, exitFailed)
	}
}

// hangUp ends the session, unless that takes too long: then the servers expire
// it.
func hangUp(client *coord.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = client.Close(ctx)
}
