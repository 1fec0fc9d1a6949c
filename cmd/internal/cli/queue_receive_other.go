//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "runtime"

// Run refuses, as lock does.
func (v *queueReceive) Run() error {
	return exitWith(exitOwnFault, "queue receive needs Unix process groups and signals; it does not run on %s", runtime.GOOS)
}
