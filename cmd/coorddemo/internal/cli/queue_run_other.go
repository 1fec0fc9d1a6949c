//go:build !(linux || darwin || freebsd || openbsd)

package cli

import (
	"bytes"

	"github.com/zkcoord/zkcoord/coord/queue"
)

// runWithItem runs the command with the item as its input, and kills it when the claim is lost.
func runWithItem(s *streams, path nodePath, item *queue.Item, argv []string) (int, error) {
	cmd := itemCommand(s, path, item, argv)
	cmd.Stdin = bytes.NewReader(item.Data)
	if err := cmd.Start(); err != nil {
		return exitStatus(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return exitStatus(err)
	case <-item.Done():
		_ = cmd.Process.Kill()
		return exitStatus(<-ended)
	}
}
