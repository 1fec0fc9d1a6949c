// Package self is about this very process: it starts further ones of the same
// program, and knows which standard descriptors it began without.
package self

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Command is a command that runs this program's executable again with args.
//
// On Linux it names the executable by the kernel's own link: an upgrade that
// replaces the file while this process runs does not start a different version
// half-way. The name under which this process was called is kept.
func Command(args ...string) (*exec.Cmd, error) {
	path := "/proc/self/exe"
	if _, err := os.Stat(path); runtime.GOOS != "linux" || err != nil {
		if path, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the program's own executable: %w", err)
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Args[0] = os.Args[0]
	return cmd, nil
}
