package contract

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestEveryWriteTakesAZxidAndNoReadDoes(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.create(t, s.path("a"), persistent)
		for _, r := range []struct {
			op    int32
			body  enc
			code  int32
			zxids int64
		}{
			{opExists, watched(s.path("a"), false), 0, 0},
			{opGetData, watched(s.path("none"), false), errNoNode, 0},
			{opGetChildren, watched(s.path("a"), false), 0, 0},
			{opSync, enc{}.str(s.path("a")), 0, 0},
			{opPing, nil, 0, 0},
			{opSetData, setData(s.path("a"), nil, -1), 0, 1},
			{opSetData, setData(s.path("a"), nil, 99), errBadVersion, 1},
			{opCreate, create(s.path("a"), nil, open, persistent), errNodeExists, 1},
			{opDelete, versioned(s.path("none"), -1), errNoNode, 1},
			{opCheck, versioned(s.path("a"), 99), errBadVersion, 1},
			{opMulti, multi(nil), 0, 1},
			{
				opMulti, multi([]part{
					{opSetData, setData(s.path("a"), nil, -1)}, {opSetData, setData(s.path("a"), nil, -1)},
				}), 0, 1,
			},
		} {
			before := c.zxid
			got, err := c.call(r.op, r.body)
			require.NoError(t, err)
			require.Equal(t, r.code, got.code, "op %d", r.op)
			require.Equal(t, before+r.zxids, got.zxid, "op %d", r.op)
		}
	})
}

func TestASequenceNumberCountsCreationsAndIsNotTheCversion(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		require.Equal(t, s.path("n-0000000000"), c.create(t, s.path("n-"), sequential))
		c.create(t, s.path("plain"), persistent)
		require.EqualValues(t, errNodeExists, c.code(t, opCreate, create(s.path("plain"), nil, open, persistent)))
		require.Equal(t, s.path("n-0000000002"), c.create(t, s.path("n-"), ephemeralSq))
		c.delete(t, s.path("plain"))
		require.EqualValues(t, 4, c.stat(t, s.root).cversion)
		r := c.must(t, opMulti, multi([]part{
			{opCreate, create(s.path("n-"), nil, open, sequential)},
			{opDelete, versioned(s.path("none"), -1)},
		}))
		require.Equal(t, "{-1 false 0 0}{-1 false -101 -101}{-1 true -1}", results(r))
		require.Equal(t, s.path("0000000003"), c.create(t, s.path(""), sequential))
	})
}

func TestAChildChangesOnlyPzxidAndCversionOfItsParent(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		want := c.stat(t, s.root)
		c.create(t, s.path("a"), persistent)
		want.pzxid, want.cversion, want.children = c.zxid, want.cversion+1, want.children+1
		require.Equal(t, want, c.stat(t, s.root))
		c.delete(t, s.path("a"))
		want.pzxid, want.cversion, want.children = c.zxid, want.cversion+1, want.children-1
		require.Equal(t, want, c.stat(t, s.root))
	})
}

func TestSettingAnACLChangesOnlyItsVersion(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.create(t, s.path("a"), persistent)
		want := c.stat(t, s.path("a"))
		want.aversion++
		require.Equal(t, want, c.must(t, opSetACL, enc{}.str(s.path("a")).acls(open).i32(0)).stat())
		require.EqualValues(t, errBadVersion, c.code(t, opSetACL, enc{}.str(s.path("a")).acls(open).i32(0)))
		require.Equal(t, want, c.stat(t, s.path("a")))
	})
}

func TestNoDataAndEmptyDataAreTwoThings(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		for name, data := range map[string][]byte{"none": nil, "empty": {}, "some": []byte("x")} {
			c.must(t, opCreate, create(s.path(name), data, open, persistent))
			require.Equal(t, data, c.must(t, opGetData, watched(s.path(name), false)).buf())
			require.EqualValues(t, len(data), c.stat(t, s.path(name)).length)
		}
	})
}

