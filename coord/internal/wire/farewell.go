package wire

import (
	"bufio"
	"io"
	"net"
	"time"
)

// Farewell closes a session over a connection of its own.
type Farewell struct {
	Session     Welcome
	credentials [][]byte // packets
}

// Present adds a credential to the farewell: servers may require one of
// everybody.
func (f *Farewell) Present(scheme string, credential []byte) {
	f.credentials = append(f.credentials,
		Credential(scheme, credential)(appendInt32(appendInt32(nil, xidAuth), int32(OpAuth))))
}

// Say closes the session, or finds out that the server has expired it.
func (f *Farewell) Say(conn net.Conn) error {
	in := bufio.NewReader(conn)
	b := appendInt64(appendInt32(nil, 0), 0) // the protocol's version, the last zxid seen
	b = appendInt64(appendInt32(b, int32(f.Session.Timeout/time.Millisecond)), f.Session.ID)
	answer, err := exchange(conn, in, appendBuffer(b, f.Session.Passwd))
	if err != nil {
		return err
	}
	d := Decoder{b: answer}
	switch w := d.welcome(); {
	case d.malformed, w.ID != 0 && w.ID != f.Session.ID:
		return errHandshake
	case w.ID == 0:
		return nil // expired
	}
	for _, packet := range f.credentials { // a server that refuses one closes the connection
		if _, err := exchange(conn, in, packet); err != nil {
			return err
		}
	}
	_, err = exchange(conn, in, appendInt32(appendInt32(nil, xidClose), int32(OpClose)))
	return err
}

// exchange sends a packet and reads one.
func exchange(conn net.Conn, in io.Reader, packet []byte) ([]byte, error) {
	if _, err := conn.Write(withLength(packet)); err != nil {
		return nil, err
	}
	return receive(in)
}

// receive reads a packet no larger than a handshake.
func receive(in io.Reader) ([]byte, error) {
	head := make([]byte, lengthSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	n := int32At(head, 0)
	if n < 0 || n > maxHandshake {
		return nil, errHandshake
	}
	packet := make([]byte, n)
	_, err := io.ReadFull(in, packet)
	return packet, err
}

// Part answers the client library when the session is over. Without a
// connection to send its request on, the library's Close would wait a second
// for the reply. begun gets a value when there is one.
func Part(conn net.Conn, begun chan<- struct{}) {
	const minute = int32(time.Minute / time.Millisecond) // so long that the library sends no ping
	_, err := receive(conn)
	answer := appendBuffer(appendInt64(appendInt32(appendInt32(nil, 0), minute), 1), make([]byte, 16))
	for err == nil {
		_, _ = conn.Write(withLength(answer))
		select {
		case begun <- struct{}{}:
		default:
		}
		var closing []byte
		closing, err = receive(conn)
		answer = appendInt32(appendInt64(appendInt32(nil, int32At(closing, 0)), 0), 0)
	}
}
