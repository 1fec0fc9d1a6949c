//go:build linux || darwin || freebsd || openbsd

package conn

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestCredentialsOpenWhatTheirACLProtects(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.Private(t, w, "someone", "a:secret")
		lock := []string{"lock", w.Path("private/l"), "--", "sh", "-c", "exit 4"}

		cmdtest.On(t, w, lock...).Ends(term.ExitOwnFault, "not permitted", "--auth")
		require.Equal(t, term.ExitOwnFault,
			cmdtest.On(t, w, append([]string{"--auth", "digest:someone:else"}, lock...)...).Exit())

		require.Equal(t, 4, cmdtest.On(t, w, append([]string{"--auth", "digest:someone:a:secret"}, lock...)...).Exit())
		byEnvironment := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), lock...)...)
		byEnvironment.Env = []string{"ZK_AUTH=digest:other:x\ndigest:someone:a:secret"}
		require.Equal(t, 4, cmdtest.StartAs(t, byEnvironment).Exit())
		require.Equal(t, 0,
			cmdtest.On(t, w, "--auth", "digest:someone:a:secret", "queue", "put", w.Path("private/q"), "item").Exit())
	})
}

// A request to give up is written into the holder's node: the ACL of the
// directory protects the node from being deleted, and only the node's own ACL
// from the request.
func TestAStrangerRevokesNoCommandWhoseNodesHaveAnACL(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		const owner, acl = "digest:someone:secret", "auth::cdrwa,world:anyone:r"
		cmdtest.Private(t, w, "someone", "secret", zk.WorldACL(zk.PermRead)...)
		asked := func(args ...string) (told string, status int) {
			p := cmdtest.On(t, w, append(args, w.Path("private/l"))...)
			status = p.Exit()
			return p.Output() + p.Stderr.String(), status
		}
		holder := exec.Command(cmdtest.Coorddemo(t),
			append(cmdtest.Target(w), cmdtest.Sh(w.Path("private/l"), cmdtest.Busy)...)...)
		holder.Env = []string{"ZK_AUTH=" + owner, "ZK_ACL=" + acl}
		p := cmdtest.StartAs(t, holder)
		pid := p.Number()
		for _, verb := range []string{"revoke", "break"} {
			args := []string{verb}
			if verb == "break" {
				args = append(args, "--yes")
			}
			told, status := asked(args...)
			require.Equal(t, term.ExitFailed, status, verb)
			require.Contains(t, told, "not permitted", verb)
			require.NotContains(t, told, "nobody holds", verb)
		}
		require.True(t, cmdtest.Alive(pid))
		told, status := asked("inspect")
		require.Zero(t, status)
		require.NotContains(t, told, "asked to give up")
		told, status = asked("--auth", owner, "revoke", "--wait")
		require.Zero(t, status, told)
		require.Equal(t, 143, p.Exit())

		open := cmdtest.On(t, w, append([]string{"--auth", owner}, cmdtest.Sh(w.Path("private/l"), cmdtest.Busy)...)...).
			Begun()
		_, status = asked("revoke")
		require.Zero(t, status, "without --acl everybody may ask")
		require.Equal(t, 143, open.Exit())
	})
}

func TestTheACLIsThatOfAllNodesThatAreMade(t *testing.T) {
	w := cmdtest.World(t)
	require.NoError(t, w.Admin().AddAuth("digest", []byte("someone:secret"))) // to clear up
	args := []string{"--auth", "digest:someone:secret", "--acl", "auth::cdrwa", "--acl", "world:anyone:r"}
	require.Equal(t, 0, cmdtest.On(t, w, append(args, "queue", "put", w.Path("a/q"), "item")...).Exit())
	expected := append(zk.DigestACL(zk.PermAll, "someone", "secret"), zk.WorldACL(zk.PermRead)...)
	items, _, err := w.Admin().Children(w.Path("a/q"))
	require.NoError(t, err)
	for _, path := range []string{w.Path("a"), w.Path("a/q"), w.Path("a/q/" + items[0])} {
		acl, _, err := w.Admin().GetACL(path)
		require.NoError(t, err)
		require.ElementsMatch(t, expected, acl, path)
	}
}

func TestACLsAreSeparatedByCommasWhichTheirIdentitiesMayHaveToo(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"auth::cdrwa", "x509:CN=a,O=b:r", "world:anyone:r", "ip:10.0.0.1:cd"},
		acls([]string{"auth::cdrwa,x509:CN=a,O=b:r", "world:anyone:r\r\nip:10.0.0.1:cd\n"}))
	require.Empty(t, acls(nil))
}

