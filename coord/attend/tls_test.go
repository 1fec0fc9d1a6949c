package attend_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

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
		ca := coordtest.Certificate(t, nil,
			&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
		pool := x509.NewCertPool()
		pool.AddCert(ca.Leaf)
		addr := coordtest.Terminate(t, w.ConnectString(), &tls.Config{
			Certificates: []tls.Certificate{
				*coordtest.Certificate(t, ca, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}),
			},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		})
		own := coordtest.Certificate(t, ca, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

		socket, accept := silent(t)
		c := coordtest.Open(t, addr, coord.WithSessionTimeout(T), coord.WithAttendant(socket),
			coord.WithAuth("digest", "someone:secret"),
			coord.WithTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*own}}))
		m, err := lock.New(c, w.Path("l"))
		require.NoError(t, err)
		coordtest.Acquire(t, m)
		var news protocol.Message
		require.NoError(t, protocol.Read(accept(), &news, nil))
		told := *news.Attend
		require.Equal(t, c.Info().SessionID, told.ID)
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

// rotating is a server that wants certificates of one authority, and then of
// another, and has one of the same.
type rotating struct {
	addr    string
	current atomic.Pointer[tls.Config]
	ca, own string // files of the client
	client  atomic.Pointer[tls.Certificate]
	pool    atomic.Pointer[x509.CertPool]
}

func rotatingServer(t *testing.T, w *zktest.World) *rotating {
	t.Helper()
	dir := t.TempDir()
	r := &rotating{ca: filepath.Join(dir, "ca.pem"), own: filepath.Join(dir, "own.pem")}
	r.rotate(t)
	r.addr = coordtest.Terminate(t, w.Proxy().Addr(),
		&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return r.current.Load(), nil
		}})
	return r
}

// rotate replaces the authority, and all certificates.
func (r *rotating) rotate(t *testing.T) {
	t.Helper()
	ca := coordtest.Certificate(t, nil,
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	own := coordtest.Certificate(t, ca, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	for path, content := range map[string][]byte{
		r.ca:  block("CERTIFICATE", ca.Leaf.Raw),
		r.own: append(block("PRIVATE KEY", key), block("CERTIFICATE", own.Leaf.Raw)...),
	} {
		require.NoError(t, os.WriteFile(path+".new", content, 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	r.client.Store(own)
	r.pool.Store(pool)
	r.current.Store(&tls.Config{
		Certificates: []tls.Certificate{
			*coordtest.Certificate(t, ca, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}),
		},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
}

// options are the ways in which a client can have certificates that are
// replaced.
func (r *rotating) options() map[string]coord.Option {
	return map[string]coord.Option{
		"files": coord.WithTLSFiles(r.ca, r.own, ""),
		"functions": coord.WithTLS(&tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // the function verifies
			VerifyConnection: func(state tls.ConnectionState) error {
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: r.pool.Load()})
				return err
			},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return r.client.Load(), nil },
		}),
	}
}

// F73: certificates, and the authority of all of them, are replaced while a
// client holds a lock.
func TestF73CertificatesThatAreReplacedAreUsedAtTheNextHandshakeAndToldTheAttendant(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		w.SetTimeout(T)
		for _, way := range []string{"files", "functions"} {
			t.Run(way, func(t *testing.T) {
				r := rotatingServer(t, w)
				socket, accept := silent(t)
				c := coordtest.Open(t, r.addr, coord.WithSessionTimeout(T), coord.WithAttendant(socket), r.options()[way])
				m, err := lock.New(c, w.Path(way))
				require.NoError(t, err)
				h := coordtest.Acquire(t, m)
				attendant := accept()
				told := func() (news protocol.Message) {
					require.NoError(t, attendant.SetReadDeadline(time.Now().Add(coordtest.Soon)))
					require.NoError(t, protocol.Read(attendant, &news, nil))
					return news
				}
				require.Equal(t, r.client.Load().Leaf.Raw, told().Attend.TLS.Own[0].Chain[0])

				r.rotate(t)
				next := told().Attend // without a new connection
				require.Equal(t, r.client.Load().Leaf.Raw, next.TLS.Own[0].Chain[0])
				require.Positive(t, w.Proxy().CutAll())
				require.NoError(t, coordtest.Write(coordtest.Limited(t), c))
				require.NoError(t, h.Err())
				require.Equal(t, h.Session(), c.Info().SessionID)
				if way == "functions" {
					next = told().Attend // the server's certificate, which the client has accepted
				}
				closer, err := protocol.CloserOf(*next)
				require.NoError(t, err)
				require.NoError(t, closer.Close(coordtest.Limited(t), *next), "what it was told is enough")
				free(t, w, way)
			})
		}
	})
}
