//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "runtime"

// run refuses: stopping a command with all it started, and in time, needs
// process groups and signals.
func (j *job) run(*streams, *connection) error {
	return exitWith(exitOwnFault, "running a command that can be stopped in time needs Unix process groups and signals; %s has none", runtime.GOOS)
}

type guardVerb struct{}

// Run refuses.
func (guardVerb) Run() error { return usageError("this verb is for the program itself") }
