//go:build !linux

package attend

import (
	"errors"
	"fmt"
	"net"
)

// credentials are known on Linux only.
func credentials(*net.UnixConn) (user uint32, pid int, err error) {
	return 0, 0, fmt.Errorf("an attendant needs Linux, where the kernel says whose a connection is: %w",
		errors.ErrUnsupported)
}
