package attend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
)

const (
	// closersAtOnce is how many sessions are closed at a time.
	closersAtOnce = 32
	// frameWithin is how long a frame may take that has begun, the first
	// message of a connection, and an answer.
	frameWithin = 10 * time.Second
	// endWithin is how long an attendant that ends goes on closing the sessions
	// of processes that have died before.
	endWithin = 2 * time.Second
)

// The defaults of [Options].
const (
	DefaultGrace      = 250 * time.Millisecond
	DefaultMost       = 10_000
	DefaultMostOfUser = 5_000
)

// Options configure an attendant. What is 0 has its default.
type Options struct {
	// Grace is the time from the end of a process to the end of its session.
	Grace time.Duration
	// Most is how many connections there may be, and MostOfUser how many of one
	// user. A connection of a process that has died counts until its session is
	// closed.
	Most, MostOfUser int
	// Log gets each session that is closed for a dead process, at Info; and at
	// Warn each one that could not be closed, and each client that is refused.
	Log *slog.Logger
}

// Attendant closes the sessions of processes that have died.
type Attendant struct {
	options Options

	mu       sync.Mutex
	over     bool
	users    map[uint32]*user
	peers    map[*peer]bool
	sessions map[key]*entry
	stats    Stats
}

// user is a user whose processes are connected.
type user struct {
	peers   int
	closers chan struct{} // has room for each server that is being asked for this user: none slows down the others
}

// key tells sessions apart, also of several ensembles: servers choose the
// passwords.
type key struct {
	id       int64
	password string
}

// entry is a session that is attended.
type entry struct {
	user        uint32
	connections int // open ones on which it was announced
}

// Stats counts what an attendant has done since it was made.
type Stats struct {
	Connections int // now; see [Options.Most]
	Sessions    int // that are attended now
	Deaths      int // connections that ended without a goodbye while a session was attended
	Closed      int // sessions that were closed for a process that had died, or found to have expired
	Failed      int // sessions that no server has closed in time
	Refused     int // connections that were ended: limits, protocol, sessions of others
	// Took is the sum of the times from the deaths to the ends of the sessions
	// in Closed, and Slowest the longest.
	Took, Slowest time.Duration
}

// New returns an attendant, which [Attendant.Serve] has serve.
func New(o Options) *Attendant {
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Most = cmp.Or(o.Most, DefaultMost)
	o.MostOfUser = cmp.Or(o.MostOfUser, DefaultMostOfUser)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Attendant{
		options: o, users: map[uint32]*user{}, peers: map[*peer]bool{}, sessions: map[key]*entry{},
	}
}

// Stats returns what the attendant has done so far.
func (a *Attendant) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Connections, s.Sessions = len(a.peers), len(a.sessions)
	return s
}

// Serve attends to the clients that connect to l, until ctx ends, when it
// returns nil, or l fails. It closes l. At the end it goes on closing the
// sessions of processes that have died, for up to two seconds.
func (a *Attendant) Serve(ctx context.Context, l *net.UnixListener) error {
	closing, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var peers, deaths sync.WaitGroup
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	err := a.accept(l, func(conn *net.UnixConn, user uint32, pid int) {
		peers.Go(func() {
			p := &peer{conn: conn, user: user, pid: pid}
			if !a.serve(p) {
				a.release(p)
				return
			}
			died := time.Now()
			deaths.Go(func() {
				defer a.release(p)
				a.bury(closing, p, died)
			})
		})
	})
	_ = l.Close()
	a.leaveAll()
	peers.Wait()
	late := time.AfterFunc(endWithin, abandon)
	deaths.Wait()
	late.Stop()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// accept takes connections, as many as there may be.
func (a *Attendant) accept(l *net.UnixListener, serve func(conn *net.UnixConn, user uint32, pid int)) error {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS),
			errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ECONNABORTED):
			a.options.Log.Warn("cannot accept a connection", "err", err)
			time.Sleep(100 * time.Millisecond)
			continue
		case err != nil:
			return err
		}
		user, pid, err := credentials(conn)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return errors.Join(err, conn.Close())
		case err != nil:
			a.options.Log.Warn("cannot find out whose a connection is", "err", err)
			_ = conn.Close()
		default:
			serve(conn, user, pid)
		}
	}
}

// peer is a connection of a client.
type peer struct {
	conn     *net.UnixConn
	user     uint32
	pid      int
	attended *attend.Session // nil: none
	closers  chan struct{}   // the user's
}

// serve listens to a client, and reports whether its process has died: then
// p.attended is the session to close.
func (a *Attendant) serve(p *peer) (died bool) {
	defer func() { _ = p.conn.Close() }()
	err := a.admit(p)
	if err == nil {
		err = a.listen(p)
	}
	if died = a.part(p, err); !died && !gone(err) && !errors.Is(err, net.ErrClosed) {
		a.refuse(p, err)
	}
	return died
}

