package coord

import (
	"math"
	"time"
)

// WithSuspended has f return how long the machine has been suspended so far.
func WithSuspended(f func() time.Duration) Option {
	return func(o *options) error {
		o.Suspended = f
		return nil
	}
}

// Sharers returns the paths of n claims in a line that share listings, or nil
// if there are not so many.
func (c *Client) Sharers(dir string, n int) []string {
	return c.keeper.Current().Listings.SharersBefore(dir, math.MaxInt32, n)
}
