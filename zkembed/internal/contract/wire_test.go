package contract

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func TestRequestsInOnePieceAreAnsweredInOrder(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		c := s.connect()
		const n = 500
		for range n {
			require.NoError(t, coordtest.Err(c.send(opCreate, create(s.path("n-"), nil, open, sequential))))
		}
		for i := range int32(n) {
			xid, r, err := c.receive()
			require.NoError(t, err)
			require.Equal(t, i+1, xid)
			require.Zero(t, r.code)
		}
		require.EqualValues(t, n, c.stat(t, s.root).children)
	})
}

func TestAPacketBeyondTheLimitEndsTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		for _, length := range []int32{-1, 0xfffff + 1<<20, 1 << 30} {
			c := s.connect()
			require.NoError(t, coordtest.Err(c.nc.Write(enc{}.i32(length))))
			require.Error(t, coordtest.Err(c.frame()), "%d", length)
		}
	})
}

func TestAMalformedRequestFailsAndTheConnectionLives(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		for _, op := range []int32{
			opCreate, opDelete, opSetData, opGetData, opExists, opGetChildren, opMulti, opSetWatches, opSetACL, opAddWatch,
		} {
			for _, b := range []enc{nil, enc{}.i32(-7), enc{}.i32(1 << 30), enc{}.str(s.root)[:3]} {
				r, err := c.call(op, b)
				require.NoError(t, err, "op %d body %q", op, b)
				require.EqualValues(t, errMarshalling, r.code, "op %d body %q", op, b)
			}
		}
		c.stat(t, s.root)
	})
}

func TestAnUnknownOperationIsNotImplemented(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		require.EqualValues(t, errUnimpl, c.code(t, 77, nil))
	})
}

func word(t *testing.T, s target, w string) string {
	t.Helper()
	c := dialTCP(t, s.addr)
	require.NoError(t, coordtest.Err(c.nc.Write([]byte(w))))
	b, err := io.ReadAll(c.r)
	require.NoError(t, err)
	return string(b)
}

func TestFourLetterWordsAnswerAsOperatorsKnowThem(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opGetChildren, watched(s.root, true))
		require.Equal(t, "imok", word(t, s, "ruok"))
		require.Equal(t, "rw", word(t, s, "isro"))
		for w, lines := range map[string][]string{
			"srvr": {"Zookeeper version: 3.8.0", "Mode: standalone", "Zxid: 0x", "Node count: "},
			"stat": {"Zookeeper version: 3.8.0", "Clients:", "Mode: standalone"},
			"mntr": {
				"zk_version\t3.8.0", "zk_server_state\tstandalone", "zk_watch_count\t1", "zk_num_alive_connections\t",
				"zk_ephemerals_count\t0",
			},
			"conf": {"tickTime=200", "minSessionTimeout=200", "maxSessionTimeout=600000", "clientPort="},
			"envi": {"zookeeper.version=3.8.0"},
			"cons": {"127.0.0.1", "queued=0,recved=", "sid=0x"},
		} {
			got := word(t, s, w)
			for _, line := range lines {
				require.Contains(t, got, line, w)
			}
			require.True(t, strings.HasSuffix(got, "\n"), w)
		}
	})
}

func TestTheOperationsOfAMultiSeeEachOther(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		a := s.path("a")
		d := c.must(t, opMulti, multi([]part{
			{opCreate, create(a, nil, open, persistent)},
			{opCheck, versioned(a, 0)},
			{opSetData, setData(a, []byte("x"), 0)},
			{opCheck, versioned(a, 1)},
			{opContainer, create(a+"/c", nil, open, container)},
			{opDelete, versioned(a+"/c", -1)},
			{opDelete, versioned(a, 1)},
			{opTTL, createTTL(a, nil, open, ttlNode, 10_000)},
		}))
		require.Equal(t, opCreate, int(d.i32()))
		d.take(5)
		require.Equal(t, a, d.str())
		require.Equal(t, opCheck, int(d.i32()))
		d.take(5)
		require.Equal(t, opSetData, int(d.i32()))
		d.take(5)
		set := d.stat()
		require.Equal(t, []int64{c.zxid, 1}, []int64{set.mzxid, int64(set.length)})
		require.Equal(t, c.zxid, c.stat(t, a).czxid)
	})
}

func TestAMultiThatFailsDoesNothingAndNamesTheFailure(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		other.must(t, opGetChildren, watched(s.root, true))
		before := c.stat(t, s.root)
		d := c.must(t, opMulti, multi([]part{
			{opCreate, create(s.path("a"), nil, open, sequential)},
			{opSetData, setData(s.root, []byte("x"), -1)},
			{opDelete, versioned(s.path("none"), -1)},
			{opCreate, create(s.path("b"), nil, open, persistent)},
		}))
		require.Equal(t, "{-1 false 0 0}{-1 false 0 0}{-1 false -101 -101}{-1 false -2 -2}{-1 true -1}", results(d))
		require.Equal(t, before, c.stat(t, s.root))
		require.Empty(t, other.flush(t))
	})
}

