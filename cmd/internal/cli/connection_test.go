//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestCredentialsOpenWhatTheirACLProtects(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		private(t, w, "someone", "a:secret")
		lock := []string{"lock", w.Path("private/l"), "--", "sh", "-c", "exit 4"}

		without := on(t, w, lock...)
		require.Equal(t, exitOwnFault, without.exit())
		require.Contains(t, without.stderr.String(), "not permitted")
		require.Contains(t, without.stderr.String(), "--auth")
		wrong := on(t, w, append([]string{"--auth", "digest:someone:else"}, lock...)...)
		require.Equal(t, exitOwnFault, wrong.exit())

		require.Equal(t, 4, on(t, w, append([]string{"--auth", "digest:someone:a:secret"}, lock...)...).exit())
		byEnvironment := exec.Command(os.Args[0], append(target(w), lock...)...)
		byEnvironment.Env = []string{"ZK_AUTH=digest:other:x\ndigest:someone:a:secret"}
		require.Equal(t, 4, startAs(t, byEnvironment).exit())
		queue := on(t, w, "--auth", "digest:someone:a:secret", "queue", "put", w.Path("private/q"), "item")
		require.Equal(t, 0, queue.exit())
	})
}

// private makes the node private, for one user only.
func private(t *testing.T, w *zktest.World, user, password string) {
	t.Helper()
	conn := w.Admin()
	require.NoError(t, conn.AddAuth("digest", []byte(user+":"+password))) // to clear up
	for path := range prefixes(w.Path("private")) {
		acl := zk.WorldACL(zk.PermAll)
		if path == w.Path("private") {
			acl = zk.DigestACL(zk.PermAll, user, password)
		}
		if _, err := conn.Create(path, nil, 0, acl); err != nil {
			require.ErrorIs(t, err, zk.ErrNodeExists)
		}
	}
}

func TestTheProcessesOfADemoHaveTheCredentialsAndTheirCommandLineDoesNotShowThem(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	private(t, w, "someone", "secret")
	cmd := exec.Command(os.Args[0], "--zk", w.ConnectString()+w.Path("private"), "--session-timeout", "2s",
		"demo", "election", "--kill", "1")
	cmd.Env = []string{"ZK_AUTH=digest:someone:secret"}
	p := startAs(t, cmd)
	for range 4 {
		p.line() // until there is a leader
	}
	children, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range children {
		line, _ := os.ReadFile(file)
		require.NotContains(t, string(line), "someone:secret")
	}
	require.Equal(t, 0, p.exit())
}

func TestCredentialsThatCannotBeAreRefusedWithoutShowingThem(t *testing.T) {
	for _, auth := range []string{"secret", ":secret"} {
		p := start(t, "--zk", "127.0.0.1:1", "--auth", auth, "inspect", "/l")
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), "SCHEME:CREDENTIALS")
		require.NotContains(t, p.stderr.String(), "secret")
	}
}

// authority makes certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate and writes it to NAME.pem, and its key to NAME.key.
func (a *authority) issue(name string, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(a.t, os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600))
	}
	return key, cert
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// terminate speaks TLS for a server that does not.
func (a *authority) terminate(server string, clients tls.ClientAuthType) (addr string) {
	key, cert := a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, ClientAuth: clients, ClientCAs: pool,
	})
	require.NoError(a.t, err)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { relay(conn, server) })
		}
	})
	a.t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

// relay carries bytes both ways until one side ends.
func relay(client net.Conn, server string) {
	defer client.Close()
	back, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(back, client)
		_ = back.Close()
	}()
	_, _ = io.Copy(client, back)
}

func TestLocksAndDemosWorkOverTLS(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.NoClientCert)
	args := []string{"--zk", addr, "--session-timeout", "2s", "--tls-ca", a.file("ca.pem")}
	require.Equal(t, 6, start(t, append(args, "lock", w.Path("l"), "--", "sh", "-c", "exit 6")...).exit())
	args[1] += w.Path("chroot")
	require.Equal(t, 0, start(t, append(args, "--json", "demo", "queue", "--items", "8", "--kill", "1")...).exit())
}

func TestTheServersCanDemandACertificate(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.RequireAndVerifyClientCert)
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	args := []string{"--zk", addr, "--connect-timeout", "2s", "--tls-ca", a.file("ca.pem")}
	lock := []string{"lock", w.Path("l"), "--", "true"}
	require.Equal(t, exitUnavailable, start(t, append(args, lock...)...).exit())
	args = append(args, "--tls-cert", a.file("client.pem"), "--tls-key", a.file("client.key"))
	require.Equal(t, 0, start(t, append(args, lock...)...).exit())
}

func TestAServerThatCannotBeTrustedIsRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a, other := newAuthority(t), newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.NoClientCert)
	for says, args := range map[string][]string{
		"unknown authority": {"--tls-ca", other.file("ca.pem")},
		"x509":              {"--tls"},
		"do servers run":    {},
	} {
		args = append([]string{"--zk", addr, "--connect-timeout", "1s", "inspect", "/l"}, args...)
		p := start(t, args...)
		require.Equal(t, exitUnavailable, p.exit())
		require.Contains(t, p.stderr.String(), says)
	}
}

func TestTLSFilesThatCannotBeAreRefused(t *testing.T) {
	a := newAuthority(t)
	for says, args := range map[string][]string{
		"no such file":   {"--tls-ca", a.file("none")},
		"no certificate": {"--tls-ca", a.file("ca.key")},
		"--tls-cert":     {"--tls-key", a.file("ca.key")},
		"--tls-key":      {"--tls-cert", a.file("ca.pem")},
	} {
		p := start(t, append([]string{"--zk", "127.0.0.1:1", "inspect", "/l"}, args...)...)
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), says)
	}
}

func TestAChrootThatDoesNotExistIsWarnedOfOrRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	chroot := w.Path("app")
	run := func(args ...string) (status int, told string) {
		t.Helper()
		p := start(t, append([]string{"--zk", w.ConnectString() + chroot, "--session-timeout", "2s"}, args...)...)
		return p.exit(), p.stderr.String()
	}
	warning := "there is no chroot " + chroot
	status, told := run("inspect", "/l")
	require.Zero(t, status)
	require.Contains(t, told, warning)
	require.Contains(t, told, "--require-chroot")
	for _, verb := range [][]string{{"inspect", "/l"}, {"lock", "/l", "--", "true"}, {"barrier", "wait", "/l"}} {
		status, told = run(append([]string{"--require-chroot"}, verb...)...)
		require.Equal(t, exitUsage, status, verb)
		require.Contains(t, told, "chroot "+chroot+": node does not exist", verb)
	}
	made, _, err := w.Admin().Exists(chroot)
	require.NoError(t, err)
	require.False(t, made)

	status, told = run("lock", "/l", "--", "true")
	require.Zero(t, status)
	require.Contains(t, told, warning)
	status, told = run("--require-chroot", "lock", "/l", "--", "true")
	require.Zero(t, status, told)
	require.NotContains(t, told, "chroot")
	status, told = run("inspect", "/l")
	require.Zero(t, status)
	require.NotContains(t, told, "chroot", "it is there now")
}
