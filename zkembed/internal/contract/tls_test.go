package contract

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// certificates are an authority's, for a server and a client.
type certificates struct {
	ca, server, client *tls.Certificate
	pool               *x509.CertPool
}

func newCertificates(t *testing.T) (c certificates) {
	c.ca = coordtest.Certificate(t, nil,
		&x509.Certificate{
			Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		})
	c.server = coordtest.Certificate(t, c.ca,
		&x509.Certificate{Subject: pkix.Name{CommonName: "zk1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	c.client = coordtest.Certificate(t, c.ca, &x509.Certificate{
		Subject: pkix.Name{
			CommonName: "billing, 1", OrganizationalUnit: []string{"Sales"}, Organization: []string{"Example"},
			Country: []string{"DE"},
		},
	})
	c.pool = x509.NewCertPool()
	c.pool.AddCert(c.ca.Leaf)
	return c
}

// write writes certificates, and a private key, as a server reads them.
func write(t *testing.T, certs ...*tls.Certificate) (file string) {
	t.Helper()
	var text bytes.Buffer
	for i, c := range certs {
		if i > 0 { // the first gives the key alone
			require.NoError(t, pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
			continue
		}
		if c != nil {
			key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
			require.NoError(t, err)
			require.NoError(t, pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: key}))
		}
	}
	file = filepath.Join(t.TempDir(), "tls.pem")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
	return file
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// eachByTLS tests a promise on servers that demand certificates of those who
// come by TLS.
func eachByTLS(t *testing.T, promise func(t *testing.T, plain, secure string, certs certificates)) {
	certs := newCertificates(t)
	t.Run("embedded", func(t *testing.T) {
		zktest.Require(t, zktest.Embedded)
		s, err := zkembed.Start(zkembed.WithSessionTimeouts(0, patience), zkembed.WithTLS("127.0.0.1:0", &tls.Config{
			Certificates: []tls.Certificate{*certs.server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: certs.pool,
		}))
		require.NoError(t, err)
		defer func() { _ = s.Close() }()
		promise(t, s.Addr(), s.SecureAddr(), certs)
	})
	t.Run("real", func(t *testing.T) {
		zktest.Require(t, zktest.Real)
		port := freePort(t)
		var opts []zktest.ServerOption
		for key, value := range map[string]string{
			"secureClientPort": port, "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.keyStore.location": write(t, certs.server, certs.server), "ssl.keyStore.type": "PEM",
			"ssl.trustStore.location": write(t, nil, certs.ca), "ssl.trustStore.type": "PEM", "ssl.clientAuth": "need",
		} {
			opts = append(opts, zktest.WithConfig(key, value))
		}
		server, secure := zktest.RequireReal(t, opts...), "127.0.0.1:"+port
		zktest.Eventually(t, patience, func() bool { // it serves at the plain port first
			nc, err := net.DialTimeout("tcp", secure, patience)
			return err == nil && nc.Close() == nil
		}, "it serves by TLS")
		promise(t, server.Addr(), secure, certs)
	})
}

// dialTLS shows the certificates, if there are any.
func dialTLS(t *testing.T, addr string, certs certificates, own ...*tls.Certificate) (*raw, error) {
	t.Helper()
	config := &tls.Config{RootCAs: certs.pool}
	for _, c := range own {
		config.Certificates = append(config.Certificates, *c)
	}
	nc, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = nc.Close() })
	c := &raw{nc: nc, r: bufio.NewReader(nc)}
	_, err = c.hello(hello{timeout: int32(patience.Milliseconds())})
	return c, err
}

func TestByTLSACertificateIsAnIdentityAndOthersAreRefused(t *testing.T) {
	eachByTLS(t, func(t *testing.T, plain, secure string, certs certificates) {
		const subject = `CN=billing\, 1,OU=Sales,O=Example,C=DE`
		billing, err := dialTLS(t, secure, certs, certs.client)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%q", []string{"ip=127.0.0.1", "x509=" + subject}),
			decode(opWhoAmI, billing.must(t, opWhoAmI, nil)))
		billing.must(t, opCreate, create("/own", nil, []acl{{31, "auth", ""}}, persistent))
		require.Equal(t, []acl{{31, "x509", subject}}, billing.must(t, opGetACL, enc{}.str("/own")).acls())

		other := greet(t, plain, hello{timeout: int32(patience.Milliseconds())})
		require.EqualValues(t, errNoAuth, other.code(t, opGetData, watched("/own", false)))
		other.must(t, opCreate, create("/for-billing", nil, []acl{{1, "x509", subject}}, persistent))
		require.EqualValues(t, errInvalidACL,
			other.code(t, opCreate, create("/x", nil, []acl{{31, "x509", "billing"}}, persistent)))
		require.EqualValues(t, errNoAuth, other.code(t, opGetData, watched("/for-billing", false)))
		billing.must(t, opGetData, watched("/for-billing", false))
		require.EqualValues(t, errNoAuth, billing.code(t, opSetData, setData("/for-billing", nil, -1)))

		_, err = dialTLS(t, secure, certs)
		require.Error(t, err, "without a certificate")
		_, err = dialTLS(t, secure, certs, newCertificates(t).client)
		require.Error(t, err, "of another authority")
		require.Error(t, coordtest.Err(dialTCP(t, secure).hello(hello{timeout: 1000})), "without TLS")
	})
}

func TestWithoutTLSThereAreNoSubjectsInACLs(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		require.EqualValues(t, errInvalidACL,
			c.code(t, opCreate, create(s.path("x"), nil, []acl{{31, "x509", "CN=x"}}, persistent)))
	})
}
