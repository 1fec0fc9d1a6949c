//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "runtime"

// lead refuses, as lock does.
func (v *electVerb) lead(*streams, *connection) error {
	return exitWith(exitOwnFault, "elect needs Unix process groups and signals to run a command; it does not do that on %s", runtime.GOOS)
}
