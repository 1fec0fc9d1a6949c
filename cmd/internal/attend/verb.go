// Package attend has the verb attend: a host's attendant as a service.
package attend

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/exposition"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/attend"
)

// Verb is the verb attend.
type Verb struct {
	Socket  string        `env:"ZKCOORD_ATTEND" default:"/run/zkcoord/attend.sock" placeholder:"PATH" help:"Where to listen. A socket that systemd passes on takes its place."`
	Mode    string        `default:"0660" help:"The mode of the socket, in octal: who may connect."`
	Grace   time.Duration `default:"250ms" positive:"" help:"How long after a process's end its session is closed: what it had sent arrives first."`
	Most    int           `default:"10000" placeholder:"N" help:"Attend to N clients at most."`
	PerUser int           `default:"5000" placeholder:"N" help:"Attend to N clients of one user at most."`
	Metrics string        `placeholder:"HOST:PORT" help:"Serve metrics for Prometheus there, at /metrics."`
	Check   bool          `help:"Ask whether an attendant listens at --socket: a health probe."`
}

// Help returns what does not fit into the list of options.
func (*Verb) Help() string {
	return `Programs with coord.WithAttendant, and commands with --attendant, tell the attendant of their host which session they have. It needs no servers and no credentials of its own.

Exit status: 0 after an interrupt, or if an attendant answers --check; 69 if none does; 64 usage; 1 if it cannot listen.`
}

// checkWithin is how long an attendant may take to answer a probe.
const checkWithin = 3 * time.Second

// Run serves until it is interrupted.
func (v *Verb) Run(s *term.Streams) error {
	mode, err := strconv.ParseUint(v.Mode, 8, 32)
	switch {
	case err != nil || fs.FileMode(mode)&^fs.ModePerm != 0:
		return term.UsageError("--mode %q: write octal digits, such as 0660", v.Mode)
	case v.Most < 1 || v.PerUser < 1:
		return term.UsageError("--most %d, --per-user %d: they must be positive", v.Most, v.PerUser)
	case v.Check:
		return v.check(s)
	}
	var metrics net.Listener
	if v.Metrics != "" {
		address, err := conn.AddressOf("--metrics", v.Metrics)
		if err != nil {
			return err
		}
		if metrics, err = net.ListenTCP("tcp", address); err != nil {
			return term.ExitWith(term.ExitFailed, "%w (--metrics sets the address)", err)
		}
		defer func() { _ = metrics.Close() }()
	}
	if err := keepSecrets(); err != nil {
		return term.ExitWith(term.ExitFailed, "cannot keep this process's memory out of core files: %w", err)
	}
	l, err := v.listen(fs.FileMode(mode))
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w (--socket sets the path)", err)
	}
	return v.serve(s, l, metrics)
}

// check asks the attendant at the socket.
func (v *Verb) check(s *term.Streams) error {
	ctx, cancel := conn.Within(context.Background(), checkWithin)
	defer cancel()
	sessions, err := attend.Check(ctx, v.Socket)
	switch {
	case errors.Is(err, attend.ErrRefused): // it lives
		return s.Print(map[string]any{"socket": v.Socket, "refused": err.Error()}, "%v\n", err)
	case err != nil:
		return term.ExitWith(term.ExitUnavailable, "no attendant: %w", err)
	}
	return s.Print(map[string]any{"socket": v.Socket, "sessions": sessions}, "%s attended\n",
		term.Plural(sessions, "session is", "sessions are"))
}

// listen takes the socket that systemd has made, or makes one.
func (v *Verb) listen(mode fs.FileMode) (*net.UnixListener, error) {
	const first = 3
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") == "" {
		return attend.Listen(v.Socket, mode)
	}
	file := os.NewFile(first, "systemd's socket")
	defer func() { _ = file.Close() }()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	unix, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(
			errors.New("the socket that systemd passes on is not a Unix socket (ListenStream=/path)"), l.Close())
	}
	v.Socket = unix.Addr().String()
	return unix, nil
}

// serve attends until it is interrupted.
func (v *Verb) serve(s *term.Streams, l *net.UnixListener, metrics net.Listener) error {
	ctx, stopSignals := term.Interruptible(context.Background())
	defer stopSignals()
	a := attend.New(attend.Options{
		Grace: v.Grace, Most: v.Most, MostOfUser: v.PerUser, Log: slog.New(slog.NewTextHandler(s.Err, nil)),
	})
	told := map[string]string{"socket": v.Socket}
	if metrics != nil {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", exposition.ContentType)
			_, _ = io.WriteString(w, text(a.Stats())) // an error means that the scraper is gone
		})
		server := &http.Server{Handler: mux, ReadHeaderTimeout: checkWithin}
		go func() { _ = server.Serve(metrics) }()
		defer func() { _ = server.Close() }()
		told["metrics"] = "http://" + metrics.Addr().String() + "/metrics"
	}
	if err := s.Print(told, "%s\n", v.Socket); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := a.Serve(ctx, l); err != nil {
		return term.ExitWith(term.ExitFailed, "%w", err)
	}
	return nil
}

// The attendant's metrics.
var (
	connections = exposition.Gauge("zkcoord_attend_connections",
		"Clients that are connected, or whose session is being closed.")
	sessions = exposition.Gauge("zkcoord_attend_sessions", "Sessions that are attended.")
	deaths   = exposition.Counter("zkcoord_attend_deaths_total", "Processes that died while their session was attended.")
	closed   = exposition.Counter("zkcoord_attend_closed_total", "Sessions that were closed after a death.")
	failed   = exposition.Counter("zkcoord_attend_failed_total", "Sessions that no server has closed before they expired.")
	refused  = exposition.Counter("zkcoord_attend_refused_total",
		"Connections that were refused: limits, protocol, sessions of other users.")
	took = exposition.Counter("zkcoord_attend_close_seconds_total",
		"Time from the deaths to the ends of the sessions that were closed, summed.")
	slowest = exposition.Gauge("zkcoord_attend_close_seconds_max",
		"The longest time from a death to the end of its session.")
)

func text(s attend.Stats) string {
	t := exposition.New()
	t.Sample(connections, float64(s.Connections))
	t.Sample(sessions, float64(s.Sessions))
	t.Sample(deaths, float64(s.Deaths))
	t.Sample(closed, float64(s.Closed))
	t.Sample(failed, float64(s.Failed))
	t.Sample(refused, float64(s.Refused))
	t.Sample(took, s.Took.Seconds())
	t.Sample(slowest, s.Slowest.Seconds())
	return t.String()
}