func TestACreateFindsItsFirstFaultInAFixedOrder(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.create(t, s.path("e"), ephemeral)
		closed := []acl{{1, "world", "anyone"}}
		c.must(t, opCreate, create(s.path("shut"), nil, closed, persistent))
		for _, r := range []struct {
			path  string
			acl   []acl
			flags int32
			code  int32
		}{
			{s.path("a"), open, 7, errBadArguments},
			{"noslash", nil, persistent, errBadArguments},
			{s.path("none/./a"), nil, persistent, errInvalidACL},
			{s.path("none/./a"), open, persistent, errNoNode},
			{s.path("shut/a"), open, persistent, errNoAuth},
			{s.path("shut/./a"), open, persistent, errNoNode},
			{s.path("."), open, persistent, errBadArguments},
			{s.path(".."), open, persistent, errBadArguments},
			{s.path("a/"), open, persistent, errNoNode},
			{s.root + "/", open, persistent, errBadArguments},
			{s.path("a\u0001"), open, persistent, errBadArguments},
			{s.path("a\U0001F600"), open, persistent, errBadArguments},
			{s.path("e"), open, persistent, errNodeExists},
			{s.path("e/a"), open, persistent, errNoChildren},
			{"/", open, persistent, errNodeExists},
			{s.path("..."), open, persistent, 0},
			{s.path("é"), open, persistent, 0},
			{s.path("."), open, sequential, 0},
		} {
			require.Equal(t, r.code, c.code(t, opCreate, create(r.path, nil, r.acl, r.flags)), "%q", r.path)
		}
	})
}

func TestADeleteFindsItsFirstFaultInAFixedOrder(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.create(t, s.path("a"), persistent)
		c.create(t, s.path("a/b"), persistent)
		c.must(t, opCreate, create(s.path("shut"), nil, []acl{{5, "world", "anyone"}}, persistent))
		for _, r := range []struct {
			path    string
			version int32
			code    int32
		}{
			{"/", -1, errBadArguments},
			{"/zookeeper", -1, errBadArguments},
			{"/zookeeper/config", -1, errBadArguments},
			{"noslash", -1, errBadArguments},
			{s.path("none/a"), 9, errNoNode},
			{s.path("shut/a"), 9, errNoAuth},
			{s.path("none"), 9, errNoNode},
			{s.path("a"), 9, errBadVersion},
			{s.path("a"), -1, errNotEmpty},
			{s.path("a/b"), 0, 0},
			{s.path("a"), -1, 0},
		} {
			require.Equal(t, r.code, c.code(t, opDelete, versioned(r.path, r.version)), r.path)
		}
	})
}

func TestThePresetNodesAreThereWithEmptyData(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		for _, p := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
			d := c.must(t, opGetData, watched(p, false))
			require.Equal(t, []byte{}, d.buf())
			require.Zero(t, d.stat().czxid)
		}
		require.EqualValues(t, errNoAuth, c.code(t, opSetData, setData("/zookeeper/config", nil, -1)))
	})
}

func TestContainersAndTTLNodesShowNoOwner(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		d := c.must(t, opContainer, create(s.path("c"), nil, open, container))
		require.Equal(t, s.path("c"), d.str())
		require.Equal(t, c.stat(t, s.path("c")), d.stat())
		d = c.must(t, opTTL, createTTL(s.path("t-"), nil, open, ttlSeq, 3_600_000))
		require.Equal(t, s.path("t-0000000001"), d.str())
		st := d.stat()
		require.Zero(t, st.owner)
		require.Equal(t, c.zxid, st.czxid)
		for _, ttl := range []int64{0, -1, 1 << 40, math.MaxInt64} {
			require.EqualValues(t, errBadArguments, c.code(t, opTTL, createTTL(s.path("x"), nil, open, ttlNode, ttl)), "%d", ttl)
		}
		require.EqualValues(t, errBadArguments, c.code(t, opTTL, createTTL(s.path("x"), nil, open, persistent, 5)))
	})
}

