//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"fmt"
	"os"
)

// Verb is the one argument of the program when it is to be a guard, or the
// guard's reaper.
const Verb = "__guard"

// exitUsage is what the program exits with when a user gives Verb.
const exitUsage = 64

// Guard and reaper live in this function. Before it, Go initialises what this
// package imports, and few of the packages that only the verbs need: metrics,
// HTTP and the command line would take two thirds of a start's time and memory.
func init() {
	if len(os.Args) != 2 || os.Args[1] != Verb {
		return
	}
	if err := stand(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(exitUsage)
	}
	os.Exit(0)
}
