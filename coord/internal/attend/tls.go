package attend

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
)

// TLS is a client's configuration of TLS, as far as another process can have
// it.
type TLS struct {
	ServerName string   `json:"server_name,omitempty"` // "" = the name in the list of servers
	Insecure   bool     `json:"insecure,omitempty"`    // the client verifies no server
	Roots      [][]byte `json:"roots,omitempty"`       // certificates of the authorities that the client trusts
	Pinned     [][]byte `json:"pinned,omitempty"`      // if not empty, certificates of servers: no other is trusted
	MinVersion uint16   `json:"min_version,omitempty"`
	MaxVersion uint16   `json:"max_version,omitempty"`
	Own        []Own    `json:"own,omitempty"`
}

// Own is a certificate of the client, with its key.
type Own struct {
	Chain [][]byte `json:"chain"`
	Key   []byte   `json:"key"` // PKCS #8
}

// Format writes nothing that is secret.
func (TLS) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("TLS")) }

// mostAuthorities bounds the bytes of authorities in a message, which has at
// most 64 KiB.
const mostAuthorities = 24 << 10

// TLSOf returns what to tell an attendant of a client's configuration, as it is
// now, and of a connection that was made with it. If a function of the program
// accepted the server, the attendant knows the server by its certificate. TLSOf
// fails if the keys cannot leave the process.
func TLSOf(config servers.TLS, conn net.Conn) (*TLS, error) {
	made, ok := conn.(*tls.Conn)
	switch {
	case config.Config == nil:
		return nil, nil
	case !ok:
		return nil, errors.New("the connection is not TLS")
	case config.EncryptedClientHelloConfigList != nil:
		return nil, errors.New("the TLS configuration has an encrypted hello, which an attendant cannot send")
	}
	t := &TLS{
		ServerName: config.ServerName, Insecure: config.InsecureSkipVerify, MinVersion: config.MinVersion,
		MaxVersion: config.MaxVersion,
	}
	state := made.ConnectionState()
	if config.VerifyConnection != nil || config.VerifyPeerCertificate != nil {
		if len(state.PeerCertificates) == 0 {
			return nil, errors.New("no server has shown a certificate yet")
		}
		t.Insecure = false
		t.Pinned = append(t.Pinned, state.PeerCertificates[0].Raw)
	}
	for _, chain := range state.VerifiedChains {
		t.trust(chain[len(chain)-1].Raw)
	}
	for _, authority := range config.Authorities {
		t.trust(authority)
	}
	own, err := ownCertificates(config.Config, state.Version)
	t.Own = own
	return t, err
}

// trust adds an authority, if there is room.
func (t *TLS) trust(authority []byte) {
	size := len(authority)
	for _, known := range t.Roots {
		if bytes.Equal(known, authority) {
			return
		}
		size += len(known)
	}
	if len(t.Roots) == 0 || size <= mostAuthorities {
		t.Roots = append(t.Roots, authority)
	}
}

// Pin adds certificates of servers that were accepted before, up to most in
// all.
func (t *TLS) Pin(before [][]byte, most int) {
	for _, pinned := range before {
		isKnown := func(known []byte) bool { return bytes.Equal(known, pinned) }
		if len(t.Pinned) < most && !slices.ContainsFunc(t.Pinned, isKnown) {
			t.Pinned = append(t.Pinned, pinned)
		}
	}
}

// signatures are the algorithms that any server may accept.
var signatures = []tls.SignatureScheme{
	tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519,
	tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512, tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
}

// ownCertificates are the certificates that the client would show a server now.
func ownCertificates(config *tls.Config, version uint16) (all []Own, err error) {
	certificates := config.Certificates
	if config.GetClientCertificate != nil {
		current, err := config.GetClientCertificate(
			&tls.CertificateRequestInfo{SignatureSchemes: signatures, Version: version})
		if err != nil {
			return nil, fmt.Errorf("the client's certificate: %w", err)
		}
		certificates = nil
		if current != nil {
			certificates = []tls.Certificate{*current}
		}
	}
	for _, own := range certificates {
		if len(own.Certificate) == 0 {
			continue // none is shown
		}
		key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
		if err != nil {
			return nil, errors.New("the key of the client's certificate cannot leave this process")
		}
		all = append(all, Own{own.Certificate, key})
	}
	return all, nil
}

// config returns the attendant's configuration.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{
		ServerName: t.ServerName, InsecureSkipVerify: t.Insecure,
		RootCAs:    x509.NewCertPool(), //nolint:gosec // as the client does
		MinVersion: t.MinVersion, MaxVersion: t.MaxVersion,
	}
	for _, der := range t.Roots {
		root, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("a root certificate that cannot be read")
		}
		c.RootCAs.AddCert(root)
	}
	if len(t.Pinned) > 0 {
		c.InsecureSkipVerify = true
		c.VerifyConnection = t.verifyPinned
	}
	for _, own := range t.Own {
		key, err := x509.ParsePKCS8PrivateKey(own.Key)
		if err != nil || len(own.Chain) == 0 {
			return nil, errors.New("a client certificate that cannot be read")
		}
		c.Certificates = append(c.Certificates, tls.Certificate{Certificate: own.Chain, PrivateKey: key})
	}
	return c, nil
}

// verifyPinned accepts the servers that the client has accepted.
func (t *TLS) verifyPinned(state tls.ConnectionState) error {
	for _, pinned := range t.Pinned {
		if bytes.Equal(pinned, state.PeerCertificates[0].Raw) {
			return nil
		}
	}
	return errors.New("the client has accepted another certificate than the server's")
}
