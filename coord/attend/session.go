package attend

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/author"
)

// SessionOf returns what it takes to close the current session of a client, for
// [CloseSession] in another process: one that outlives this process, and knows
// when nothing acts under the session's holds any more. It is secret, and fails
// where an attendant cannot be told of the session either.
func SessionOf(c *coord.Client) ([]byte, error) {
	s, err := author.Of(c).Account()
	if err != nil {
		return nil, fmt.Errorf("what closing session %v takes cannot be told: %w", s, err)
	}
	var b bytes.Buffer
	err = attend.Write(&b, attend.Message{Attend: &s})
	return b.Bytes(), err
}

// CloseSession closes the session that [SessionOf] has described. It asks one
// server after the other until the session is closed, or has expired, or ctx
// ends.
func CloseSession(ctx context.Context, session io.Reader) error {
	var m attend.Message
	err := attend.Read(session, &m, nil)
	switch {
	case err != nil:
		return err
	case m.Attend == nil:
		return fmt.Errorf("%w: a message without a session", attend.ErrProtocol)
	}
	if err := m.Attend.Validate(); err != nil {
		return err
	}
	closer, err := attend.CloserOf(*m.Attend)
	if err != nil {
		return err
	}
	return closer.Close(ctx, *m.Attend)
}
