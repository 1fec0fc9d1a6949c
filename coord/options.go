package coord

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// defaultSessionTimeout is the session timeout asked for when
// [WithSessionTimeout] is not given.
const defaultSessionTimeout = 10 * time.Second

type options struct {
	session.Config

	acl         []zk.ACL
	observers   []func(event.Event)
	identity    []byte // in the data of the nodes
	held        []string
	dropping    bool // holds end with their connection
	needsChroot bool
	dialect     Dialect
}

// Option sets something about a [Client].
type Option func(*options) error

// option sets something, or is invalid for the reason that follows.
func option(valid bool, set func(*options), format string, args ...any) Option {
	return func(o *options) error {
		if !valid {
			return wire.Invalid(format, args...)
		}
		set(o)
		return nil
	}
}

func defaults() options {
	return options{
		Config: session.Config{
			Config:  servers.Config{Dial: (&net.Dialer{}).DialContext, Lookup: net.DefaultResolver.LookupHost},
			Timeout: defaultSessionTimeout, MaxPacket: wire.DefaultMaxPacket, Log: slog.New(slog.DiscardHandler),
			Waiting: slog.Default(),
		},
		acl:      zk.WorldACL(zk.PermAll),
		dialect:  Curator,
		identity: []byte(filepath.Base(os.Args[0])),
	}
}

// WithSessionTimeout sets the session timeout T to ask for. The server may
// grant another one ([Info.SessionTimeout]). After a crash, others wait up to
// T for what the crashed process held; a hold survives an outage of T/3.
func WithSessionTimeout(d time.Duration) Option {
	return option(d >= time.Millisecond && d <= 24*time.Hour, func(o *options) { o.Timeout = d },
		"session timeout %v: it must be between 1 ms and 24 h", d)
}

// WithTick sets what the servers' tickTime is. A follower reports to the leader
// which sessions it heard from when the leader asks, every half tick; the trust
// window allows for a leader that is late by as much again (at most T/8).
// Knowing the tick (2 s by default, often) makes the window longer: a hold
// survives an outage of T/2 if the tick is at most T/5. Unknown, it is taken
// for T/2, the most a server can have unless its minSessionTimeout is set to
// less than two ticks: then set the tick. A value that is too small makes the
// window unsafe; one that is too large makes it shorter, and [Open] refuses
// more than T, which leaves none.
func WithTick(d time.Duration) Option {
	return option(d > 0, func(o *options) { o.Tick = d }, "tick %v: it must be positive", d)
}

// WithACL sets the ACL of every node the client creates, each entry as
// ZooKeeper's own tools write it: "scheme:id:permissions", with the letters c
// (create), d (delete), r (read), w (write) and a (admin), such as
// "world:anyone:r" and "auth::cdrwa". By default all clients may do everything.
// To wait for a node, a client only needs to see it; to revoke a hold it needs
// w on the node, to break one d on the directory.
func WithACL(entries ...string) Option {
	return func(o *options) error {
		if len(entries) == 0 {
			return wire.Invalid("an empty ACL; leave the option out for world:anyone:cdrwa")
		}
		o.acl = nil
		for _, entry := range entries {
			acl, err := wire.ParseACL(entry)
			if err != nil {
				return err
			}
			o.acl = append(o.acl, acl)
		}
		return nil
	}
}

// WithAuth adds a credential, such as "digest" and "user:password", presented
// on every connection before anything else.
func WithAuth(scheme, value string) Option {
	credential := attend.Credential{Scheme: scheme, Value: []byte(value)}
	return option(scheme != "", func(o *options) { o.Auth = append(o.Auth, credential) },
		"the credential's scheme is empty; write for example digest")
}

// WithDialer sets how to connect to a server, named as in the list given to
// [Open]; by default, by TCP to each address that the name has, in turn. The
// context ends after ten seconds, or when another server was faster: the next
// server is tried as well after a second, or a sixth of the session timeout if
// that is less.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return option(dial != nil, func(o *options) { o.Dial, o.Lookup = dial, nil }, "the dialer is nil")
}

// WithTLS connects by TLS, over what the dialer returns ([WithDialer]). Unless
// the configuration names the server, its certificate must be for the host
// named in the list given to [Open].
//
// The client uses this configuration as long as it lives. For certificates that
// are replaced, use [WithTLSFiles], or GetClientCertificate and
// VerifyConnection, whose results an attendant is told ([WithAttendant]).
func WithTLS(config *tls.Config) Option {
	return option(config != nil, func(o *options) { o.TLS = servers.Fixed(config) }, "the TLS configuration is nil")
}

// WithTLSFiles is [WithTLS] with certificates from files in PEM form: the
// authorities that the client trusts, its certificate, and the key of that. An
// empty name stands for the system's authorities, for no certificate, and for a
// key in the certificate's file. The files are read again at each handshake if
// they have changed: a service outlives its certificates. As long as they
// cannot be read, as in the middle of a rotation, what they held before is
// used.
func WithTLSFiles(ca, cert, key string) Option {
	return func(o *options) error {
		files := &servers.Files{CA: ca, Cert: cert, Key: key}
		if _, err := files.Config(); err != nil {
			return fmt.Errorf("%w: TLS: %w", wire.ErrInvalid, err)
		}
		o.TLS = files.Config
		return nil
	}
}

// WithoutContainers has the client make directories as persistent nodes, for
// servers without containers (before ZooKeeper 3.5). It finds that out by
// itself, but each of its sessions may lose two connections by that.
func WithoutContainers() Option {
	return option(true, func(o *options) { o.NoContainers = true }, "")
}

