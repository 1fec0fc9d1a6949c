package zkembed

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"strings"
)

// saslScheme is the scheme of the identities that a password gives by SASL.
const saslScheme = "sasl"

// What ZooKeeper's servers and clients are to each other in DIGEST-MD5, with
// whatever name they are reached.
const (
	saslRealm = "zk-sasl-md5"
	saslURI   = "zookeeper/" + saslRealm
)

// WithSASL makes the server check users' passwords by SASL's DIGEST-MD5 (RFC
// 2831), as a real one does whose JAAS configuration has a DigestLoginModule
// and which has the authentication provider of SASL. A client that proves a
// password gets the user as an identity, in scheme sasl.
func WithSASL(passwords map[string]string) Option {
	return option(len(passwords) > 0, func(c *config) { c.passwords = maps.Clone(passwords) }, "no users for SASL")
}

// sasl takes the client's next step: the first asks for a challenge, whatever
// it says, and the second proves the password.
func (c *conn) sasl(body []byte) response {
	d := decode(body)
	token := d.Buffer()
	if d.Err != nil {
		return failed(CodeMarshallingError)
	}
	passwords := c.s.cfg.passwords
	if passwords == nil {
		return response{bare: true, body: encoder{}.buffer(nil)}
	}
	if c.proving.nonce == "" {
		c.proving.nonce = rand.Text()
		challenge := `realm="` + saslRealm + `",nonce="` + c.proving.nonce + `",qop="auth",charset=utf-8,algorithm=md5-sess`
		return response{bare: true, body: encoder{}.buffer([]byte(challenge))}
	}
	proof, ok := parseProof(string(token))
	password, known := passwords[proof["username"]]
	if !ok || !known || c.proving.over || proof["nonce"] != c.proving.nonce || proof["realm"] != saslRealm ||
		proof["digest-uri"] != saslURI || proof["nc"] != "00000001" || proof["qop"] != "auth" ||
		subtle.ConstantTimeCompare([]byte(proof["response"]), []byte(proof.of(password, "AUTHENTICATE:"))) == 0 {
		return response{code: CodeAuthFailed, bare: true, last: true}
	}
	c.proving.over = true
	c.ids = append(c.ids, identity{saslScheme, proof["username"]})
	return response{bare: true, body: encoder{}.buffer([]byte("rspauth=" + proof.of(password, ":")))}
}

// exchange is what a connection has come to. There is one for each.
type exchange struct {
	nonce string // of the challenge, once it was sent
	over  bool   // the password is proved
}

// proof is the directives of a client's answer to a challenge.
type proof map[string]string

// parseProof reads directives: names and values, which may be quoted, with
// commas between. ok is false for what is none, and for a name that is there
// twice.
func parseProof(text string) (p proof, ok bool) {
	p = proof{"qop": "auth"}
	given := map[string]bool{}
	for text != "" {
		name, rest, found := strings.Cut(text, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !found || given[name] {
			return nil, false
		}
		var value string
		if value, text, ok = directive(rest); !ok {
			return nil, false
		}
		given[name], p[name] = true, value
	}
	return p, true
}

// directive reads one value, and returns what follows its comma.
func directive(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		case '"':
			rest = strings.TrimSpace(text[i+1:])
			after, more := strings.CutPrefix(rest, ",")
			return b.String(), after, more || rest == ""
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

// of is what proves the password: the client's if the second part of the hash
// begins with AUTHENTICATE, or the server's.
func (p proof) of(password, begins string) string {
	user := p["username"]
	if p["charset"] == "utf-8" {
		user = latin1(user)
	}
	secret := md5.Sum([]byte(user + ":" + p["realm"] + ":" + latin1(password)))
	first := string(secret[:]) + ":" + p["nonce"] + ":" + p["cnonce"]
	if as, given := p["authzid"]; given {
		first += ":" + as
	}
	between := ":" + strings.Join([]string{p["nonce"], p["nc"], p["cnonce"], p["qop"]}, ":") + ":"
	return hexMD5(hexMD5(first) + between + hexMD5(begins+p["digest-uri"]))
}

func hexMD5(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// latin1 is how the mechanism hashes text that ISO 8859-1 can express.
func latin1(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r > 0xff {
			return text
		}
		b.WriteByte(byte(r))
	}
	return b.String()
}
