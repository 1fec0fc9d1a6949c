package queue

import (
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

const (
	// DefaultBackoff is the time from a first failed delivery to the second.
	DefaultBackoff = time.Second
	// MaxBackoff is the most that [Backoff] allows.
	MaxBackoff = 24 * time.Hour
)

// Backoff has an item whose delivery failed wait before it is delivered again,
// while the items behind it are served: for d after the first delivery, then
// for twice that, and so on, ten times at most. The time counts from the Nack,
// or if the consumer ended without an answer, from the delivery, by the
// ensemble's clock. 0 is no time; the default is [DefaultBackoff].
func Backoff(d time.Duration) Option {
	return func(q *Queue) error {
		if d < 0 || d > MaxBackoff {
			return fmt.Errorf("%w: a back-off of %v; 0 to %v", coord.ErrInvalid, d, MaxBackoff)
		}
		q.backoff = d
		return nil
	}
}
