//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "runtime"

// Run refuses: stopping a command with all it started, and in time, needs process groups and signals.
func (v *lockVerb) Run() error {
	return exitWith(exitOwnFault, "lock needs Unix process groups and signals; it does not run on %s", runtime.GOOS)
}

type guardVerb struct{}

// Run refuses.
func (guardVerb) Run() error { return usageError("this verb is for the program itself") }
