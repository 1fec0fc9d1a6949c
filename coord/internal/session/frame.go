package session

import (
	"encoding/binary"
	"time"
)

// What the wire reads of ZooKeeper's frames (zookeeper.jute, ZooDefs.OpCode):
// no more than it needs to know which request a reply belongs to and which
// watches are armed, and for the session's own requests.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opSetACL          = 7
	opGetChildren     = 8
	opGetChildren2    = 12
	opMulti           = 14
	opCreateContainer = 19
	opCreateTTL       = 21
	opCheck           = 13
	opAuth            = 100
	opClose           = -11

	xidNotification = -1
	xidPing         = -2
	xidAuth         = -4
	xidProbe        = -16     // of probes, from there downwards: a busy server holds back what is above 0
	xidClose        = -15     // of the session's closing
	xidOwn          = 1 << 30 // of the session's own requests, from there upwards; the library's begin at 1

	codeNoNode  = -101
	codeExpired = -112

	eventDeleted         = 2
	eventDataChanged     = 3
	eventChildrenChanged = 4

	lengthSize  = 4
	replyHeader = 16 // xid, zxid, err

	// A reply larger than this is no reply: the largest listing a server can
	// hold in memory is smaller.
	maxFrame = 256 << 20
)

// isWrite reports whether a request is decided by the ensemble, not by the one
// server that received it.
func isWrite(op int32) bool {
	switch op {
	case opCreate, opDelete, opSetData, opSetACL, opMulti, opCreateContainer, opCreateTTL:
		return true
	}
	return false
}

// committed reports whether the error code of a reply to a write comes from a
// transaction the ensemble agreed on. A refused write is one (a failed
// transaction has a zxid as well); a throttled, moved or expired one is not.
func committed(code int32) bool { return code == 0 || (code <= -101 && code >= -111) }

func int32At(b []byte, at int) int32 {
	if len(b) < at+4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b[at:]))
}

func int64At(b []byte, at int) int64 {
	if len(b) < at+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[at:]))
}

// stringAt reads a length-prefixed string and tells where it ends.
func stringAt(b []byte, at int) (s string, end int) {
	n := int(int32At(b, at))
	if n < 0 || len(b) < at+4+n {
		return "", len(b)
	}
	return string(b[at+4 : at+4+n]), at + 4 + n
}

func appendInt32(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func appendBuffer(b, data []byte) []byte {
	if data == nil {
		return appendInt32(b, -1)
	}
	return appendString(b, string(data))
}

// withLength prefixes a frame with its length.
func withLength(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func closeFrame() []byte {
	return withLength(appendInt32(appendInt32(nil, xidClose), opClose))
}

func authFrame(a Auth) []byte {
	var b []byte
	b = appendInt32(b, xidAuth)
	b = appendInt32(b, opAuth)
	b = appendInt32(b, 0)
	b = appendString(b, a.Scheme)
	return withLength(appendString(b, string(a.Credential)))
}

// notification is the frame a server sends when a watch fires. State 0
// (disconnected) marks the ones this package makes itself.
func notification(event int32, path string) []byte {
	b := make([]byte, 0, replyHeader+12+len(path))
	b = appendInt32(b, xidNotification)
	b = binary.BigEndian.AppendUint64(b, ^uint64(0)) // zxid -1
	b = appendInt32(b, 0)                            // err
	b = appendInt32(b, event)
	b = appendInt32(b, 0) // state
	return withLength(appendString(b, path))
}

// bufferAt reads data and tells where they end.
func bufferAt(b []byte, at int) (data []byte, end int) {
	if int32At(b, at) < 0 {
		return nil, at + 4
	}
	s, end := stringAt(b, at)
	return []byte(s), end
}

// namesAt reads a list of strings, which share their memory, and tells where it
// ends.
func namesAt(b []byte, at int) (names []string, end int) {
	all := string(b)
	n := max(min(int(int32At(b, at)), len(b)/4), 0)
	names = make([]string, 0, n)
	for at += 4; n > 0; n-- {
		end := min(at+4+max(int(int32At(b, at)), 0), len(b))
		names = append(names, all[min(at+4, end):end])
		at = end
	}
	return names, at
}

// statAt reads what the servers keep about a node.
func statAt(b []byte, at int) Stat {
	return Stat{
		Czxid: int64At(b, at), Mzxid: int64At(b, at+8), Pzxid: int64At(b, at+60),
		Created: time.UnixMilli(int64At(b, at+16)), Modified: time.UnixMilli(int64At(b, at+24)),
		Version: int32At(b, at+32), Cversion: int32At(b, at+36), Aversion: int32At(b, at+40),
		Owner: int64At(b, at+44), DataLength: int32At(b, at+52), Children: int32At(b, at+56),
	}
}
