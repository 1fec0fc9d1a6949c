package servers

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// TLS is a configuration of TLS as it is at the moment.
type TLS struct {
	*tls.Config
	Authorities [][]byte // certificates that it trusts, if they are known one by one
}

// Fixed is a configuration that stays the same, but for the functions that it
// calls.
func Fixed(config *tls.Config) func() (TLS, error) {
	return func() (TLS, error) { return TLS{Config: config}, nil }
}

// Files are where a client's certificates are, in PEM form. They are read again
// when one of them has changed.
type Files struct {
	CA   string // the authorities; "" = the system's
	Cert string // the client's; "" = none
	Key  string // its private key; "" = in the same file

	mu    sync.Mutex
	state [3]state
	read  TLS
}

// state tells whether a file has changed, even if another of the same size and
// time has replaced it.
type state struct {
	info     fs.FileInfo
	modified time.Time
	size     int64
}

func stateOf(path string) (s state, err error) {
	if path == "" {
		return s, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	return state{info, info.ModTime(), info.Size()}, nil
}

func (s state) equal(other state) bool {
	return s.modified.Equal(other.modified) && s.size == other.size &&
		(s.info == other.info || os.SameFile(s.info, other.info))
}

// Config returns what the files hold. While they cannot be read, as in the
// middle of a rotation, it returns what they held before, and why.
func (f *Files) Config() (TLS, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3]state
	same := f.read.Config != nil
	for i, path := range []string{f.CA, f.Cert, f.Key} {
		s, err := stateOf(path)
		if err != nil {
			return f.read, err
		}
		now[i] = s
		same = same && s.equal(f.state[i])
	}
	if same {
		return f.read, nil
	}
	read, err := f.load()
	if err != nil {
		return f.read, err
	}
	f.read, f.state = read, now
	return read, nil
}

func (f *Files) load() (TLS, error) {
	t := TLS{Config: &tls.Config{MinVersion: tls.VersionTLS12}}
	if f.CA != "" {
		rest, err := os.ReadFile(f.CA)
		if err != nil {
			return t, err
		}
		t.RootCAs = x509.NewCertPool()
		for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if authority, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
				t.RootCAs.AddCert(authority)
				t.Authorities = append(t.Authorities, authority.Raw)
			}
		}
		if len(t.Authorities) == 0 {
			return t, fmt.Errorf("%s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", f.CA)
		}
	}
	if f.Cert == "" {
		if f.Key != "" {
			return t, errors.New("a key without a certificate")
		}
		return t, nil
	}
	key := cmp.Or(f.Key, f.Cert)
	own, err := tls.LoadX509KeyPair(f.Cert, key)
	if err != nil {
		return t, fmt.Errorf("certificate %s with key %s: %w", f.Cert, key, err)
	}
	t.Certificates = []tls.Certificate{own}
	return t, nil
}
