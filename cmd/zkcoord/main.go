// Command zkcoord runs commands under a lock, as leader, in a round of a
// barrier or on an item of a queue, and shows, asks and breaks locks. See
// docs/command.md.
package main

import (
	"os"

	"github.com/zkcoord/zkcoord/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