func TestTheProcessesOfADemoHaveTheACL(t *testing.T) {
	w := cmdtest.World(t)
	c := Connection{ZK: w.ConnectString(), ACL: []string{"auth::cdrwa", "world:anyone:r"}}
	child, err := c.Child("version")
	require.NoError(t, err)
	require.Contains(t, child.Env, "ZK_ACL=auth::cdrwa\nworld:anyone:r")
}

// Whoever sets a variable that protects something does not mean to go without.
func TestF90AVariableThatProtectsIsRefusedWhenItIsEmpty(t *testing.T) {
	w := cmdtest.World(t)
	for _, name := range []string{
		"ZK_AUTH", "ZK_ACL", "ZK_REQUIRE_CHROOT", "ZK_TLS", "ZK_TLS_CA", "ZK_TLS_CERT", "ZK_TLS_KEY",
	} {
		inspect := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "inspect", w.Path("l"))...)
		inspect.Env = []string{name + "="}
		cmdtest.StartAs(t, inspect).Ends(term.ExitUsage, name+" is set and empty")
	}
	open := exec.Command(cmdtest.Coorddemo(t),
		append(cmdtest.Target(w), "--acl", "world:anyone:cdrwa", "inspect", w.Path("l"))...)
	open.Env = []string{"ZK_ACL=", "ZKCOORD_ATTEND="}
	require.Zero(t, cmdtest.StartAs(t, open).Exit(), "an option takes the variable's place")
}

func TestAnACLThatTheServersRefuseIsAUsageError(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.On(t, w, "--acl", "auth::cdrwa", "lock", w.Path("l"), "--", "true").Ends(term.ExitUsage, "refuses this ACL")
	})
}

func TestTheProcessesOfADemoHaveTheCredentialsAndTheirCommandLineDoesNotShowThem(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	cmdtest.Private(t, w, "nobody-else", "secret")
	cmd := exec.Command(cmdtest.Coorddemo(t), "--zk", w.ConnectString()+w.Path("private"), "--session-timeout", "2s",
		"demo", "stock", "--kill", "1")
	cmd.Env = []string{"ZK_AUTH=digest:nobody-else:secret"}
	p := cmdtest.StartAs(t, cmd)
	for !strings.Contains(p.Line(), "killed process") { // until they sell
	}
	children := cmdtest.Must(filepath.Glob("/proc/[0-9]*/cmdline"))
	for _, file := range children {
		line, _ := os.ReadFile(file)
		require.NotContains(t, string(line), "nobody-else:secret")
	}
	require.Equal(t, 0, p.Exit())
}

func TestATimeOutThatTheServersChangeIsTold(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for asked, told := range map[string]bool{"20m": true, zktest.SessionTimeout.String(): false, "": false} {
			args := []string{"--zk", w.ConnectString(), "inspect", w.Path("l")}
			if asked != "" {
				args = append(args, "--session-timeout", asked)
			}
			p := cmdtest.Start(t, args...)
			require.Zero(t, p.Exit())
			if told {
				require.Contains(t, p.Stderr.String(), "the servers grant a session timeout of 10m0s instead of 20m0s")
			} else {
				require.Empty(t, p.Stderr.String())
			}
		}
	})
}

// authority makes certificates for a test, each in files of its own.
type authority struct {
	t    *testing.T
	dir  string
	cert *tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate and writes it to NAME.pem, and its key to NAME.key.
func (a *authority) issue(name string, template *x509.Certificate) *tls.Certificate {
	cert := coordtest.Certificate(a.t, a.cert, template)
	private := cmdtest.Must(x509.MarshalPKCS8PrivateKey(cert.PrivateKey))
	for file, block := range map[string]*pem.Block{
		name + ".pem": {
			Type: "CERTIFICATE", Bytes: cert.Certificate[0],
		}, name + ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(a.t, os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600))
	}
	return cert
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// terminate speaks TLS for a server that does not.
func (a *authority) terminate(server string, clients tls.ClientAuthType) (addr string) {
	cert := a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pool := x509.NewCertPool()
	pool.AddCert(a.cert.Leaf)
	config := &tls.Config{Certificates: []tls.Certificate{*cert}, ClientAuth: clients, ClientCAs: pool}
	return coordtest.Terminate(a.t, server, config)
}

func TestLocksAndDemosWorkOverTLS(t *testing.T) {
	w := cmdtest.World(t)
	a := newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.NoClientCert)
	args := []string{"--zk", addr, "--session-timeout", "2s", "--tls-ca", a.file("ca.pem")}
	require.Equal(t, 6, cmdtest.Start(t, append(args, "lock", w.Path("l"), "--", "sh", "-c", "exit 6")...).Exit())
	args[1] += w.Path("chroot")
	require.Equal(t, 0, cmdtest.Start(t, append(args, "--json", "demo", "stock", "--stock", "8", "--kill", "1")...).Exit())
}

