package contract

import "encoding/binary"

// enc writes the parts of requests. It shares nothing with the embedded
// server's own codec: a mistake made twice would go unseen.
type enc []byte

func (e enc) i32(v int32) enc { return binary.BigEndian.AppendUint32(e, uint32(v)) }
func (e enc) i64(v int64) enc { return binary.BigEndian.AppendUint64(e, uint64(v)) }
func (e enc) str(v string) enc {
	return append(e.i32(int32(len(v))), v...)
}

func (e enc) flag(v bool) enc {
	if v {
		return append(e, 1)
	}
	return append(e, 0)
}

func (e enc) buf(v []byte) enc {
	if v == nil {
		return e.i32(-1)
	}
	return append(e.i32(int32(len(v))), v...)
}

func (e enc) strs(v []string) enc {
	e = e.i32(int32(len(v)))
	for _, s := range v {
		e = e.str(s)
	}
	return e
}

type acl struct {
	perms      int32
	scheme, id string
}

var open = []acl{{31, "world", "anyone"}}

func (e enc) acls(v []acl) enc {
	e = e.i32(int32(len(v)))
	for _, a := range v {
		e = e.i32(a.perms).str(a.scheme).str(a.id)
	}
	return e
}

// ZooKeeper's operation codes.
const (
	opCreate        = 1
	opDelete        = 2
	opExists        = 3
	opGetData       = 4
	opSetData       = 5
	opGetACL        = 6
	opSetACL        = 7
	opGetChildren   = 8
	opSync          = 9
	opPing          = 11
	opGetChildren2  = 12
	opCheck         = 13
	opMulti         = 14
	opCreate2       = 15
	opCheckWatches  = 17
	opRemoveWatches = 18
	opContainer     = 19
	opTTL           = 21
	opMultiRead     = 22
	opAuth          = 100
	opSetWatches    = 101
	opSASL          = 102
	opGetEphemerals = 103
	opAllChildren   = 104
	opSetWatches2   = 105
	opAddWatch      = 106
	opWhoAmI        = 107
	opClose         = -11
)

// create flags
const (
	persistent  = 0
	ephemeral   = 1
	sequential  = 2
	ephemeralSq = 3
	container   = 4
	ttlNode     = 5
	ttlSeq      = 6
)

func create(path string, data []byte, acls []acl, flags int32) enc {
	return enc{}.str(path).buf(data).acls(acls).i32(flags)
}

func createTTL(path string, data []byte, acls []acl, flags int32, ttl int64) enc {
	return create(path, data, acls, flags).i64(ttl)
}

func versioned(path string, version int32) enc { return enc{}.str(path).i32(version) }
func watched(path string, watch bool) enc      { return enc{}.str(path).flag(watch) }

func setData(path string, data []byte, version int32) enc {
	return enc{}.str(path).buf(data).i32(version)
}

// part is one operation of a multi.
type part struct {
	op   int32
	body enc
}

func multi(parts []part) enc {
	e := enc{}
	for _, p := range parts {
		e = append(e.i32(p.op).flag(false).i32(-1), p.body...)
	}
	return e.i32(-1).flag(true).i32(-1)
}
