package conn

import (
	"net"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// AddressOf is where to listen, as a flag says it.
func AddressOf(flag, at string) (*net.TCPAddr, error) {
	address, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		return nil, term.UsageError("%s: %w; write HOST:PORT", flag, err)
	}
	return address, nil
}
