package certmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	zkcertmagic "github.com/zkcoord/zkcoord/contrib/certmagic"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var (
	_ certmagic.Locker    = (*zkcertmagic.Locker)(nil)
	_ certmagic.TryLocker = (*zkcertmagic.Locker)(nil)
)

// host is one of several with a common storage. It is its own issuer, which
// waits for the test before it issues.
type host struct {
	name    string
	client  *coord.Client
	kill    func()
	storage certmagic.Storage
	asked   chan *host // of all hosts: a certificate is asked for
	issue   chan bool
}

func (h *host) IssuerKey() string { return "test" }

func (h *host) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	h.asked <- h
	select {
	case <-h.issue:
		return sign(csr, h.name)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sign makes a certificate of an issuer's.
func sign(csr *x509.CertificateRequest, issuer string) (*certmagic.IssuedCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parent := &x509.Certificate{SerialNumber: big.NewInt(1)}
	parent.Subject.CommonName = issuer
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: csr.DNSNames, NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// obtain obtains the certificate for example.test.
func (h *host) obtain(ctx context.Context) error {
	config := certmagic.Config{Storage: h.storage, Issuers: []certmagic.Issuer{h}, Logger: zap.NewNop()}
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return &config, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	return certmagic.New(cache, config).ObtainCertSync(ctx, "example.test")
}

func hosts(t *testing.T, n int) (all []*host, server *zkembed.Server) {
	t.Helper()
	server = coordtest.Embedded(t)
	asked, dir := make(chan *host), t.TempDir()
	for i := range n {
		h := &host{name: fmt.Sprint("host ", i), asked: asked, issue: make(chan bool)}
		h.client, h.kill = coordtest.Mortal(t, server)
		locker, err := zkcertmagic.New(h.client, "/locks/certificates")
		require.NoError(t, err)
		h.storage = locker.Storage(&certmagic.FileStorage{Path: dir})
		all = append(all, h)
	}
	return all, server
}

func TestOneHostObtainsACertificateAlsoWhenAnotherIsKilled(t *testing.T) {
	all, _ := hosts(t, 3)
	obtained := map[*host]<-chan error{}
	dying, die := context.WithCancel(t.Context())
	defer die()
	for _, h := range all {
		obtained[h] = coordtest.Go(func() error { return h.obtain(dying) })
	}
	killed := zktest.Receive(t, coordtest.Soon, all[0].asked, "a host asks for the certificate")
	killed.kill()
	second := zktest.Receive(t, coordtest.Soon, all[0].asked, "another host asks for it")
	require.NotSame(t, killed, second)
	second.issue <- true
	for _, h := range all {
		if h != killed {
			require.NoError(t, zktest.Receive(t, coordtest.Soon, obtained[h], "the certificate"))
		}
	}
	die()
	require.Error(t, zktest.Receive(t, coordtest.Soon, obtained[killed], "the end"))

	text, err := second.storage.Load(t.Context(), certmagic.StorageKeys.SiteCert("test", "example.test"))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.Equal(t, second.name, cert.Issuer.CommonName)
}

func TestALockIsTriedAndUnlockedByItsName(t *testing.T) {
	all, server := hosts(t, 2)
	first, other := all[0].storage.(certmagic.TryLocker), all[1].storage.(certmagic.TryLocker)
	const name = "issue_cert_*.example.test/a"
	try := func(l certmagic.TryLocker) bool {
		got, err := l.TryLock(coordtest.Limited(t), name)
		require.NoError(t, err)
		return got
	}
	require.True(t, try(first))
	require.False(t, try(other))
	require.False(t, try(first))
	require.NoError(t, first.Unlock(t.Context(), name))
	require.ErrorIs(t, first.Unlock(t.Context(), name), coord.ErrInvalid)
	require.True(t, try(other))
	require.NoError(t, other.Unlock(t.Context(), name))

	// Whoever lost the lock unlocks what it lost, not the lock of who came
	// next.
	require.True(t, try(first))
	session := all[0].client.Info().SessionID
	require.NoError(t, server.ExpireSession(session))
	require.NoError(t, all[0].storage.Lock(coordtest.Limited(t), name))
	require.NoError(t, first.Unlock(t.Context(), name))
	require.False(t, try(other))
	require.NoError(t, first.Unlock(t.Context(), name))
	require.True(t, try(other))

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, all[0].storage.Lock(ended, name), context.Canceled)
	_, err := first.TryLock(t.Context(), "..")
	require.ErrorIs(t, err, coord.ErrInvalid)
	_, err = zkcertmagic.New(all[0].client, "relative")
	require.ErrorIs(t, err, coord.ErrInvalid)
}
