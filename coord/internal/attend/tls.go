package attend

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// TLS is a client's configuration of TLS, as far as another process can have
// it.
type TLS struct {
	ServerName string   `json:"server_name,omitempty"` // "" = that of the list of servers
	Insecure   bool     `json:"insecure,omitempty"`    // the client verifies no server
	Roots      [][]byte `json:"roots,omitempty"`       // certificates that the client has verified a server by
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

// TLSOf returns what to tell of a client's configuration, given a connection
// that was made with it. It fails if the configuration calls functions of the
// program, or if its keys cannot leave the process.
func TLSOf(config *tls.Config, conn net.Conn) (*TLS, error) {
	made, ok := conn.(*tls.Conn)
	switch {
	case config == nil:
		return nil, nil
	case !ok:
		return nil, errors.New("the connection is not TLS")
	case config.VerifyConnection != nil, config.VerifyPeerCertificate != nil, config.GetClientCertificate != nil,
		config.EncryptedClientHelloConfigList != nil:
		return nil, errors.New("the TLS configuration calls functions of this process (VerifyConnection, VerifyPeerCertificate, " +
			"GetClientCertificate), which an attendant cannot")
	}
	t := &TLS{ServerName: config.ServerName, Insecure: config.InsecureSkipVerify, MinVersion: config.MinVersion, MaxVersion: config.MaxVersion}
	for _, chain := range made.ConnectionState().VerifiedChains {
		t.Roots = append(t.Roots, chain[len(chain)-1].Raw)
	}
	for _, own := range config.Certificates {
		key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
		if err != nil {
			return nil, errors.New("the key of the client's certificate cannot leave this process")
		}
		t.Own = append(t.Own, Own{own.Certificate, key})
	}
	return t, nil
}

// config is the same for the attendant.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{
		ServerName: t.ServerName, InsecureSkipVerify: t.Insecure, RootCAs: x509.NewCertPool(), //nolint:gosec // as the client does
		MinVersion: t.MinVersion, MaxVersion: t.MaxVersion,
	}
	for _, der := range t.Roots {
		root, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("a root certificate that cannot be read")
		}
		c.RootCAs.AddCert(root)
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
