package attend_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	protocol "github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// certificate is signed by parent, or by itself.
func certificate(t *testing.T, parent *tls.Certificate, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, signer := template, any(key)
	if parent != nil {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// terminate speaks TLS for a server that does not.
func terminate(t *testing.T, server string, config *tls.Config) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				back, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				open.Go(func() {
					_, _ = io.Copy(back, conn)
					_ = back.Close()
				})
				_, _ = io.Copy(conn, back)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

// What the attendant is told is enough to connect as the client does, to
// servers that want a certificate.
func TestTheAttendantConnectsByTheTLSAndTheCredentialsOfTheClient(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		w.SetTimeout(T)
		ca := certificate(t, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
		pool := x509.NewCertPool()
		pool.AddCert(ca.Leaf)
		addr := terminate(t, w.ConnectString(), &tls.Config{
			Certificates: []tls.Certificate{*certificate(t, ca, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
		})
		own := certificate(t, ca, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

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
