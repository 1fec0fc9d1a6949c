//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"

	"github.com/zkcoord/zkcoord/coord/queue"
)

// runWithItem runs the command with the item as its input, passes signals on, and kills its process group when the
// claim is lost. It returns the status to exit with.
func runWithItem(s *streams, path nodePath, item *queue.Item, argv []string) (int, error) {
	cmd := itemCommand(s, path, item, argv)
	cmd.Stdin = bytes.NewReader(item.Data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signals := make(chan os.Signal, 8)
	forward(signals)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return exitStatus(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	lost := item.Done()
	for {
		select {
		case err := <-ended:
			return exitStatus(err)
		case sig := <-signals:
			_ = syscall.Kill(-cmd.Process.Pid, sig.(syscall.Signal))
		case <-lost:
			lost = nil
			s.note("the claim on the item is lost: killing the command")
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
