package conn

import (
	"os"
	"strings"
)

// HeldVariable tells a command the names of the nodes that stand for what it
// runs under, the outermost first. They are like no others, on any servers.
const HeldVariable = "COORD_HELD"

// HeldAround are the names in the variable.
func HeldAround() []string { return strings.Fields(os.Getenv(HeldVariable)) }

// SinceVariable tells a command since when it runs under what it runs under.
const SinceVariable = "COORD_SINCE"
