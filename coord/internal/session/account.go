package session

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up: others need not wait until the servers expire it. Nothing
// trusts the session any more: its holds have ended before.
func (k *Keeper) closeFormer(s *Session) {
	account, _ := s.Account() // an error is about another process's TLS
	if !errors.Is(s.Err(), errGivenUp) || len(account.Password) == 0 {
		return
	}
	if _, err := k.Session(k.stop); err != nil {
		return
	}
	config := k.cfg.Config
	config.Pace = nil // a pace of its own
	closer := attend.Closer{
		Config: config,
		Run: func(attempt func()) error {
			k.running.Go(attempt)
			return nil
		},
		Try: func(at func() error) error { return at() },
		Failed: func(server string, err error) {
			k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
		},
	}
	_ = closer.Close(k.stop, account)
}

// Account returns what another process needs to close the session, as it is
// now. It fails if the session has never been up, or if the TLS configuration
// cannot be passed on.
func (s *Session) Account() (account attend.Session, err error) {
	s.mu.Lock()
	account = attend.Session{Servers: s.cfg.Servers, ID: s.id, Password: s.passwd, Timeout: s.timeout, Auth: s.cfg.Auth}
	connection := s.wire
	s.mu.Unlock()
	switch {
	case connection == nil || account.Password == nil:
		return account, wire.ErrConnection
	case s.cfg.TLS == nil:
		return account, nil
	}
	config, _ := s.cfg.TLS() // calls functions of the program
	account.TLS, err = attend.TLSOf(config, connection.Conn)
	return account, err
}

// attendance is what the attendant was told of the session.
type attendance struct {
	mu      sync.Mutex
	account attend.Session
	refused string    // why it could not be told
	at      time.Time // when that was last compared with what it takes now
}

// compareEvery is how often the client compares what the attendant was told
// with what it would tell it now: certificates are replaced before they expire.
const compareEvery = 5 * time.Second

// mostPinned is the most certificates of servers that the attendant gets.
const mostPinned = 16

// beAttended announces the session to the attendant, once it has a password,
// and again when the means to close it have changed.
func (s *Session) beAttended() {
	if !s.attendance.mu.TryLock() {
		return // under way
	}
	defer s.attendance.mu.Unlock()
	s.attendance.at = time.Now()
	account, err := s.Account()
	switch before := s.attendance.account; {
	case err == wire.ErrConnection:
	case err != nil && err.Error() != s.attendance.refused:
		s.attendance.refused = err.Error()
		s.cfg.attendant.Refuse(account.ID, err)
	case err == nil:
		if account.TLS != nil && len(account.TLS.Pinned) > 0 && before.TLS != nil { // other servers have other certificates
			account.TLS.Pin(before.TLS.Pinned, mostPinned)
		}
		if s.attendance.refused != "" || !reflect.DeepEqual(account, before) {
			s.attendance.account, s.attendance.refused = account, ""
			s.cfg.attendant.Attend(account)
		}
	}
}

// mayHaveChanged announces the session again, in the background, if it is time
// to compare and something has changed. It returns in how long to compare next.
func (s *Session) mayHaveChanged(now time.Time) time.Duration {
	if s.cfg.attendant == nil || s.cfg.TLS == nil {
		return compareEvery
	}
	if !s.attendance.mu.TryLock() {
		return compareEvery
	}
	due := s.attendance.at.Add(compareEvery).Sub(now)
	s.attendance.mu.Unlock()
	if due <= 0 {
		_ = s.Go(s.beAttended) // fails when the session is over
		return compareEvery
	}
	return due
}
