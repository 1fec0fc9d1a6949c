package attend

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/attend"
)

// Farewell is the verb that the guard of a command becomes when the owner was
// killed and the command has ended (see package guard): it closes the owner's
// session, which its input describes.
type Farewell struct{}

// Run gives what the command had sent the time to arrive that an attendant
// gives it. Nobody waits for the outcome: without one, the session expires.
func (Farewell) Run(s *term.Streams) error {
	if err := keepSecrets(); err != nil {
		return term.Silently(term.ExitFailed)
	}
	time.Sleep(attend.DefaultGrace)
	if attend.CloseSession(context.Background(), s.In) != nil {
		return term.Silently(term.ExitFailed)
	}
	return nil
}