func TestAMultiReadAnswersEachPartByItself(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opCreate, create(s.path("a"), []byte("x"), open, persistent))
		d := c.must(t, opMultiRead, multi([]part{
			{opGetData, watched(s.path("a"), false)},
			{opGetData, watched(s.path("none"), false)},
			{opGetChildren, watched(s.root, false)},
		}))
		require.Equal(t, "{4 false 0 \"x\" nil=false "+c.stat(t, s.path("a")).String()+
			"}{-1 false -101 -101}{8 false 0 [\"a\"]}{-1 true -1}", results(d))
	})
}

func TestAMultiWithAReadInItIsMalformed(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		require.EqualValues(t, errMarshalling, c.code(t, opMulti, multi([]part{{opExists, watched(s.root, false)}})))
	})
}

// null is a string, a buffer or a vector that is not there, as Jute writes it.
func (e enc) null() enc { return e.i32(-1) }

// nulls is a request each with one string, buffer or vector that is null, and
// what a server says to it.
type nulls map[string]asked

type asked struct {
	op   int32
	body enc
	code int32
}

// nullPaths leaves out the persistent watch on no path, which a real server
// accepts and keeps for ever.
func nullPaths() nulls {
	version := enc{}.null().i32(-1)
	watch := enc{}.null().flag(false)
	return nulls{
		"delete":               {opDelete, version, errMarshalling},
		"check":                {opCheck, version, errBadArguments},
		"exists":               {opExists, watch, errMarshalling},
		"exists and watch":     {opExists, enc{}.null().flag(true), errMarshalling},
		"getData":              {opGetData, watch, errMarshalling},
		"getData and watch":    {opGetData, enc{}.null().flag(true), errMarshalling},
		"getChildren":          {opGetChildren, watch, errMarshalling},
		"getChildren2":         {opGetChildren2, watch, errMarshalling},
		"getACL":               {opGetACL, enc{}.null(), errMarshalling},
		"getAllChildrenNumber": {opAllChildren, enc{}.null(), errMarshalling},
		"getEphemerals":        {opGetEphemerals, enc{}.null(), 0},
		"setData":              {opSetData, enc{}.null().buf(nil).i32(-1), errBadArguments},
		"setACL":               {opSetACL, enc{}.null().acls(open).i32(-1), errBadArguments},
		"sync":                 {opSync, enc{}.null(), 0},
		"create":               {opCreate, enc{}.null().buf(nil).acls(open).i32(0), errMarshalling},
		"create2":              {opCreate2, enc{}.null().buf(nil).acls(open).i32(0), errMarshalling},
		"createContainer":      {opContainer, enc{}.null().buf(nil).acls(open).i32(container), errMarshalling},
		"createTTL":            {opTTL, enc{}.null().buf(nil).acls(open).i32(ttlNode).i64(60_000), errMarshalling},
		"checkWatches":         {opCheckWatches, enc{}.null().i32(3), errMarshalling},
		"removeWatches":        {opRemoveWatches, enc{}.null().i32(3), errNoWatcher},
		"multiRead":            {opMultiRead, multi([]part{{opGetData, watch}}), errMarshalling},
		"delete in a multi":    {opMulti, multi([]part{{opDelete, version}}), errMarshalling},
		"check in a multi":     {opMulti, multi([]part{{opCheck, version}}), errMarshalling},
		"setData in a multi":   {opMulti, multi([]part{{opSetData, enc{}.null().buf(nil).i32(-1)}}), errMarshalling},
		"create in a multi":    {opMulti, multi([]part{{opCreate, enc{}.null().buf(nil).acls(open).i32(0)}}), errMarshalling},
		"setWatches, data":     {opSetWatches, enc{}.i64(0).i32(1).null().i32(0).i32(0), errMarshalling},
		"setWatches, exist":    {opSetWatches, enc{}.i64(0).i32(0).i32(1).null().i32(0), errMarshalling},
		"setWatches, child":    {opSetWatches, enc{}.i64(0).i32(0).i32(0).i32(1).null(), errMarshalling},
	}
}

