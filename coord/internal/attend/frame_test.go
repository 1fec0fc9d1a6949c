//go:build !fuzz

package attend

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
)

func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	for _, m := range []Message{{Attend: &secretive}, {Leave: true}, {Check: true}} {
		var b bytes.Buffer
		require.NoError(t, Write(&b, m))
		var read Message
		require.NoError(t, Read(&b, &read, nil))
		require.Equal(t, m, read)
		require.ErrorIs(t, Read(&b, &read, nil), io.EOF)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb, secretive)
		fmt.Fprintf(&b, verb, &secretive)
		fmt.Fprintf(&b, verb, secretive.Auth)
		fmt.Fprintf(&b, verb, secretive.TLS)
	}
	slog.New(slog.NewJSONHandler(&b, nil)).Info("", "session", secretive, "of", &secretive)
	slog.New(slog.NewTextHandler(&b, nil)).Info("", "session", secretive)
	for _, bad := range []Session{secretive, {Servers: []string{"a"}, ID: 1, Password: []byte("pa55word")}} {
		fmt.Fprint(&b, bad.Validate())
	}
	frame, err := encode(Message{Attend: &secretive})
	require.NoError(t, err)
	cut := append([]byte{}, frame[:len(frame)-1]...)
	cut[3]--
	fmt.Fprint(&b, Read(bytes.NewReader(cut), &Message{}, nil))
	encoded, err := json.Marshal(secretive.Password)
	require.NoError(t, err)
	for _, secret := range []string{"pa55", string(encoded), fmt.Sprintf("%x", "pa55"), fmt.Sprint([]byte("pa55"))[1:13]} {
		require.NotContains(t, b.String(), secret)
	}
	require.Contains(t, b.String(), "0x1f")
}

func TestALargeMessageIsNotSent(t *testing.T) {
	large := secretive
	large.Password = bytes.Repeat([]byte("x"), maxBody)
	require.ErrorContains(t, Write(io.Discard, Message{Attend: &large}), "the limit is 65536")
}

func TestALargeFrameIsRefusedBeforeItHasCome(t *testing.T) {
	require.ErrorIs(t, Read(strings.NewReader("\x01\x01\x00\x01"), &Message{}, nil), ErrProtocol)
}

func TestOnlyWhatAServerHasShownIsTold(t *testing.T) {
	config := &tls.Config{VerifyConnection: func(tls.ConnectionState) error { return nil }}
	_, err := TLSOf(servers.TLS{Config: config}, tls.Client(&net.TCPConn{}, config))
	require.ErrorContains(t, err, "no server has shown a certificate")
	none, err := TLSOf(servers.TLS{}, &net.TCPConn{})
	require.NoError(t, err)
	require.Nil(t, none)
}
