//go:build linux || darwin

package docs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// overTLS is docs/securing.md's server and clients with certificates. The
// server has a plain port as well, by which the test sees that it serves.
func overTLS(b *book) {
	zktest.Require(b.t, zktest.Real)
	if _, err := exec.LookPath("openssl"); err != nil {
		b.t.Skip("left out: needs openssl")
	}
	b.steps[0].text = strings.ReplaceAll(b.steps[0].text, "DNS:zk1", "IP:127.0.0.1")
	b.step(0)
	secure := freePort(b.t)
	var opts []zktest.ServerOption
	for _, properties := range blocksOfKind(b.t, "properties") {
		for line := range strings.Lines(properties.text) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			value = strings.ReplaceAll(value, "/etc/zookeeper/tls", b.dir)
			opts = append(opts, zktest.WithConfig(key, strings.ReplaceAll(value, "2281", secure)))
		}
	}
	server := zktest.RequireReal(b.t, opts...)
	b.connect = server.ConnectString()
	addr := "127.0.0.1:" + secure
	b.steps[1].text = strings.ReplaceAll(b.steps[1].text, "zk1:2281,zk2:2281,zk3:2281", addr)
	require.Contains(b.t, b.step(1), "a write takes")

	file := func(name string) string { return filepath.Join(b.dir, name) }
	client, err := openByTLS(b.t.Context(), addr, file("ca.pem"), file("billing.crt"), file("billing.key"))
	require.NoError(b.t, err)
	require.NoError(b.t, client.Create(b.t.Context(), "/own", nil))
	plain := zktest.Connect(b.t, b.connect, zktest.SessionTimeout)
	_, _, err = plain.Get("/own")
	require.ErrorIs(b.t, err, zk.ErrNoAuth)
	_, err = plain.Create("/for-billing", []byte("data"), 0, []zk.ACL{{Perms: zk.PermRead, Scheme: "x509", ID: "CN=billing"}})
	require.NoError(b.t, err)
	_, _, err = client.Get(b.t.Context(), "/for-billing")
	require.NoError(b.t, err)
	require.NoError(b.t, client.Close(context.Background()))
	_, failed := b.run(block{text: "export ZK_SERVERS=" + addr + " ZK_TLS_CA=ca.pem\nzkcoord --connect-timeout 1s ls /\n"})
	require.Equal(b.t, []string{"69 zkcoord --connect-timeout 1s ls /"}, failed, "a client without a certificate")
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

// permitted is docs/securing.md's private directory, and a stranger to it.
func permitted(b *book) {
	zktest.Require(b.t, zktest.Real)
	b.connect = zktest.RequireReal(b.t).ConnectString()
	b.step(0)
	b.step(1)
	holder := coordtest.Open(b.t, b.connect, coord.WithAuth("digest", "billing:secret"), coord.WithACL("auth::cdrwa", "world:anyone:r"))
	h := b.acquire(holder, "/billing/leader")
	text := b.step(2, "125 zkcoord lock --timeout 5s /billing/leader -- ./work.sh",
		"1 zkcoord revoke /billing/leader", "1 zkcoord break --yes /billing/leader")
	require.Contains(b.t, text, "holds")
	require.Equal(b.t, 3, strings.Count(text, "not permitted by the node's ACL"), text)
	require.NoError(b.t, h.Err())
}

func openByTLS(ctx context.Context, servers, caFile, certFile, keyFile string) (*coord.Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	return coord.Open(ctx, servers, coord.WithTLS(config), coord.WithACL("auth::cdrwa"))
}
