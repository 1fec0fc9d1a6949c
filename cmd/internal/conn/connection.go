package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/self"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
)

// closeWithin bounds the closing of a session.
const closeWithin = 500 * time.Millisecond

// Connection says which servers to use, and how.
type Connection struct {
	ZK   string   `name:"zk" env:"ZK_SERVERS" placeholder:"HOST:PORT,…" group:"connection" help:"The ZooKeeper servers, and a chroot."`
	Auth []string `name:"auth" env:"ZK_AUTH" sep:"none" placeholder:"SCHEME:…" group:"connection" help:"Credentials, such as digest:user:password; may be repeated. Others can read command lines: better use the environment, one per line."`
	ACL  []string `name:"acl" env:"ZK_ACL" sep:"none" placeholder:"SCHEME:ID:PERMS,…" group:"connection" help:"The ACL of new nodes, such as auth::cdrwa,world:anyone:r; may be repeated. By default everybody may do everything."`
	TlsOptions
	SessionTimeout time.Duration `placeholder:"10s" positive:"" group:"connection" help:"How long others wait after a crash."`
	ServerTick     time.Duration `placeholder:"D" positive:"" group:"connection" help:"The servers' tickTime. Knowing it, CMD survives longer outages."`
	ConnectTimeout time.Duration `default:"10s" positive:"" group:"connection" help:"How long to try to get a session."`
	RequireChroot  bool          `env:"ZK_REQUIRE_CHROOT" group:"connection" help:"Refuse a chroot that does not exist."`
	Attendant      string        `env:"ZKCOORD_ATTEND" placeholder:"SOCKET" group:"connection" help:"The socket of the host's attendant: see attend."`
	Dialect        string        `default:"curator" group:"connection" help:"Node names of curator (Java) or kazoo (Python): the same for all who share a path. To lock, elect and look also another recipe's: zookeeper, numbers, name=NAME or prefix=PREFIX."`

	describes      bool     // the verb accepts described dialects
	EmptyVariables []string `kong:"-"` // variables that were set and empty

	Note    func(format string, args ...any) `kong:"-"`
	Observe func(event.Event)                `kong:"-"` // nil: nobody observes
	Share   func(*os.File)                   `kong:"-"` // gets each connection to the attendant; nil: none is made
	label   label                            // see [Labelled]; the program's name by default
}

// environmentVariables stand for the options above.
var environmentVariables = []string{
	"ZK_SERVERS", "ZK_AUTH", "ZK_ACL", "ZK_REQUIRE_CHROOT", "ZK_TLS", "ZK_TLS_CA", "ZK_TLS_CERT", "ZK_TLS_KEY",
	"ZKCOORD_ATTEND",
}

// UnsetEmptyVariables unsets the variables that are set and empty, and returns
// their names.
func UnsetEmptyVariables() (empty []string) {
	for _, name := range environmentVariables {
		if value, set := os.LookupEnv(name); set && value == "" {
			_ = os.Unsetenv(name) // fails for names that cannot be
			empty = append(empty, name)
		}
	}
	return empty
}

// refuseEmptyVariables refuses a variable that is set and empty if it protects
// something and no option takes its place: whoever set it did not mean to do
// without that protection.
func (c *Connection) refuseEmptyVariables() error {
	for _, protecting := range []struct {
		variable string
		replaced bool
	}{
		{"ZK_AUTH", len(c.Auth) > 0},
		{"ZK_ACL", len(c.ACL) > 0},
		{"ZK_REQUIRE_CHROOT", c.RequireChroot},
		{"ZK_TLS", c.TLS},
		{"ZK_TLS_CA", c.TLSCA != ""},
		{"ZK_TLS_CERT", c.TLSCert != ""},
		{"ZK_TLS_KEY", c.TLSKey != ""},
	} {
		if !protecting.replaced && slices.Contains(c.EmptyVariables, protecting.variable) {
			return term.UsageError("%s is set and empty: give it a value, or unset it", protecting.variable)
		}
	}
	return nil
}

