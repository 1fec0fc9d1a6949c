package contract

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// eachBySASL tests a promise on servers that know the user bob, whose password
// is "open sesame", and jürgen.
func eachBySASL(t *testing.T, promise func(t *testing.T, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		zktest.Require(t, zktest.Embedded)
		s, err := zkembed.Start(zkembed.WithSessionTimeouts(0, patience),
			zkembed.WithSASL(map[string]string{"bob": "open sesame", "jürgen": "größe"}))
		require.NoError(t, err)
		defer func() { _ = s.Close() }()
		promise(t, s.Addr())
	})
	t.Run("real", func(t *testing.T) {
		zktest.Require(t, zktest.Real)
		file := filepath.Join(t.TempDir(), "jaas.conf")
		require.NoError(t, os.WriteFile(file, []byte(`Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="open sesame" user_jürgen="größe";
};
`), 0o600))
		server := zktest.RequireReal(t, zktest.WithProperty("java.security.auth.login.config", file),
			zktest.WithProperty("file.encoding", "UTF-8"),
			zktest.WithConfig("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"))
		promise(t, server.Addr())
	})
}

// answer is a client's answer to a challenge (RFC 2831).
type answer struct {
	user, hashed, password, realm, uri, qop, as string
}

// of computes the response, and what the server is to say of it. The texts that
// are hashed are in ISO 8859-1.
func (a answer) of(nonce string) (token, rspauth string) {
	const cnonce = "0a4f113b"
	sum := func(text string) string { s := md5.Sum([]byte(text)); return string(s[:]) }
	inHex := func(text string) string { return hex.EncodeToString([]byte(sum(text))) }
	first := sum(a.hashed+":"+a.realm+":"+a.password) + ":" + nonce + ":" + cnonce
	as := ""
	if a.as != "" {
		first += ":" + a.as
		as = fmt.Sprintf(`,authzid="%s"`, a.as)
	}
	proof := func(begins string) string {
		return inHex(inHex(first) + ":" + nonce + ":00000001:" + cnonce + ":auth:" + inHex(begins+a.uri))
	}
	token = fmt.Sprintf(
		`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=%s%s`,
		a.user, a.realm, nonce, cnonce, a.uri, proof("AUTHENTICATE:"), a.qop, as)
	return token, "rspauth=" + proof(":")
}

var nonces = regexp.MustCompile(`nonce="([^"]+)"`)

func challenge(t *testing.T, c *raw) (nonce string) {
	t.Helper()
	said := string(c.must(t, opSASL, enc{}.buf([]byte{})).buf())
	require.Regexp(t, `realm="zk-sasl-md5"`, said)
	require.Regexp(t, `algorithm=md5-sess`, said)
	return nonces.FindStringSubmatch(said)[1]
}

func TestBySASLAPasswordIsAnIdentityAndAnotherIsRefused(t *testing.T) {
	bob := answer{"bob", "bob", "open sesame", "zk-sasl-md5", "zookeeper/zk-sasl-md5", "auth", ""}
	jürgen := answer{"jürgen", "j\xfcrgen", "gr\xf6\xdfe", bob.realm, bob.uri, "auth", ""}
	eachBySASL(t, func(t *testing.T, addr string) {
		connect := func() *raw { return greet(t, addr, hello{timeout: int32(patience.Milliseconds())}) }
		prove := func(c *raw, a answer) (token string) {
			token, rspauth := a.of(challenge(t, c))
			require.Equal(t, rspauth, string(c.must(t, opSASL, enc{}.buf([]byte(token))).buf()))
			return token
		}
		owner := connect()
		proof := prove(owner, bob)
		owner.must(t, opCreate, create("/own", nil, []acl{{31, "auth", ""}}, persistent))
		require.Equal(t, []acl{{31, "sasl", "bob"}}, owner.must(t, opGetACL, enc{}.str("/own")).acls())

		other := connect()
		require.EqualValues(t, errNoAuth, other.code(t, opGetData, watched("/own", false)))
		other.must(t, opCreate, create("/for-jürgen", nil, []acl{{1, "sasl", "jürgen"}}, persistent))
		require.EqualValues(t, errNoAuth, other.code(t, opGetData, watched("/for-jürgen", false)))
		third := connect()
		prove(third, jürgen)
		third.must(t, opGetData, watched("/for-jürgen", false))
		require.EqualValues(t, errNoAuth, third.code(t, opGetData, watched("/own", false)))
		fourth := connect()
		as := bob
		as.as = "bob"
		prove(fourth, as)
		fourth.must(t, opGetData, watched("/own", false))

		for what, wrong := range map[string]func(a *answer){
			"password": func(a *answer) { a.password = "open" },
			// 3.8.0 lets in who knows the password of the user before.
			"user":    func(a *answer) { a.user, a.hashed, a.password = "mallory", "mallory", "mallory" },
			"realm":   func(a *answer) { a.realm = "example" },
			"service": func(a *answer) { a.uri = "imap/zk-sasl-md5" },
			"quality": func(a *answer) { a.qop = "auth-conf" },
		} {
			a, c := bob, connect()
			wrong(&a)
			token, _ := a.of(challenge(t, c))
			require.EqualValues(t, errAuthFailed, c.code(t, opSASL, enc{}.buf([]byte(token))), what)
			_, err := c.call(opExists, watched("/own", false))
			require.Error(t, err, what)
		}
		for _, token := range []string{"", "username", `username="bob`, `username="bob"x`, "response=\\"} {
			c := connect()
			challenge(t, c)
			require.EqualValues(t, errAuthFailed, c.code(t, opSASL, enc{}.buf([]byte(token))), token)
		}
		c := connect()
		token, _ := bob.of("of no challenge")
		require.Regexp(t, nonces, string(c.must(t, opSASL, enc{}.buf([]byte(token))).buf()),
			"the first request is answered with a challenge")
		require.EqualValues(t, errAuthFailed, c.code(t, opSASL, enc{}.buf([]byte(token))))
		require.EqualValues(t, errAuthFailed, owner.code(t, opSASL, enc{}.buf([]byte(proof))), "it was proved before")
	})
}

func TestWithoutSASLItsRequestIsAnsweredWithNothing(t *testing.T) {
	each(t, func(t *testing.T, _ target, c *raw) {
		require.Nil(t, c.must(t, opSASL, enc{}.buf([]byte{})).buf())
		require.EqualValues(t, errInvalidACL, c.code(t, opCreate, create("/x", nil, []acl{{31, "sasl", "bob"}}, persistent)))
	})
}
