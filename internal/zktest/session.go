package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// sessionPassword is the password a real server gives to a session. It does not
// depend on anything secret: java.util's Random seeded with the id and a
// constant of the server, so that every member of an ensemble can check it.
func sessionPassword(id int64) [16]byte {
	const serverConstant, multiplier, mask = 0xB3415C00, 0x5DEECE66D, 1<<48 - 1
	state := (uint64(id) ^ serverConstant ^ multiplier) & mask
	var password [16]byte
	for i := 0; i < len(password); i += 4 {
		state = (state*multiplier + 0xB) & mask
		binary.LittleEndian.PutUint32(password[i:], uint32(state>>16))
	}
	return password
}

// errUnknownSession is the server's word for a session that is over or never
// was.
var errUnknownSession = errors.New("the server does not know the session")

// takeOver connects to a live session as a second connection of the same client
// would, and sends what follows in the same breath. The server closes the first
// connection. timeout should be the session's own.
func takeOver(addr string, id int64, timeout time.Duration, follow []byte) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	if err := handshake(conn, id, timeout, follow); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("zktest: taking over session 0x%x at %s: %w", id, addr, err)
	}
	return conn, nil
}

func handshake(conn net.Conn, id int64, timeout time.Duration, follow []byte) error {
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	password := sessionPassword(id)
	var b []byte
	b = binary.BigEndian.AppendUint32(b, 44)
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, 16)
	b = append(append(b, password[:]...), follow...)
	if _, err := conn.Write(b); err != nil {
		return err
	}
	reply, err := readFrame(conn)
	if err != nil {
		return err
	}
	const idAt = 4 + 4 // after version and time-out
	if len(reply) < idAt+8 || int64(binary.BigEndian.Uint64(reply[idAt:])) != id {
		return errUnknownSession
	}
	return nil
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	body := make([]byte, min(binary.BigEndian.Uint32(head), 1<<20))
	_, err := io.ReadFull(r, body)
	return body, err
}

// closeRequest is the packet that ends a session.
var closeRequest = []byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // length, xid 1, opcode -11

// expireWithin bounds the attempts to end a session against its own client,
// which connects again and again.
const expireWithin = 20 * time.Second

// ExpireSession ends a session as if it had expired: its ephemeral nodes go,
// and its client hears of it when it connects again. A second connection closes
// the session. ExpireSession returns when that is done.
func (s *Server) ExpireSession(id int64) error {
	var err error
	timeout, tried := s.timeoutOf(id), false
	ended := func() bool {
		if err = closeSession(s.Addr(), id, timeout); tried && errors.Is(err, errUnknownSession) {
			err = nil // an attempt before this one succeeded, though its answer was lost
		}
		tried = true
		return err == nil || errors.Is(err, errUnknownSession)
	}
	poll(expireWithin, ended)
	return err
}

// closeSession fails if the session's own client takes the session back before
// the server has read the request.
func closeSession(addr string, id int64, timeout time.Duration) error {
	conn, err := takeOver(addr, id, timeout, closeRequest)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := readFrame(conn); err != nil {
		return fmt.Errorf("zktest: closing session 0x%x: %w", id, err)
	}
	return nil
}

// DropConn makes the server close the connection of a session; the session
// lives on. On an ensemble, ask the server the session is connected to.
func (s *Server) DropConn(id int64) error {
	conn, err := takeOver(s.Addr(), id, s.timeoutOf(id), nil)
	if err != nil {
		return err
	}
	return conn.Close()
}

// timeoutOf returns the negotiated time-out of a session that is connected
// here, 10 s for any other.
func (s *Server) timeoutOf(id int64) time.Duration {
	timeouts, err := sessionTimeouts(s.Addr())
	if timeout, ok := timeouts[id]; ok && err == nil {
		return timeout
	}
	return 10 * time.Second
}