// The reaper works by the clock, so this promise has servers of its own.
func TestTheReaperTakesWhatIsOverAndNothingElse(t *testing.T) {
	promise := func(t *testing.T, addr string) {
		c := connect(t, addr)
		for _, p := range []string{"/unused", "/used"} {
			c.must(t, opContainer, create(p, nil, open, container))
		}
		c.create(t, "/used/x", persistent)
		c.delete(t, "/used/x")
		for p, ttl := range map[string]int64{"/soon": 100, "/parent": 100, "/late": 3_600_000} {
			c.must(t, opTTL, createTTL(p, nil, open, ttlNode, ttl))
		}
		c.create(t, "/parent/x", persistent)
		left := func() []string {
			names := c.must(t, opGetChildren, watched("/", false)).strs()
			slices.Sort(names)
			return names
		}
		want := []string{"late", "parent", "unused", "zookeeper"}
		zktest.Eventually(t, patience, func() bool { return len(left()) <= len(want) }, "the reaper comes")
		c.create(t, "/after", persistent)
		c.must(t, opSync, enc{}.str("/"))
		c.delete(t, "/after")
		require.Equal(t, want, left())
	}
	t.Run("embedded", func(t *testing.T) {
		promise(t, zktest.NewEmbedded(t, zkembed.WithReaper(50*time.Millisecond)).ConnectString())
	})
	t.Run("real", func(t *testing.T) {
		promise(t, zktest.RequireReal(t, zktest.WithContainerCheck(50*time.Millisecond)).Addr())
	})
}

func TestCreate2AnswersWithTheStatOfTheNewNode(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		d := c.must(t, opCreate2, create(s.path("e"), []byte("abc"), open, ephemeral))
		require.Equal(t, s.path("e"), d.str())
		st := d.stat()
		require.Equal(t, stat{
			czxid: c.zxid, mzxid: c.zxid, pzxid: c.zxid, ctime: st.ctime, mtime: st.ctime,
			owner: c.session, length: 3,
		}, st)
		require.Equal(t, st, c.stat(t, s.path("e")))
	})
}

func TestListingsCountAndNameTheRightNodes(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		c.create(t, s.path("a"), persistent)
		for i := range 3 {
			c.create(t, s.path(fmt.Sprintf("a/%d", i)), ephemeral)
		}
		c.create(t, s.path("ab"), ephemeral)
		other.create(t, s.path("a/other"), ephemeral)
		require.EqualValues(t, 4, c.must(t, opAllChildren, enc{}.str(s.path("a"))).i32())
		require.EqualValues(t, 6, c.must(t, opAllChildren, enc{}.str(s.root)).i32())
		require.Len(t, c.must(t, opGetEphemerals, enc{}.str(s.path("a/"))).strs(), 3)
		require.Len(t, c.must(t, opGetEphemerals, enc{}.str(s.path("a"))).strs(), 4)
		require.ElementsMatch(t, []string{"0", "1", "2", "other"},
			c.must(t, opGetChildren, watched(s.path("a"), false)).strs())
		d := c.must(t, opGetChildren2, watched(s.path("a"), false))
		require.Len(t, d.strs(), 4)
		require.Equal(t, c.stat(t, s.path("a")), d.stat())
		require.Equal(t, s.path("any"), c.must(t, opSync, enc{}.str(s.path("any"))).str())
	})
}

func auth(scheme, credentials string) enc {
	return enc{}.i32(0).str(scheme).buf([]byte(credentials))
}

func TestADigestProtectsANodeFromThoseWithoutIt(t *testing.T) {
	each(t, func(t *testing.T, s target, owner *raw) {
		other := s.connect()
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
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opAuth, auth("digest", "u:p"))
		require.Equal(t, `["digest=u" "ip=127.0.0.1"]`, decode(opWhoAmI, c.must(t, opWhoAmI, nil)))
		c = c.again(t)
		require.Equal(t, `["ip=127.0.0.1"]`, decode(opWhoAmI, c.must(t, opWhoAmI, nil)))
		c.must(t, opClose, nil)
	})
}

