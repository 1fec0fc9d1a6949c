package attend

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

const (
	version    = 1
	headerSize = 4
	maxBody    = 64 << 10
)

// Message is what a client says: one of the fields is set.
type Message struct {
	Attend *Session `json:"attend,omitempty"`
	Leave  bool     `json:"leave,omitempty"`
	Check  bool     `json:"check,omitempty"`
}

// Answer is what the attendant says to a message.
type Answer struct {
	Error    string `json:"error,omitempty"`    // why the message was refused; the connection ends
	Attended int    `json:"attended,omitempty"` // sessions, in answer to a check
}

// Session is all that it takes to close a session. It prints without its
// secrets.
type Session struct {
	Servers  []string      `json:"servers"` // host:port each
	ID       int64         `json:"session"`
	Password []byte        `json:"password"`
	Timeout  time.Duration `json:"timeout"` // nanoseconds
	Auth     []Credential  `json:"auth,omitempty"`
	TLS      *TLS          `json:"tls,omitempty"` // nil = none
}

// Credential is what the client presents on each connection.
type Credential struct {
	Scheme string `json:"scheme"`
	Value  []byte `json:"value"`
}

// Name is the session's id as ZooKeeper's own tools write it.
func (s Session) Name() string { return fmt.Sprintf("0x%x", uint64(s.ID)) }

// Format writes the name alone.
func (s Session) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.Name()) }

// LogValue is the name alone.
func (s Session) LogValue() slog.Value { return slog.StringValue(s.Name()) }

// Format writes the scheme alone.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.Scheme) }

// The limits of a session's timeout are those of coord.WithSessionTimeout,
// with room for servers that grant more.
const (
	leastTimeout = time.Millisecond
	mostTimeout  = 48 * time.Hour
	mostServers  = 256
)

// Validate returns why a session cannot be attended, or nil.
func (s Session) Validate() error {
	switch {
	case s.ID == 0 || len(s.Password) == 0:
		return errors.New("a session without id or password")
	case len(s.Servers) == 0 || len(s.Servers) > mostServers:
		return fmt.Errorf("%d servers: there must be from 1 to %d", len(s.Servers), mostServers)
	case s.Timeout < leastTimeout || s.Timeout > mostTimeout:
		return fmt.Errorf("session timeout %v: it must be between %v and %v", s.Timeout, leastTimeout, mostTimeout)
	}
	if s.TLS != nil {
		_, err := s.TLS.config()
		return err
	}
	return nil
}

// Write sends a message or an answer by one call of w.Write.
func Write(w io.Writer, v any) error {
	frame, err := encode(v)
	if err == nil {
		_, err = w.Write(frame)
	}
	return err
}

func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxBody:
		return nil, fmt.Errorf("a message of %d bytes: the limit is %d", len(body), maxBody)
	}
	return append(binary.BigEndian.AppendUint32(nil, version<<24|uint32(len(body))), body...), nil
}

// ErrProtocol is the error of bytes that are no frame of this version, or a
// frame that is too large. Errors never show the bytes, which may be secrets.
var ErrProtocol = errors.New("not the attendant's protocol")

// Read reads a message or an answer. begun is called, if it is not nil, when
// the first byte of a frame has come. It returns [io.EOF] if r ends between two
// frames, [io.ErrUnexpectedEOF] if r ends within one, and other errors of r
// unchanged.
func Read(r io.Reader, v any, begun func()) error {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return err
	}
	if begun != nil {
		begun()
	}
	if head[0] != version {
		return fmt.Errorf("%w: version %d; this side has version %d", ErrProtocol, head[0], version)
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return whole(err)
	}
	size := binary.BigEndian.Uint32(head) & 0xffffff
	if size > maxBody {
		return fmt.Errorf("%w: a frame of %d bytes, the limit is %d", ErrProtocol, size, maxBody)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return whole(err)
	}
	if json.Unmarshal(body, v) != nil {
		return fmt.Errorf("%w: a frame without a message", ErrProtocol)
	}
	return nil
}

// whole makes the end of the stream an [io.ErrUnexpectedEOF], for use within a
// frame.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
