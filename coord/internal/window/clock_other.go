//go:build !linux

package window

import "time"

// kernelSuspended has nothing to read here.
func kernelSuspended() (time.Duration, bool) { return 0, false }
