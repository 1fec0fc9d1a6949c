package coordtest

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
)

// Certificate is signed by parent, or by itself.
func Certificate(t testing.TB, parent *tls.Certificate, template *x509.Certificate) *tls.Certificate {
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

// Terminate speaks TLS for a server that does not.
func Terminate(t testing.TB, server string, config *tls.Config) (addr string) {
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