// betweenACLs matches the end of an ACL and the comma before the next one, as
// ZooKeeper's own tools write a list. An identity may have commas, too.
var betweenACLs = regexp.MustCompile(`(:[cdrwa]+),`)

// lines are the values of a repeated flag, or of its variable, which has one in
// each line.
func lines(values []string) (all []string) {
	for value := range strings.Lines(strings.Join(values, "\n")) {
		if value = strings.TrimRight(value, "\r\n"); value != "" {
			all = append(all, value)
		}
	}
	return all
}

func acls(values []string) []string {
	return lines([]string{betweenACLs.ReplaceAllString(strings.Join(values, "\n"), "$1\n")})
}

// dialects returns the client's dialect, and the described dialect of the lines
// that the verb joins or looks at, or "".
func (c *Connection) dialects() (client, line coord.Dialect, err error) {
	switch d := coord.Dialect(c.Dialect); {
	case d == "", d == coord.Curator, d == coord.Kazoo:
		return cmp.Or(d, coord.Curator), "", nil
	case coord.CheckDialect(d) != nil:
		return "", "", term.UsageError("%v", coord.CheckDialect(d))
	case !c.describes:
		return "", "", term.UsageError("--dialect %s describes the line of a lock or an election: "+
			"it is for lock and elect, without --shared and --slots, and for verbs that look at lines", d)
	default:
		return coord.Curator, d, nil
	}
}

// LineDialect returns the described dialect of the lines to join or to look at,
// or "". Unless it was called, [Connection.Open] refuses a described dialect.
func (c *Connection) LineDialect() coord.Dialect {
	c.describes = true
	_, line, _ := c.dialects()
	return line
}

// GaveUp is the error of a wait that reached its limit, which it names.
type GaveUp time.Duration

func (g GaveUp) Error() string { return fmt.Sprintf("gave up after %v", time.Duration(g)) }

func (g GaveUp) Is(target error) bool { return target == context.DeadlineExceeded }

// Within bounds a wait.
func Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, GaveUp(d))
}

// Options are the options for the client.
func (c *Connection) Options() ([]coord.Option, error) {
	if c.ZK == "" {
		return nil, term.UsageError(
			"no servers are named: use --zk or ZK_SERVERS, for example ZK_SERVERS=zk1:2181,zk2:2181\n"+
				"(for development, \"%s server\" runs one on 127.0.0.1:2181)", term.Program)
	}
	if err := c.refuseEmptyVariables(); err != nil {
		return nil, err
	}
	dialect, _, err := c.dialects()
	if err != nil {
		return nil, err
	}
	opts := []coord.Option{
		coord.WithIdentity(string(cmp.Or(c.label, label(term.Program)))), coord.WithDialect(dialect),
		coord.WithHeld(HeldAround()...),
		coord.WithLogger(slog.New(slog.DiscardHandler)), // the verbs say what there is to say
	}
	for _, credential := range lines(c.Auth) {
		scheme, value, ok := strings.Cut(credential, ":")
		switch {
		case scheme == "" || !ok: // without showing it
			return nil, term.UsageError("--auth or ZK_AUTH: write SCHEME:CREDENTIALS, for example digest:user:password")
		case scheme == "digest" && !strings.Contains(value, ":"):
			return nil, term.UsageError("--auth or ZK_AUTH: a password is missing; write digest:user:password")
		default:
			opts = append(opts, coord.WithAuth(scheme, value))
		}
	}
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	acl := acls(c.ACL)
	for _, o := range []struct {
		wanted bool
		option coord.Option
	}{
		{c.SessionTimeout != 0, coord.WithSessionTimeout(c.SessionTimeout)},
		{c.ServerTick != 0, coord.WithTick(c.ServerTick)},
		{c.Observe != nil, coord.WithObserver(c.Observe)},
		{c.Attendant != "" && c.Share != nil, coord.WithAttendant(c.Attendant, c.Share)},
		{c.RequireChroot, coord.RequireChroot()},
		{len(acl) > 0, coord.WithACL(acl...)},
		{config != nil, coord.WithTLSFiles(c.TLSCA, c.TLSCert, c.TLSKey)},
	} {
		if o.wanted {
			opts = append(opts, o.option)
		}
	}
	return opts, nil
}