func TestTheServersCanDemandACertificate(t *testing.T) {
	w := cmdtest.World(t)
	a := newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.RequireAndVerifyClientCert)
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	args := []string{"--zk", addr, "--connect-timeout", "2s", "--tls-ca", a.file("ca.pem")}
	lock := []string{"lock", w.Path("l"), "--", "true"}
	require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, append(args, lock...)...).Exit())
	args = append(args, "--tls-cert", a.file("client.pem"), "--tls-key", a.file("client.key"))
	require.Equal(t, 0, cmdtest.Start(t, append(args, lock...)...).Exit())
}

func TestTheProgramsServerSpeaksTLSToClientsWithItsCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	serve := []string{"server", "--addr", "127.0.0.1:0", "--secure-addr", "127.0.0.1:0"}
	cmdtest.Start(t, serve...).Ends(term.ExitUsage, "needs a certificate")
	server := cmdtest.Start(t,
		append(serve, "--tls-cert", a.file("server.pem"), "--tls-key", a.file("server.key"), "--tls-ca", a.file("ca.pem"))...)
	_, secure := server.Line(), server.Line()
	lock := []string{"--zk", secure, "--connect-timeout", "2s", "--tls-ca", a.file("ca.pem"), "lock"}
	require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, append(lock, "/l", "--", "true")...).Exit())
	lock = append(lock, "--tls-cert", a.file("client.pem"), "--tls-key", a.file("client.key"))
	require.Equal(t, 3, cmdtest.Start(t, append(lock, "/l", "--", "sh", "-c", "exit 3")...).Exit())
	server.EndsBy(syscall.SIGTERM, 0)
}

func TestAServerThatCannotBeTrustedIsRefused(t *testing.T) {
	w := cmdtest.World(t)
	a, other := newAuthority(t), newAuthority(t)
	addr := a.terminate(w.ConnectString(), tls.NoClientCert)
	for says, args := range map[string][]string{
		"unknown authority": {"--tls-ca", other.file("ca.pem")},
		"x509":              {"--tls"},
		"do servers run":    {},
	} {
		args = append([]string{"--zk", addr, "--connect-timeout", "5s", "inspect", "/l"}, args...)
		cmdtest.Start(t, args...).Ends(term.ExitUnavailable, says)
	}
}

func TestTLSFilesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for says, args := range map[string][]string{
		"no such file":   {"--tls-ca", a.file("none")},
		"no certificate": {"--tls-ca", a.file("ca.key")},
		"--tls-cert":     {"--tls-key", a.file("ca.key")},
		"--tls-key":      {"--tls-cert", a.file("ca.pem")},
	} {
		cmdtest.Start(t, append([]string{"--zk", "127.0.0.1:1", "inspect", "/l"}, args...)...).Ends(term.ExitUsage, says)
	}
}

func TestAChrootThatDoesNotExistIsWarnedOfOrRefused(t *testing.T) {
	w := cmdtest.World(t)
	chroot := w.Path("app")
	run := func(args ...string) (status int, told string) {
		t.Helper()
		p := cmdtest.Start(t, append([]string{"--zk", w.ConnectString() + chroot, "--session-timeout", "2s"}, args...)...)
		return p.Exit(), p.Stderr.String()
	}
	warning := "there is no chroot " + chroot
	status, told := run("inspect", "/l")
	require.Zero(t, status)
	require.Contains(t, told, warning)
	require.Contains(t, told, "--require-chroot")
	for _, verb := range [][]string{{"inspect", "/l"}, {"lock", "/l", "--", "true"}, {"barrier", "wait", "/l"}} {
		status, told = run(append([]string{"--require-chroot"}, verb...)...)
		require.Equal(t, term.ExitUsage, status, verb)
		require.Contains(t, told, "chroot "+chroot+": zk: node does not exist", verb)
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

func TestAddressesOfServers(t *testing.T) {
	t.Parallel()
	addresses, chroot := AddressesOf("zk1, zk2:2182,[::1]/app/a")
	require.Equal(t, []string{"zk1:2181", "zk2:2182", "[::1]:2181"}, addresses)
	require.Equal(t, "/app/a", chroot)
}
