package attend

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/attend"
)

// Farewell is the verb that a command's reaper becomes when the owner was
// killed and nothing is left of the command (see package guard): it closes the
// owner's session, which its input describes.
type Farewell struct{}

// Run first waits as long as an attendant would, so that what the command has
// sent arrives. Nobody waits for the outcome: if closing fails, the session
// expires.
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