// Open connects. It takes no longer than ConnectTimeout and ctx allow.
func (c *Connection) Open(ctx context.Context) (*coord.Client, error) {
	opts, err := c.Options()
	if err != nil {
		return nil, err
	}
	connecting, cancel := Within(ctx, c.ConnectTimeout)
	defer cancel()
	client, err := coord.Open(connecting, c.ZK, opts...)
	var told *coord.OpError
	if errors.As(err, &told) && told.Op == "open" {
		err = told.Err // without "open": the message says it already
	}
	switch {
	case err == nil:
		c.lookForChroot(connecting, client)
		granted := client.Info().SessionTimeout
		if c.SessionTimeout != 0 && granted != c.SessionTimeout.Truncate(time.Millisecond) {
			c.Note("the servers grant a session timeout of %v instead of %v: they have limits of their own, "+
				"by default 2 and 20 ticks", granted, c.SessionTimeout)
		}
		return client, nil
	case errors.Is(err, coord.ErrInvalid), errors.Is(err, coord.ErrNoNode):
		return nil, &term.ExitError{Code: term.ExitUsage, Err: err}
	case errors.Is(err, coord.ErrAuthFailed):
		return nil, &term.ExitError{Code: term.ExitUnavailable, Err: fmt.Errorf("%w\n(%s)", err, c.hintAuth())}
	case ctx.Err() != nil:
		return nil, &term.ExitError{Code: term.ExitUnavailable, Err: err}
	default:
		return nil, &term.ExitError{
			Code: term.ExitUnavailable, Err: fmt.Errorf("%w\n(%s --connect-timeout sets how long to try)", err, c.hint()),
		}
	}
}

// lookForChroot warns of a chroot that does not exist.
func (c *Connection) lookForChroot(ctx context.Context, client *coord.Client) {
	if c.RequireChroot || client.Info().Chroot == "" {
		return
	}
	if _, there, err := client.Exists(ctx, "/"); err == nil && !there {
		c.Note("there is no chroot %s; it is made when it is needed (a misspelt one makes two locks of one: "+
			"--require-chroot refuses it)", client.Info().Chroot)
	}
}

// hint says what to check when no server answers.
func (c *Connection) hint() string {
	if config, err := c.config(); err == nil && config != nil {
		return "do servers run there, and speak TLS at that port?"
	}
	return "do servers run there? do they want --tls?"
}

// hintAuth says what to check when the servers refuse the credentials.
func (c *Connection) hintAuth() string {
	if len(c.Auth) == 0 {
		return "--auth or ZK_AUTH presents credentials"
	}
	return "do the servers know the scheme of --auth or ZK_AUTH?"
}

// Child is a further process of this program, with the same servers. The
// environment carries the credentials, since every user can see a command line.
func (c *Connection) Child(verb string, args ...string) (*exec.Cmd, error) {
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
	for _, v := range append([]variable{
		{"ZK_SERVERS", c.ZK},
		{"ZK_AUTH", strings.Join(c.Auth, "\n")},
		{"ZK_ACL", strings.Join(c.ACL, "\n")},
		{"ZKCOORD_ATTEND", c.Attendant},
	}, c.variables()...) {
		if v.value != "" {
			cmd.Env = append(cmd.Env, v.name+"="+v.value)
		}
	}
	return cmd, nil
}

// Connected runs f with a connection.
func (c *Connection) Connected(f func(client *coord.Client) error) error {
	client, err := c.Open(context.Background())
	if err != nil {
		return err
	}
	defer HangUp(client)
	return Failure(f(client))
}