// gone reports whether a connection has ended because all who had the other
// end have closed it, and not this attendant. A reset says that they did not
// read an answer.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// listen obeys the client's messages until one is wrong, or the connection
// ends.
func (a *Attendant) listen(p *peer) error {
	limit := func() { _ = p.conn.SetReadDeadline(time.Now().Add(frameWithin)) }
	for limit(); ; {
		var m attend.Message
		if err := attend.Read(p.conn, &m, limit); err != nil {
			return err
		}
		answer := attend.Answer{}
		switch {
		case m.Attend != nil:
			if err := a.attend(p, m.Attend); err != nil {
				return err
			}
		case m.Leave:
			a.forget(p)
		case m.Check:
			answer.Attended = a.Stats().Sessions
		default:
			return fmt.Errorf("%w: a message that says nothing known", attend.ErrProtocol)
		}
		_ = p.conn.SetWriteDeadline(time.Now().Add(frameWithin))
		if attend.Write(p.conn, answer) != nil && !m.Leave && p.attended == nil {
			return net.ErrClosed // one that is attended may be dead, or stopped: reading will tell
		}
		_ = p.conn.SetReadDeadline(time.Time{})
	}
}

// admit counts a connection, if there may be one more.
func (a *Attendant) admit(p *peer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.users[p.user]
	switch {
	case a.over:
		return net.ErrClosed
	case len(a.peers) >= a.options.Most:
		return fmt.Errorf("full: there are %d connections, which is the limit", len(a.peers))
	case u == nil:
		u = &user{closers: make(chan struct{}, closersAtOnce)}
		a.users[p.user] = u
	case u.peers >= a.options.MostOfUser:
		return fmt.Errorf("full: user %d has %d connections, which is the limit for one user", p.user, u.peers)
	}
	a.peers[p] = true
	u.peers++
	p.closers = u.closers
	return nil
}

// release undoes admit.
func (a *Attendant) release(p *peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.peers[p] {
		return
	}
	delete(a.peers, p)
	if u := a.users[p.user]; u.peers > 1 {
		u.peers--
	} else {
		delete(a.users, p.user)
	}
}

// attend takes charge of a session, in place of the peer's former one. A
// session that is told again is attended all the time.
func (a *Attendant) attend(p *peer, s *attend.Session) error {
	if err := s.Validate(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := key{s.ID, string(s.Password)}
	e := a.sessions[k]
	switch {
	case e == nil:
		e = &entry{user: p.user}
		a.sessions[k] = e
	case e.user != p.user:
		return errors.New("the session is another user's")
	}
	e.connections++
	a.drop(p)
	p.attended = s
	return nil
}

// forget ends the charge of a peer's session.
func (a *Attendant) forget(p *peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(p)
}

// drop is forget; a.mu is held.
func (a *Attendant) drop(p *peer) {
	if p.attended == nil {
		return
	}
	k := key{p.attended.ID, string(p.attended.Password)}
	if e := a.sessions[k]; e.connections > 1 {
		e.connections--
	} else {
		delete(a.sessions, k)
	}
	p.attended = nil
}

// part ends the charge of a connection that has ended, and reports whether its
// process has died.
func (a *Attendant) part(p *peer, err error) (died bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := p.attended
	a.drop(p)
	died = s != nil && gone(err)
	if died {
		p.attended = s
		a.stats.Deaths++
	}
	return died
}

// refuse says to a client why its connection ends.
func (a *Attendant) refuse(p *peer, err error) {
	a.mu.Lock()
	a.stats.Refused++
	a.mu.Unlock()
	a.options.Log.Warn("a client is refused", "user", p.user, "pid", p.pid, "err", err)
	_ = p.conn.SetWriteDeadline(time.Now().Add(frameWithin))
	_ = attend.Write(p.conn, attend.Answer{Error: err.Error()})
}

// leaveAll ends all connections; that closes no session.
func (a *Attendant) leaveAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for p := range a.peers {
		_ = p.conn.Close()
	}
}

// bury closes the session of a process that has died, after the grace, unless
// it is told again by then.
func (a *Attendant) bury(ctx context.Context, p *peer, died time.Time) {
	s := *p.attended
	log := a.options.Log.With("session", s, "user", p.user, "pid", p.pid)
	select {
	case <-time.After(a.options.Grace):
	case <-ctx.Done():
		return
	}
	if a.attends(s) {
		log.Info("a connection has ended, and the session is attended on another")
		return
	}
	closer, err := attend.CloserOf(s)
	closer.Try = func(at func() error) error {
		select {
		case p.closers <- struct{}{}:
			defer func() { <-p.closers }()
			return at()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err == nil {
		err = closer.Close(ctx, s)
	}
	took := time.Since(died)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.stats.Failed++
		log.Warn("cannot close the session of a process that has died; it expires by itself", "after", took, "err", err)
		return
	}
	a.stats.Closed++
	a.stats.Took += took
	a.stats.Slowest = max(a.stats.Slowest, took)
	log.Info("closed the session of a process that has died", "after", took)
}

// attends reports whether a connection is there on which a session was told.
func (a *Attendant) attends(s attend.Session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[key{s.ID, string(s.Password)}] != nil
}
