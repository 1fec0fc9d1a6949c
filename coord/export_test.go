package coord

import "time"

// WithSuspended has f tell how long the machine has been suspended so far.
func WithSuspended(f func() time.Duration) Option {
	return func(o *options) error {
		o.Suspended = f
		return nil
	}
}
