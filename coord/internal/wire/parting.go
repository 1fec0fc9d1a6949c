package wire

import (
	"net"
	"time"
)

// Parting is what the client library gets for a connection when the session is
// over, so that its Close ends at once: Close waits a second for the reply to
// its request, unless there is a connection to send it on.
type Parting struct {
	net.Conn // none

	Begun   chan struct{} // closed when the library has the connection
	replies chan []byte
	ready   []byte
}

// NewParting returns a Parting.
func NewParting() *Parting {
	return &Parting{Begun: make(chan struct{}), replies: make(chan []byte, 2)}
}

// Write answers the handshake, which comes first, and the library's close.
func (p *Parting) Write(b []byte) (int, error) {
	select {
	case <-p.Begun:
		if OpCode(int32At(b, 8)) == OpClose {
			p.replies <- appendInt32(appendInt64(appendInt32(nil, int32At(b, 4)), 0), 0)
		}
	default:
		const minute = int32(time.Minute / time.Millisecond) // without any ping
		p.replies <- appendBuffer(appendInt64(appendInt32(appendInt32(nil, 0), minute), 1), make([]byte, 16))
		close(p.Begun)
	}
	return len(b), nil
}

// Read gives the library the replies. After the last one it does not read.
func (p *Parting) Read(b []byte) (int, error) {
	if len(p.ready) == 0 {
		p.ready = withLength(<-p.replies)
	}
	n := copy(b, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// Close does nothing.
func (p *Parting) Close() error { return nil }

// SetReadDeadline does nothing.
func (p *Parting) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (p *Parting) SetWriteDeadline(time.Time) error { return nil }
