package session

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up, so that others need not wait until the servers expire it.
// Nothing trusts the session any more: its holds have ended before.
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
	hosts := newHosts(ctx, k.cfg.Servers)
	for ctx.Err() == nil {
		server, _ := hosts.Next()
		err := k.closeOn(ctx, hosts, server, closing{id, passwd, timeout})
		if err == nil {
			return
		}
		k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
		pause := time.NewTimer(timeout/40 + rand.N(timeout/40))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// closing is a session that is to be closed.
type closing struct {
	id      int64
	passwd  []byte
	timeout time.Duration
}

// closeOn closes a session over a connection of its own, or finds out that the
// server has expired it.
func (k *Keeper) closeOn(ctx context.Context, hosts *hosts, server string, c closing) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout/handshakeShare)
	defer cancel()
	conn, err := k.cfg.connect(ctx, hosts, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	in := bufio.NewReader(conn)
	answer, err := exchange(conn, in, c.handshake())
	switch {
	case err != nil:
		return err
	case int64At(answer, 8) == 0:
		return nil // expired
	case int64At(answer, 8) != c.id:
		return errHandshake
	}
	_, err = exchange(conn, in, closeFrame())
	return err
}

func (c closing) handshake() []byte {
	b := appendInt32(nil, 0)                // the protocol's version
	b = binary.BigEndian.AppendUint64(b, 0) // the last zxid seen
	b = appendInt32(b, int32(c.timeout/time.Millisecond))
	b = binary.BigEndian.AppendUint64(b, uint64(c.id))
	return withLength(appendString(b, string(c.passwd)))
}

// exchange sends a frame and reads one.
func exchange(conn net.Conn, in *bufio.Reader, frame []byte) ([]byte, error) {
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	head := make([]byte, lengthSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	n := int32At(head, 0)
	if n < 0 || n > 1<<10 {
		return nil, errHandshake
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(in, answer)
	return answer, err
}
