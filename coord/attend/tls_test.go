package attend_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	protocol "github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// What the attendant is told is enough to connect as the client does, to
// servers that want a certificate.
func TestTheAttendantConnectsByTheTLSAndTheCredentialsOfTheClient(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		w.SetTimeout(T)
		ca := coordtest.Certificate(t, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
		pool := x509.NewCertPool()
		pool.AddCert(ca.Leaf)
		addr := coordtest.Terminate(t, w.ConnectString(), &tls.Config{
			Certificates: []tls.Certificate{*coordtest.Certificate(t, ca, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
		})
		own := coordtest.Certificate(t, ca, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

		socket, accept := silent(t)
		c := coordtest.Open(t, addr, coord.WithSessionTimeout(T), coord.WithAttendant(socket), coord.WithAuth("digest", "someone:secret"),
			coord.WithTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*own}}))
		m, err := lock.New(c, w.Path("l"))
		require.NoError(t, err)
		coordtest.Acquire(t, m)
		var news protocol.Message
		require.NoError(t, protocol.Read(accept(), &news, nil))
		told := *news.Attend
		require.Equal(t, c.SessionID(), told.ID)
		require.Equal(t, []protocol.Credential{{Scheme: "digest", Value: []byte("someone:secret")}}, told.Auth)

		strange := told
		strange.Password = make([]byte, len(told.Password))
		closer, err := protocol.CloserOf(strange)
		require.NoError(t, err)
		require.NoError(t, closer.Close(coordtest.Limited(t), strange), "servers know no session with such a password")
		require.Equal(t, 1, claims(t, w, "l"))

		closer, err = protocol.CloserOf(told)
		require.NoError(t, err)
		require.NoError(t, closer.Close(coordtest.Limited(t), told))
		free(t, w, "l")
	})
}
