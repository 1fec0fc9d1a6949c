package attend

import (
	"errors"
	"net"
	"syscall"
)

// credentials returns whose process has connected, as the kernel knows it.
func credentials(conn *net.UnixConn) (user uint32, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var peer *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if failed != nil || err != nil {
		return 0, 0, errors.Join(failed, err)
	}
	return peer.Uid, int(peer.Pid), nil
}