func nullVectors(path string) nulls {
	return nulls{
		"setACL":             {opSetACL, enc{}.str(path).null().i32(-1), errInvalidACL},
		"create":             {opCreate, enc{}.str(path + "/a").buf(nil).null().i32(0), errInvalidACL},
		"setWatches, data":   {opSetWatches, enc{}.i64(0).null().i32(0).i32(0), errMarshalling},
		"setWatches, exist":  {opSetWatches, enc{}.i64(0).i32(0).null().i32(0), errMarshalling},
		"setWatches, child":  {opSetWatches, enc{}.i64(0).i32(0).i32(0).null(), errMarshalling},
		"setWatches2, deep":  {opSetWatches2, enc{}.i64(0).i32(0).i32(0).i32(0).i32(0).null(), errMarshalling},
		"setWatches2, empty": {opSetWatches2, enc{}.i64(0).i32(0).i32(0).i32(0).i32(0).i32(0), 0},
	}
}

func nullsInACLs(path string) nulls {
	all := nulls{}
	id := func(e enc, scheme string) enc { return e.i32(1).i32(31).str(scheme).null() }
	for scheme, code := range map[string]int32{
		"auth": 0, "world": errMarshalling, "digest": errMarshalling, "ip": errMarshalling, "unknown": errInvalidACL,
	} {
		at := func(name string) enc { return enc{}.str(path + "/" + name + "-" + scheme) }
		all["setACL, id of "+scheme] = asked{opSetACL, id(enc{}.str(path), scheme).i32(-1), code}
		for name, op := range map[string]int32{"create": opCreate, "create2": opCreate2, "createContainer": opContainer} {
			flags := map[int32]int32{opContainer: container}[op]
			all[name+", id of "+scheme] = asked{op, id(at(name).null(), scheme).i32(flags), code}
		}
		inMulti := code
		if code == errInvalidACL {
			inMulti = 0 // its result says so
		}
		all["multi, id of "+scheme] = asked{
			opMulti, multi([]part{{opCreate, id(at("multi").null(), scheme).i32(0)}}), inMulti,
		}
	}
	scheme := enc{}.i32(1).i32(31).null().str("anyone")
	all["setACL, scheme"] = asked{opSetACL, append(enc{}.str(path), scheme...).i32(-1), errInvalidACL}
	return all
}

func TestWhatIsNullIsRefusedOrTakenForEmptyAsOnARealServer(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		for kind, requests := range map[string]nulls{
			"path": nullPaths(), "vector": nullVectors(s.root), "ACL": nullsInACLs(s.root),
		} {
			for name, r := range requests {
				c := s.connect()
				c.must(t, opAuth, auth("digest", "u:p"))
				require.Equal(t, r.code, c.code(t, r.op, r.body), "%s: %s", kind, name)
			}
		}
	})
}

func TestNullDataAreNoData(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opSetData, enc{}.str(s.root).null().i32(-1))
		require.Contains(t, decode(opGetData, c.must(t, opGetData, watched(s.root, false))), "nil=true")
		c.must(t, opSetData, enc{}.str(s.root).buf([]byte{}).i32(-1))
		require.Contains(t, decode(opGetData, c.must(t, opGetData, watched(s.root, false))), "nil=false")
	})
}

func TestThePathOfASyncMayBeNullAndComesBack(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		require.EqualValues(t, -1, c.must(t, opSync, enc{}.null()).i32())
	})
}

func TestNoPrefixIsEveryEphemeral(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		made := c.create(t, s.path("a"), ephemeral)
		require.Equal(t, fmt.Sprintf("[%q]", made), decode(opGetEphemerals, c.must(t, opGetEphemerals, enc{}.null())))
	})
}

// Kazoo's CREATOR_ALL_ACL is this.
func TestTheACLOfTheCreatorMayHaveANullID(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opAuth, auth("digest", "u:p"))
		c.must(t, opCreate, enc{}.str(s.path("a")).buf(nil).i32(1).i32(31).str("auth").null().i32(persistent))
		require.Equal(t, []acl{{31, "digest", digestU}}, c.must(t, opGetACL, enc{}.str(s.path("a"))).acls())
	})
}

func TestCredentialsThatAreNullOrOfNoKnownSchemeEndTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opAuth, enc{}.i32(0).str("ip").null())
		for name, credentials := range map[string]enc{
			"unknown scheme": auth("nosuch", "x"),
			"null scheme":    enc{}.i32(0).null().buf(nil),
			"null digest":    enc{}.i32(0).str("digest").null(),
		} {
			c := s.connect()
			require.EqualValues(t, errAuthFailed, c.code(t, opAuth, credentials), name)
			require.ErrorIs(t, coordtest.Err(c.frame()), io.EOF, name)
		}
	})
}

func TestAPasswordThatIsNullBeginsASessionAndResumesNone(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		hail := func(session int64) int64 {
			n := dialTCP(t, s.addr)
			require.NoError(t, n.sendFrame(enc{}.i32(0).i64(0).i32(2000).i64(session).null()))
			b, err := n.frame()
			require.NoError(t, err)
			return (&dec{b[8:]}).i64()
		}
		require.NotZero(t, hail(0))
		require.Zero(t, hail(c.session))
	})
}
