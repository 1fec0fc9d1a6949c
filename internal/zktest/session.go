package zktest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// sessionPassword is the password a real server gives to a session. It does not depend on anything secret: java.util's
// Random seeded with the id and a constant of the server, so that every member of an ensemble can check it.
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

// takeOver connects to a live session as a second connection of the same client would. The server closes the first
// connection. timeout should be the session's own.
func takeOver(addr string, id int64, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	if err := handshake(conn, id, timeout); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func handshake(conn net.Conn, id int64, timeout time.Duration) error {
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
	b = append(b, password[:]...)
	if _, err := conn.Write(b); err != nil {
		return err
	}
	reply := make([]byte, 4+16) // length, version, time-out, session id
	if _, err := io.ReadFull(conn, reply); err != nil {
		return fmt.Errorf("zktest: taking over session 0x%x: %w", id, err)
	}
	if got := int64(binary.BigEndian.Uint64(reply[12:])); got != id {
		return fmt.Errorf("zktest: taking over session 0x%x: the server does not know it", id)
	}
	rest := int64(binary.BigEndian.Uint32(reply)) + 4 - int64(len(reply))
	_, err := io.CopyN(io.Discard, conn, rest)
	return err
}

// closeSession ends the session of a taken-over connection and waits until the server has closed it.
func closeSession(conn net.Conn) error {
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint32(b, 1)           // xid
	b = binary.BigEndian.AppendUint32(b, 0xffff_fff5) // opcode -11
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

// ExpireSession ends a session as if it had expired: its ephemeral nodes go, and its client hears of it when it
// connects again. The server is told by a second connection that closes the session.
func (s *Server) ExpireSession(id int64) error {
	conn, err := takeOver(s.Addr(), id, s.timeoutOf(id))
	if err != nil {
		return err
	}
	defer conn.Close()
	return closeSession(conn)
}

// DropConn makes the server close the connection of a session; the session lives on. On an ensemble, ask the server the
// session is connected to.
func (s *Server) DropConn(id int64) error {
	conn, err := takeOver(s.Addr(), id, s.timeoutOf(id))
	if err != nil {
		return err
	}
	return conn.Close()
}

// timeoutOf returns the negotiated time-out of a session that is connected here, 10 s for any other.
func (s *Server) timeoutOf(id int64) time.Duration {
	timeouts, err := sessionTimeouts(s.Addr())
	if timeout, ok := timeouts[id]; ok && err == nil {
		return timeout
	}
	return 10 * time.Second
}
