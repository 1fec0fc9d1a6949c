package session

import (
	"context"
	"errors"
	"math/rand/v2"
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
	list := servers.NewList(k.cfg.Config)
	for ctx.Err() == nil {
		server, _ := list.Next()
		err := closeOn(ctx, list, server, wire.Welcome{ID: id, Timeout: timeout, Passwd: passwd})
		if err == nil {
			return
		}
		k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
		pause(ctx, timeout/40+rand.N(timeout/40))
	}
}

// closeOn closes a session over a connection of its own, or finds out that the
// server has expired it.
func closeOn(ctx context.Context, list *servers.List, server string, former wire.Welcome) error {
	ctx, cancel := context.WithTimeout(ctx, former.Timeout/handshakeShare)
	defer cancel()
	conn, err := list.Connect(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return wire.CloseSession(conn, former)
}
