package session

import (
	"errors"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up: others need not wait until the servers expire it. Nothing
// trusts the session any more: its holds have ended before.
func (k *Keeper) closeFormer(s *Session) {
	account, _ := s.Account() // TLS is as this process has it
	if !errors.Is(s.Err(), errGivenUp) || len(account.Password) == 0 {
		return
	}
	if _, err := k.Session(k.stop); err != nil {
		return
	}
	config := k.cfg.Config
	config.Pace = nil // of its own
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

// Account returns what another process needs to close the session. It fails if
// the session has never been up, or if the TLS configuration cannot be passed
// on.
func (s *Session) Account() (account attend.Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account = attend.Session{Servers: s.cfg.Servers, ID: s.id, Password: s.passwd, Timeout: s.timeout, Auth: s.cfg.Auth}
	if s.wire == nil || s.passwd == nil {
		return account, wire.ErrConnection
	}
	account.TLS, err = attend.TLSOf(s.cfg.TLS, s.wire.Conn)
	return account, err
}

// beAttended tells the attendant of the session, once it has a password.
func (s tap) beAttended() {
	if account, err := s.Account(); err != nil {
		s.cfg.attendant.Refuse(account.ID, err)
	} else {
		s.cfg.attendant.Attend(account)
	}
}
