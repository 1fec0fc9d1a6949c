// Command coorddemo shows coordination on ZooKeeper at work, and is a tool to keep: it runs commands under a lock, and
// shows, asks and breaks locks. See docs/coorddemo.md.
package main

import (
	"os"

	"github.com/zkcoord/zkcoord/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
