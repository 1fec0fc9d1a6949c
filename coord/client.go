package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/author"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/witness"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Client is a connection to a ZooKeeper ensemble. It survives the loss of its
// session: it opens another by itself. Claims and holds do not survive it: each
// claim and hold belongs to the session it was born in. A Client is safe for
// concurrent use.
type Client struct {
	clientOffer
	*shared
	flushed *atomic.Int64 // of one that [Client.Synced] made: the session in which it may read
}

// clientSteps are the methods of a client for authors of recipes: see
// [author.Of].
type clientSteps Client

type clientOffer = author.Offer[*clientSteps]

func newClient(of *shared, flushed *atomic.Int64) *Client {
	c := &Client{shared: of, flushed: flushed}
	c.clientOffer = author.Make((*clientSteps)(c))
	return c
}

// shared is the state of a client and of the clients that [Client.Synced] made
// of it.
type shared struct {
	opts options
	chroot
	keeper    *session.Keeper
	nodes     znode.Host
	claims    registry
	lastSpec  atomic.Pointer[Spec] // see share
	lookouts  lookouts
	witnesses *witness.Pool // of each recipe.Transactor
	clock     clock
	reported  sync.Map  // what recipe.ReportOnce has reported
	began     time.Time // what the claims' times count from
	closed    chan struct{}
	once      sync.Once
}

// Open connects to the servers, given as "host:port,host:port/chroot" (port
// 2181 by default; with a chroot, every path is relative to it; it stands once,
// behind the last server, and has no comma), and returns
// when a session exists. Until then it waits for the servers, as long as ctx
// lasts: give it one that ends. It fails with an error that matches
// [ErrInvalid] if an argument is invalid, and with ctx's error if ctx ends
// first. See also [RequireChroot].
func Open(ctx context.Context, list string, opts ...Option) (*Client, error) {
	c, err := configure(list, opts)
	if err != nil {
		return nil, opError("open", "", err)
	}
	c.keeper, err = session.NewKeeper(c.opts.Config)
	if err != nil {
		return nil, opError("open", "", err)
	}
	c.witnesses = witness.New(witness.Config{
		Host: &c.nodes, Keeper: c.keeper, Data: c.opts.identity, ACL: c.opts.acl,
		Name: func() string { return dialect.GUID(c.opts.dialect) },
	})
	_, err = c.keeper.Session(ctx)
	if err == nil && len(c.opts.Auth) > 0 {
		_, _, err = c.Synced().Exists(ctx, "/") // answered after the credentials
	}
	if err != nil {
		err = fmt.Errorf("no session with %s: %w", list, err)
	} else {
		err = c.lookForChroot(ctx)
	}
	if err != nil {
		go func() { _ = c.Close(context.Background()) }()
		return nil, c.failure("open", "", err)
	}
	return c, nil
}

// lookForChroot refuses a missing chroot if it must exist, and otherwise logs a
// warning.
func (c *Client) lookForChroot(ctx context.Context) error {
	if c.chroot == "" || !c.opts.needsChroot && !c.opts.Log.Enabled(ctx, slog.LevelWarn) {
		return nil
	}
	_, there, err := c.Exists(ctx, "/")
	if err == nil && !there && c.opts.needsChroot {
		_, there, err = c.Synced().Exists(ctx, "/") // the server may lag behind the others
	}
	switch {
	case err != nil || there:
		return err
	case c.opts.needsChroot:
		return fmt.Errorf("chroot %s: %w", c.chroot, ErrNoNode)
	}
	c.opts.Log.Warn("the chroot does not exist; it is made when it is needed", "chroot", c.chroot)
	return nil
}