// Lasting runs f with a connection and a context that ends by a signal, or when
// the limit is over, connecting included.
func (c *Connection) Lasting(limit *time.Duration, f func(ctx context.Context, client *coord.Client) error) error {
	ctx, stopSignals := term.Interruptible(context.Background())
	defer stopSignals()
	if limit != nil {
		var cancel context.CancelFunc
		ctx, cancel = Within(ctx, *limit)
		defer cancel()
	}
	client, err := c.Open(ctx)
	if err != nil {
		return term.BySignal(ctx, err)
	}
	defer HangUp(client)
	return f(ctx, client)
}

// Serving is [Connection.Lasting] for verbs that listen.
func (c *Connection) Serving(
	address *net.TCPAddr, f func(ctx context.Context, client *coord.Client, listener net.Listener) error,
) error {
	return c.Lasting(nil, func(ctx context.Context, client *coord.Client) error {
		listener, err := net.ListenTCP("tcp", address)
		if err != nil {
			return term.ExitWith(term.ExitFailed, "%w (--listen sets the address)", err)
		}
		defer func() { _ = listener.Close() }()
		return f(ctx, client, listener)
	})
}

// With is [Connection.Connected] for verbs that ask one thing: f, too, has
// ConnectTimeout to end.
func (c *Connection) With(f func(ctx context.Context, client *coord.Client) error) error {
	return c.Connected(func(client *coord.Client) error {
		ctx, cancel := Within(context.Background(), c.ConnectTimeout)
		defer cancel()
		return f(ctx, client)
	})
}

// Failure gives an error its status, unless it has one.
func Failure(err error) error {
	var known *term.ExitError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &term.ExitError{Code: term.ExitUnavailable, Err: err}
	case errors.Is(err, coord.ErrTooLarge):
		return term.ExitWith(term.ExitFailed, "%w; use smaller items, or fewer in one request", err)
	default:
		return OrUsage(err, term.ExitFailed)
	}
}

// Hint names the flag that may prevent an error.
func Hint(err error) string {
	switch {
	case errors.Is(err, coord.ErrNoAuth), errors.Is(err, coord.ErrAuthFailed):
		return "(--auth or ZK_AUTH presents credentials)"
	case errors.Is(err, coord.ErrForeign) && strings.Contains(err.Error(), " of the dialect "):
		return "(--dialect stands in its line)"
	case errors.Is(err, coord.ErrForeign) && strings.Contains(err.Error(), "("+string(coord.Kazoo)+" "):
		return "(--dialect kazoo stands in line with Kazoo's)"
	case errors.Is(err, coord.ErrForeign) && strings.Contains(err.Error(), "("+string(coord.Curator)+" "):
		return "(--dialect curator, the default, stands in line with Curator's)"
	}
	return ""
}

// HangUp ends the session, unless that takes too long: then the servers expire
// it.
func HangUp(client *coord.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = client.Close(ctx)
}

// OrUsage gives an error about an invalid argument the status of a usage error,
// and others code.
func OrUsage(err error, code int) error {
	if errors.Is(err, coord.ErrInvalid) {
		code = term.ExitUsage
	}
	return &term.ExitError{Code: code, Err: err}
}

// HeldVariable gives a command the names of the nodes of the holds that it runs
// under, the outermost first. The names are unique across all servers.
const HeldVariable = "COORD_HELD"

// HeldAround are the names in the variable.
func HeldAround() []string { return strings.Fields(os.Getenv(HeldVariable)) }

// SinceVariable gives a command the time since which it runs under its holds.
const SinceVariable = "COORD_SINCE"

// AddressOf is the address to listen at that a flag names.
func AddressOf(flag, at string) (*net.TCPAddr, error) {
	address, err := net.ResolveTCPAddr("tcp", at)
	if err == nil && at == "" { // which would be every address, and any port
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, term.UsageError("%s: %w; write HOST:PORT", flag, err)
	}
	return address, nil
}