// WithMaxPacket states the servers' jute.maxbuffer, if it is not the default of
// 1048575 bytes. A larger request, all of it counted (paths, data, ACLs), fails
// with [ErrTooLarge] and is not sent: a server would close the connection, and
// fail all requests under way. Where servers accept less than this, the first
// request that is too large costs four connections, and each one that is tried
// later, smaller or after a minute, costs one; then such requests fail as well.
// Connections that are closed for other reasons, by servers that restart or by
// a proxy, count for nothing: when a connection is closed under a request,
// reads of that size that find nothing show whether servers accept it.
func WithMaxPacket(bytes int) Option {
	return option(bytes >= 4096, func(o *options) { o.MaxPacket = bytes },
		"packets of at most %d bytes: the limit must be 4096 or more", bytes)
}

// WithLogger sets where to log. At Warn: a session or a hold that was lost;
// that no server can be reached, with the reason for each, after 5 s (after 1 s
// if there was no connection yet) and then every 30 s; that the servers have
// lost changes which this client saw, as after a restored backup; and what
// recipes report: a function of once or cron that failed, a leader that resigns
// since its health check failed, a clock that is wrong. At Info: sessions and
// connections that begin, connections that end, and what [Client.Close] ends.
// At Debug: each attempt to connect that failed. Without this option only the
// wait for the first connection, and what recipes report, are logged, by
// [slog.Default]. A handler that blocks delays the session's probes, and so
// ends the holds.
func WithLogger(log *slog.Logger) Option {
	return option(log != nil, func(o *options) { o.Log, o.Waiting = log, log },
		"the logger is nil; leave the option out for no log")
}

// WithObserver has f called with every [event.Event], for metrics. It is called
// from many goroutines and must not block. Each use of the option adds an
// observer.
func WithObserver(f func(event.Event)) Option {
	return option(f != nil, func(o *options) { o.observers = append(o.observers, f) }, "the observer is nil")
}

// WithAttendant has the attendant of this host close the session as soon as
// this process is gone, however it died: the next in line follows within
// milliseconds, and only the loss of the host costs the session timeout, which
// can be long then (30 or 60 s). path is the attendant's socket, such as
// /run/zkcoord/attend.sock; package attend and "zkcoord attend" serve it, and
// its documentation says what an attendant is told and guarantees. Nothing
// depends on the attendant: without one, the client looks for it again and
// again, and says so once, in the log and by [event.SessionAttended].
//
// The process counts as gone when all who have its connection to the attendant
// have closed it. Programs that the process starts do not inherit it. A program
// that acts under a hold of this process, and may outlive it, needs a copy:
// each function of share gets a copy of each connection, before the session is
// announced on it. Pass the copy on (exec.Cmd.ExtraFiles), and close it when it
// is no longer needed. The function must not block.
func WithAttendant(path string, share ...func(connection *os.File)) Option {
	return func(o *options) error {
		if path == "" || strings.ContainsRune(path, 0) {
			return wire.Invalid("attendant %q: write the path of its socket, such as /run/zkcoord/attend.sock", path)
		}
		for _, f := range share {
			if f == nil {
				return wire.Invalid("a function to share the connection to the attendant with is nil")
			}
		}
		o.Attendant, o.Share = path, share
		return nil
	}
}

// WithIdentity names this process in the data of its nodes, beside host and
// pid; the default is the program's name.
func WithIdentity(name string) Option {
	return option(name != "" && len(name) <= 256 && !strings.ContainsAny(name, "\n\r"),
		func(o *options) { o.identity = []byte(name) },
		"identity %q: it must be one line of 1 to 256 bytes", name)
}

// WithHeld says that this process runs under holds of other processes, by the
// names of their nodes, the outermost first: every claim says so in its data
// (Under of inspect.Contender), which lets operators find processes that wait
// for each other. The command passes these names to its CMD in the environment:
//
//	coord.WithHeld(strings.Fields(os.Getenv("COORD_HELD"))...)
func WithHeld(nodes ...string) Option {
	return func(o *options) error {
		for _, name := range nodes {
			if err := wire.CheckName(name); err != nil {
				return err
			}
		}
		o.held = slices.Clone(nodes)
		return nil
	}
}

// LoseAtDisconnect ends every hold as soon as the connection is lost. Without
// it a hold survives a short disconnection: it ends when the trust window does.
// A place in a semaphore's queue and one in a double barrier are holds, too: a
// waiter there begins anew after each disconnection.
func LoseAtDisconnect() Option {
	return option(true, func(o *options) { o.dropping = true }, "")
}

// RequireChroot has [Open] fail with [ErrNoNode] when the chroot of the connect
// string does not exist: two requests. Without it the chroot is made when it is
// needed, as any directory is, and the log has a warning. A misspelt chroot
// makes two locks of one.
func RequireChroot() Option {
	return option(true, func(o *options) { o.needsChroot = true }, "")
}

// WithDialect says whose node names to use and to understand; see [Dialect].
func WithDialect(d Dialect) Option {
	format := "unknown dialect %q"
	if d.IsDescribed() && dialect.Check(d) == nil {
		format = "the dialect %q describes one line: give it to the mutex or the election that stands there, as its option Dialect"
	}
	return option(d == Curator || d == Kazoo, func(o *options) { o.dialect = d }, format, d)
}

// complete completes the identity, and checks what concerns several options.
func (o *options) complete() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	o.identity = fmt.Appendf(nil, "%s %s %d", o.identity, host, os.Getpid())
	if o.Tick > o.Timeout {
		return wire.Invalid("tick %v leaves no trust window of a session timeout of %v; ask for a longer one",
			o.Tick, o.Timeout)
	}
	return nil
}
