// Command coorddemo shows coordination on ZooKeeper at work. It is the same
// program as zkcoord, the tool to keep. See docs/command.md.
package main

import (
	"os"

	"github.com/zkcoord/zkcoord/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
