package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// answerNames is the name server of this package's tests: it answers for
// "two.test" with 127.0.0.2 and 127.0.0.3, and for "slow.test" after three
// seconds with 127.0.0.1.
func answerNames(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		for {
			head := make([]byte, 2)
			if _, err := io.ReadFull(far, head); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(head))
			if _, err := io.ReadFull(far, query); err != nil {
				return
			}
			answer := answerName(query)
			_, _ = far.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}
	}()
	return near, nil
}

// answerName answers one query (RFC 1035, 4.1).
func answerName(query []byte) []byte {
	const header, typeA = 12, 1
	end := header
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the last label, the type and the class
	name := string(query[header+1 : end-5])
	var last []byte // of 127.0.0.x
	switch {
	case binary.BigEndian.Uint16(query[end-4:]) != typeA:
	case strings.HasPrefix(name, "two"):
		last = []byte{2, 3}
	case strings.HasPrefix(name, "slow"):
		<-time.After(3 * time.Second)
		last = []byte{1}
	}
	answer := append([]byte{}, query[:end]...)
	answer[2], answer[3] = 0x81, 0x80 // an answer, by a server that asks others
	clear(answer[6:header])
	answer[7] = byte(len(last))
	for _, b := range last {
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, b)
	}
	return answer
}

// relay forwards connections, each when prepare has returned, until it is
// closed.
type relay struct {
	net.Listener
	accepted atomic.Int32
	mu       sync.Mutex
	conns    []net.Conn
	running  sync.WaitGroup
}

// relayTo listens on addr and forwards to a server; nothing answers if that is
// "".
func (s scene) relayTo(addr, server string, prepare func(net.Conn) net.Conn) (*relay, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	r := &relay{Listener: l}
	r.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			r.keep(conn)
			if server != "" {
				r.running.Go(func() { r.forward(prepare(conn), server) })
			}
		}
	})
	s.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.running.Wait()
	})
	return r, nil
}

func (r *relay) keep(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
}

func (r *relay) forward(conn net.Conn, server string) {
	defer conn.Close()
	back, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	r.keep(back)
	defer back.Close()
	r.running.Go(func() {
		_, _ = io.Copy(back, conn)
		_ = back.Close()
	})
	_, _ = io.Copy(conn, back)
}

// cut ends every connection.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

func plain(conn net.Conn) net.Conn { return conn }

func (s scene) port() string {
	_, port, err := net.SplitHostPort(s.w.ConnectString())
	require.NoError(s, err)
	return port
}

func TestF52AConnectionThatTakesSecondsIsMade(t *testing.T) {
	each(t, func(s scene) {
		certificate, pool := selfSigned(s.T)
		var reached atomic.Int32
		slow := func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-time.After(1100 * time.Millisecond):
				reached.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		terminator, err := s.relayTo("127.0.0.1:0", s.w.ConnectString(), func(conn net.Conn) net.Conn {
			<-time.After(6 * time.Second)
			return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
		})
		require.NoError(s, err)
		secure := coord.WithTLS(&tls.Config{RootCAs: pool})
		for what, open := range map[string]func() *coord.Client{
			"TCP, 1.1 s":            func() *coord.Client { return s.client(coord.WithDialer(slow)) },
			"a name server, 3 s":    func() *coord.Client { return s.open("slow.test:" + s.port()) },
			"TLS, 6 s":              func() *coord.Client { return s.open(terminator.Addr().String(), secure) },
			"both, over the dialer": func() *coord.Client { return s.open(terminator.Addr().String(), coord.WithDialer(slow), secure) },
		} {
			s.Run(what, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				c := open()
				t.Logf("connected after %v", time.Since(begun))
				require.NoError(t, coordtest.Write(t.Context(), c))
			})
		}
	})
}

func TestF54EachAddressOfAHostNameIsAServer(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 3 * T // so that the machine may stand still for a moment
		s.w.SetTimeout(timeout)
		hung, err := s.relayTo("127.0.0.2:0", "", nil)
		require.NoError(s, err)
		port := hung.Addr().(*net.TCPAddr).Port
		good, err := s.relayTo("127.0.0.3:"+strconv.Itoa(port), s.w.ConnectString(), plain)
		require.NoError(s, err)
		for range 6 {
			begun := time.Now()
			c := s.open("two.test:"+strconv.Itoa(port), coord.WithSessionTimeout(timeout))
			s.onTime("connected", begun, timeout, time.Now())
			h := s.acquire(c)
			good.cut()
			require.NoError(s, coordtest.Write(s.Context(), c))
			require.NoError(s, h.Err(), "kept over the loss of the connection")
			s.release(h)
			require.NoError(s, c.Close(context.Background()))
		}
		s.Logf("%d connections to the address that does not answer", hung.accepted.Load())
		require.Positive(s, hung.accepted.Load())
	})
}

// selfSigned makes a certificate for 127.0.0.1, and the pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