func configure(list string, opts []Option) (*Client, error) {
	c := newClient(&shared{
		opts: defaults(), closed: make(chan struct{}), began: time.Now(), lookouts: lookouts{at: map[lineKey]*lookout{}},
	}, nil)
	c.nodes.Tell, c.nodes.IsRequest, c.nodes.Others = c.tell, dialect.IsRequest, c.claims.nodes
	c.opts.Notify, c.opts.Attended = c.notify, c.opts.attended
	addresses, root, err := servers.Parse(list)
	if err != nil {
		return nil, err
	}
	c.opts.Servers, c.chroot = addresses, chroot(root)
	for _, set := range opts {
		if set == nil {
			return nil, wire.Invalid("an option is nil")
		}
		if err := set(&c.opts); err != nil {
			return nil, err
		}
	}
	if err := c.opts.complete(); err != nil {
		return nil, err
	}
	return c, nil
}

// Account returns what closing the client's session takes.
func (s *clientSteps) Account() (attend.Session, error) { return s.keeper.Current().Account() }

// Close ends the session, which ends every claim and hold, and joins every
// goroutine. It waits for the server's answer at most a second, or a sixth of
// the session timeout if that is less. Without a connection it does not wait,
// and the session's nodes stay until the servers expire it. When ctx ends
// first, Close returns its error and goes on in the background.
func (c *Client) Close(ctx context.Context) error {
	c.once.Do(func() { close(c.closed) })
	return opError("close", "", c.keeper.Close(ctx))
}

// Info is what a [Client] knows about itself.
type Info struct {
	Chroot    string // the path that the connect string puts before every other, or ""
	Identity  string // the line that names this process in the data of its nodes
	Dialect   Dialect
	MaxPacket int // the size in bytes of the largest request that is sent; see [WithMaxPacket]

	SessionID      int64         // of the current session, or 0 when there is none yet
	SessionTimeout time.Duration // that the server granted
	// Connected: the client has a connection, and a session: it can send
	// requests. Use it for a readiness probe; a hold outlives a short
	// disconnection (see [Hold.Deadline]).
	Connected bool
}

// Info returns what the client knows about itself, and how it stands at the
// moment. It costs no request.
func (c *Client) Info() Info {
	s := c.keeper.Current()
	return Info{
		Chroot: string(c.chroot), Identity: string(c.opts.identity), Dialect: c.opts.dialect, MaxPacket: c.opts.MaxPacket,
		SessionID: s.ID(), SessionTimeout: s.Timeout(), Connected: s.Connected(),
	}
}

// chroot is the path that the connect string puts before every other, or "".
type chroot string

// full turns a path of the user's into one of the server's, relative undoes it.
func (c chroot) full(path string) string {
	if c == "" {
		return path
	}
	if path == "/" {
		return string(c)
	}
	return string(c) + path
}

func (c chroot) relative(full string) string {
	if rest := strings.TrimPrefix(full, string(c)); rest != "" || full == "" {
		return rest
	}
	return "/"
}

// Failure is recipe.Failure.
func (s *clientSteps) Failure(op, path string, err error) error {
	return (*Client)(s).failure(op, path, err)
}

func (c *Client) failure(op, path string, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if inner, told := err.(*OpError); told && (ended || errors.Is(err, ErrUnconfirmed)) {
		err = inner.Err
	}
	if err = c.explain(err); ended {
		return &OpError{Op: op, Path: path, Err: err}
	}
	return opError(op, path, err)
}

// silence is the end of a context while the server owed an answer.
type silence struct {
	error
	span time.Duration
}

func (e *silence) Error() string {
	return fmt.Sprintf("%v (the server has not answered for %v)", e.error, e.span.Round(time.Millisecond))
}

func (e *silence) Unwrap() error { return e.error }

// explain adds the likely cause to the error of a context that ended while no
// server could be reached, or answered.
func (c *Client) explain(err error) error {
	if err == nil || errors.Is(err, ErrDisconnected) || errors.Is(err, ErrClosed) {
		return err
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	if s := c.keeper.Current(); s.Connected() {
		if silent := s.Unanswered(); silent > 0 && !errors.As(err, new(*silence)) {
			err = &silence{err, silent}
		}
		return err
	}
	if trouble := c.keeper.LastErrors(); trouble != nil {
		return fmt.Errorf("%w (%w: %v)", err, ErrDisconnected, trouble)
	}
	return fmt.Errorf("%w (%w)", err, ErrDisconnected)
}
