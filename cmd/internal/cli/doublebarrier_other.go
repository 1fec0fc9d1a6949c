//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "runtime"

// Run refuses: stopping a command with all it started, and in time, needs process groups and signals.
func (v *doubleBarrierVerb) Run() error {
	return exitWith(exitOwnFault, "doublebarrier needs Unix process groups and signals; it does not run on %s", runtime.GOOS)
}
