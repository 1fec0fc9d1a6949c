package conn

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strconv"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// TlsOptions say how to connect by TLS. Naming a file implies it.
type TlsOptions struct {
	TLS     bool   `name:"tls" env:"ZK_TLS" group:"connection" help:"Connect by TLS. The servers' certificates must be valid for the names in --zk."`
	TLSCA   string `name:"tls-ca" env:"ZK_TLS_CA" placeholder:"FILE" group:"connection" help:"Trust the authorities in this PEM file instead of the system's. Implies --tls."`
	TLSCert string `name:"tls-cert" env:"ZK_TLS_CERT" placeholder:"FILE" group:"connection" help:"Show this certificate (PEM) to the servers. Implies --tls."`
	TLSKey  string `name:"tls-key" env:"ZK_TLS_KEY" placeholder:"FILE" group:"connection" help:"Its private key (PEM), if that is in another file."`
}

// config returns nil without TLS.
func (o TlsOptions) config() (*tls.Config, error) {
	config := &tls.Config{}
	switch {
	case o.TLSKey != "" && o.TLSCert == "":
		return nil, term.UsageError("--tls-key goes with a certificate: name that with --tls-cert")
	case !o.TLS && o.TLSCA == "" && o.TLSCert == "":
		return nil, nil
	}
	if o.TLSCA != "" {
		pem, err := os.ReadFile(o.TLSCA)
		if err != nil {
			return nil, term.UsageError("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, term.UsageError("--tls-ca: %s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", o.TLSCA)
		}
	}
	if o.TLSCert != "" {
		key := cmp.Or(o.TLSKey, o.TLSCert)
		own, err := tls.LoadX509KeyPair(o.TLSCert, key)
		if err != nil {
			return nil, term.UsageError("--tls-cert %s with --tls-key %s: %w", o.TLSCert, key, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// ServerConfig is for a server that shows the certificate. If --tls-ca names
// authorities, its clients must show a certificate of theirs.
func (o TlsOptions) ServerConfig() (*tls.Config, error) {
	config, err := o.config()
	switch {
	case err != nil:
		return nil, err
	case config == nil || len(config.Certificates) == 0:
		return nil, term.UsageError(
			"a server that speaks TLS needs a certificate: name it with --tls-cert, and its key with --tls-key")
	case config.RootCAs != nil:
		config.ClientCAs, config.ClientAuth = config.RootCAs, tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// variable is an environment variable of a child process.
type variable struct{ name, value string }

// variables give a child process the same options.
func (o TlsOptions) variables() []variable {
	return []variable{
		{"ZK_TLS", strconv.FormatBool(o.TLS)}, {"ZK_TLS_CA", o.TLSCA}, {"ZK_TLS_CERT", o.TLSCert}, {"ZK_TLS_KEY", o.TLSKey},
	}
}
