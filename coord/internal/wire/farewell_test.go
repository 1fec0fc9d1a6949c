//go:build !fuzz

package wire

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Servers may refuse a client that presents no credential.
func TestAFarewellPresentsTheCredentialsAndCloses(t *testing.T) {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	f := Farewell{Session: Welcome{ID: 7, Timeout: time.Minute, Passwd: []byte("0123456789abcdef")}}
	f.Present("digest", []byte("someone:secret"))
	said := make(chan error, 1)
	go func() { said <- f.Say(near) }()
	require.NoError(t, far.SetDeadline(time.Now().Add(timeout)))
	answer := func(b []byte) {
		_, err := far.Write(withLength(b))
		require.NoError(t, err)
	}
	hello, err := receive(far)
	require.NoError(t, err)
	require.Equal(t, int64(7), int64At(hello, 16))
	answer(appendBuffer(appendInt64(appendInt32(appendInt32(nil, 0), 60_000), 7), f.Session.Passwd))
	for _, op := range []OpCode{OpAuth, OpClose} {
		packet, err := receive(far)
		require.NoError(t, err)
		require.Equal(t, int32(op), int32At(packet, 4))
		answer(make([]byte, replyHeader))
	}
	require.NoError(t, <-said)
}
