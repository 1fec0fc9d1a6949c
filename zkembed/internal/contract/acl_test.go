package contract

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func auth(scheme, credentials string) enc {
	return enc{}.i32(0).str(scheme).buf([]byte(credentials))
}

func TestADigestProtectsANodeFromThoseWithoutIt(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		owner, other := s.connect(), s.connect()
		a := s.path("a")
		require.EqualValues(t, errInvalidACL, owner.code(t, opCreate, create(a, nil, []acl{{31, "auth", ""}}, persistent)))
		owner.must(t, opAuth, auth("digest", "u:p"))
		owner.must(t, opCreate, create(a, nil, []acl{{31, "auth", ""}}, persistent))
		require.EqualValues(t, errNoAuth, other.code(t, opGetData, watched(a, true)))
		require.EqualValues(t, errNoAuth, other.code(t, opGetChildren, watched(a, true)))
		require.EqualValues(t, errNoAuth, other.code(t, opSetData, setData(a, nil, -1)))
		require.EqualValues(t, errNoAuth, other.code(t, opCreate, create(a+"/b", nil, open, persistent)))
		require.EqualValues(t, errNoAuth, other.code(t, opSetACL, enc{}.str(a).acls(open).i32(-1)))
		require.EqualValues(t, errNoAuth, other.code(t, opGetACL, enc{}.str(a)))
		other.must(t, opExists, watched(a, false))
		other.must(t, opAuth, auth("digest", "u:p"))
		other.set(t, a, nil)
		require.Equal(t, []acl{{31, "digest", digestU}}, other.must(t, opGetACL, enc{}.str(a)).acls())
	})
}

func TestIdentitiesBelongToTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		c.must(t, opAuth, auth("digest", "u:p"))
		require.Equal(t, `["digest=u" "ip=127.0.0.1"]`, decode(opWhoAmI, c.must(t, opWhoAmI, nil)))
		c = c.again(t)
		require.Equal(t, `["ip=127.0.0.1"]`, decode(opWhoAmI, c.must(t, opWhoAmI, nil)))
		c.must(t, opClose, nil)
	})
}

func TestAReaderOfAnACLSeesNoDigestsUnlessItMayAdminister(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		a := s.path("a")
		c.must(t, opCreate, create(a, nil, []acl{{1, "world", "anyone"}, {31, "digest", digestU}}, persistent))
		require.Equal(t, []acl{{1, "world", "anyone"}, {31, "digest", "u:x"}}, c.must(t, opGetACL, enc{}.str(a)).acls())
	})
}

func TestAnAddressOpensANodeToItsNetwork(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		for id, code := range map[string]int32{"127.0.0.1": 0, "127.0.0.0/8": 0, "10.0.0.0/8": errNoAuth} {
			name := s.path("a-" + id[:3] + id[len(id)-1:])
			c.must(t, opCreate, create(name, nil, []acl{{31, "ip", id}}, persistent))
			require.Equal(t, code, c.code(t, opGetData, watched(name, false)), id)
		}
		for _, id := range []string{"", "1.2.3", "1.2.3.4/33", "x", "::1", "::/64", "fe80::1%1", "::ffff:127.0.0.1"} {
			require.EqualValues(t, errInvalidACL, c.code(t, opCreate, create(s.path("x"), nil, []acl{{31, "ip", id}}, persistent)), id)
		}
	})
}

func TestOnlyWhatWasSentTwiceIsTakenOutOfAnACL(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		c.must(t, opAuth, auth("digest", "u:p"))
		all, read := acl{31, "auth", ""}, acl{1, "auth", ""}
		u, v := acl{31, "digest", digestU}, acl{31, "digest", digestV}
		for i, p := range []struct{ sent, kept []acl }{
			{[]acl{all, u}, []acl{u, u}},
			{[]acl{u, all}, []acl{u, u}},
			{[]acl{all, all}, []acl{u}},
			{[]acl{all, {31, "auth", "x"}}, []acl{u, u}},
			{[]acl{all, read}, []acl{u, {1, "digest", digestU}}},
			{[]acl{v, u, v, all, u}, []acl{v, u, u}},
		} {
			name := s.path(fmt.Sprint("a", i))
			c.must(t, opCreate, create(name, nil, p.sent, persistent))
			require.Equal(t, p.kept, c.must(t, opGetACL, enc{}.str(name)).acls(), "%v", p.sent)
			c.must(t, opSetACL, enc{}.str(name).acls(p.sent).i32(-1))
			require.Equal(t, p.kept, c.must(t, opGetACL, enc{}.str(name)).acls(), "%v", p.sent)
		}
	})
}

func TestCredentialsOfAnUnknownSchemeEndTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		require.EqualValues(t, errAuthFailed, c.code(t, opAuth, auth("nosuch", "x")))
		_, err := c.frame()
		require.Error(t, err)
	})
}
