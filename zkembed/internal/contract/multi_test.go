package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOperationsOfAMultiSeeEachOther(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
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
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
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
	each(t, func(t *testing.T, s target) {
		c := s.connect()
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
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		require.EqualValues(t, errMarshalling, c.code(t, opMulti, multi([]part{{opExists, watched(s.root, false)}})))
	})
}