func TestAReaderOfAnACLSeesNoDigestsUnlessItMayAdminister(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		a := s.path("a")
		c.must(t, opCreate, create(a, nil, []acl{{1, "world", "anyone"}, {31, "digest", digestU}}, persistent))
		require.Equal(t, []acl{{1, "world", "anyone"}, {31, "digest", "u:x"}}, c.must(t, opGetACL, enc{}.str(a)).acls())
	})
}

func TestAnAddressOpensANodeToItsNetwork(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		for id, code := range map[string]int32{"127.0.0.1": 0, "127.0.0.0/8": 0, "10.0.0.0/8": errNoAuth} {
			name := s.path("a-" + id[:3] + id[len(id)-1:])
			c.must(t, opCreate, create(name, nil, []acl{{31, "ip", id}}, persistent))
			require.Equal(t, code, c.code(t, opGetData, watched(name, false)), id)
		}
		for _, id := range []string{"", "1.2.3", "1.2.3.4/33", "x", "::1", "::/64", "fe80::1%1", "::ffff:127.0.0.1"} {
			require.EqualValues(t, errInvalidACL,
				c.code(t, opCreate, create(s.path("x"), nil, []acl{{31, "ip", id}}, persistent)), id)
		}
	})
}

func TestOnlyWhatWasSentTwiceIsTakenOutOfAnACL(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
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

// target is a server that a promise is tested on.
type target struct {
	t    *testing.T
	addr string
	root string // exists, and is empty
}

// each tests a promise on the embedded server and on a real one, each with a
// client.
func each(t *testing.T, promise func(t *testing.T, s target, c *raw)) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		s := target{t, w.ConnectString(), w.Path("")}
		c := s.connect()
		c.must(t, opCreate, create(s.root, nil, open, persistent))
		promise(t, s, c)
	})
}

func (s target) path(rel string) string { return s.root + "/" + rel }

// connect makes a session that ends with the test.
func (s target) connect() *raw {
	s.t.Helper()
	c := connect(s.t, s.addr)
	s.t.Cleanup(func() { s.close(c) })
	return c
}

// close ends the session of c, over a new connection if the old one is gone.
func (s target) close(c *raw) {
	if _, err := c.call(opClose, nil); err == nil {
		return
	}
	n := dialTCP(s.t, s.addr)
	if _, err := n.hello(hello{timeout: c.timeout, session: c.session, passwd: c.passwd}); err == nil && n.session != 0 {
		_, _ = n.call(opClose, nil)
	}
}

func (c *raw) create(t testing.TB, path string, flags int32) string {
	t.Helper()
	return c.must(t, opCreate, create(path, nil, open, flags)).str()
}

func (c *raw) delete(t testing.TB, path string) {
	t.Helper()
	c.must(t, opDelete, versioned(path, -1))
}

func (c *raw) set(t testing.TB, path string, data []byte) stat {
	t.Helper()
	return c.must(t, opSetData, setData(path, data, -1)).stat()
}

func (c *raw) stat(t testing.TB, path string) stat {
	t.Helper()
	return c.must(t, opExists, watched(path, false)).stat()
}

// flush returns the events that are on their way.
func (c *raw) flush(t testing.TB) []event {
	t.Helper()
	c.must(t, opPing, nil)
	return c.takeEvents()
}

const (
	created         = 1
	deleted         = 2
	changed         = 3
	childrenChanged = 4
)

// The error codes that the promises name.
const (
	errMarshalling  = -5
	errUnimpl       = -6
	errBadArguments = -8
	errNoNode       = -101
	errNoAuth       = -102
	errBadVersion   = -103
	errNoChildren   = -108
	errNodeExists   = -110
	errNotEmpty     = -111
	errInvalidACL   = -114
	errAuthFailed   = -115
	errNoWatcher    = -121
)

func TestMain(m *testing.M) { zktest.Main(m) }
