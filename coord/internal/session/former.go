package session

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up: others need not wait until the servers expire it. Nothing
// trusts the session any more: its holds have ended before.
func (k *Keeper) closeFormer(s *Session) {
	s.mu.Lock()
	id, passwd, timeout := s.id, s.passwd, s.timeout
	s.mu.Unlock()
	if !errors.Is(s.Err(), errGivenUp) || len(passwd) == 0 {
		return
	}
	if _, err := k.Session(k.stop); err != nil {
		return
	}
	// If no server answers by then, the session has expired anyway.
	ctx, cancel := context.WithTimeout(k.stop, timeout)
	defer cancel()
	search := servers.New(ctx, k.cfg.Config, func(attempt func()) error {
		k.running.Go(attempt)
		return nil
	})
	for ctx.Err() == nil {
		server, _ := search.Next()
		conn, err := search.Find("tcp", server, timeout, false)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(timeout / handshakeShare))
			err = wire.CloseSession(conn, wire.Welcome{ID: id, Timeout: timeout, Passwd: passwd})
			stop()
			_ = conn.Close()
		}
		if err == nil {
			return
		}
		k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
	}
}
