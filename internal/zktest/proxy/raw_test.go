package proxy_test

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

var errTimeout = os.ErrDeadlineExceeded

// rawServer is a listener behind a raw proxy.
func rawServer(t *testing.T) (net.Listener, *proxy.Proxy) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	p, err := proxy.NewRaw(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return listener, p
}

// rawPair is both ends of one connection through a raw proxy.
func rawPair(t *testing.T) (client, server net.Conn, p *proxy.Proxy) {
	t.Helper()
	listener, p := rawServer(t)
	client, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	server, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	_, err = server.Read(make([]byte, 1))
	require.NoError(t, err)
	return client, server, p
}
