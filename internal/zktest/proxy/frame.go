package proxy

import (
	"encoding/binary"
	"slices"
)

// Opcodes of ZooKeeper's client protocol, as in ZooDefs.
const (
	OpNotification    int32 = 0 // replies only: an event of a watch
	OpCreate          int32 = 1
	OpDelete          int32 = 2
	OpExists          int32 = 3
	OpGetData         int32 = 4
	OpSetData         int32 = 5
	OpGetACL          int32 = 6
	OpSetACL          int32 = 7
	OpGetChildren     int32 = 8
	OpSync            int32 = 9
	OpPing            int32 = 11
	OpGetChildren2    int32 = 12
	OpCheck           int32 = 13
	OpMulti           int32 = 14
	OpCreate2         int32 = 15
	OpCheckWatches    int32 = 17
	OpRemoveWatches   int32 = 18
	OpCreateContainer int32 = 19
	OpCreateTTL       int32 = 21
	OpMultiRead       int32 = 22
	OpAuth            int32 = 100
	OpSetWatches      int32 = 101
	OpSetWatches2     int32 = 105
	OpAddWatch        int32 = 106
	OpCloseSession    int32 = -11

	// OpConnect stands for the first packet of each connection, which carries
	// no opcode.
	OpConnect int32 = -1000
)

// Groups of opcodes that different clients use for the same purpose.
var (
	Creates = []int32{OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL}
	Lists   = []int32{OpGetChildren, OpGetChildren2}
)

// Frame is one packet of the client protocol.
type Frame struct {
	Op      int32    // of a reply: the opcode of the request it answers
	Xid     int32    // 0 in a connect packet
	Paths   []string // the nodes the request is about; several in a multi and in setWatches
	Session int64    // the connection's session, 0 until the server has answered the connect packet
	Reply   bool     // sent by the server
	Zxid    int64    // replies only
	Err     int32    // replies only
	Body    []byte   // everything after the length; Modify may change or replace it
}

// about reports whether the frame concerns path or anything below it.
func (f *Frame) about(path string) bool {
	return slices.ContainsFunc(f.Paths, func(p string) bool {
		return p == path || path == "/" || len(p) > len(path) && p[:len(path)] == path && p[len(path)] == '/'
	})
}

const (
	xidNotification = -1
	replyHeader     = 16 // xid, zxid, error
)

// parseRequest reads what the proxy needs of a packet that is not a connect
// packet.
func parseRequest(body []byte) *Frame {
	d := decoder{rest: body}
	f := &Frame{Xid: d.int32(), Op: d.int32(), Body: body}
	switch f.Op {
	case OpPing, OpAuth, OpCloseSession:
	case OpMulti, OpMultiRead:
		f.Paths = d.multiPaths()
	case OpSetWatches, OpSetWatches2:
		d.skip(8) // the client's last zxid
		for len(d.rest) > 0 {
			for range d.int32() {
				f.Paths = append(f.Paths, d.string())
				if d.bad {
					return f
				}
			}
		}
	default:
		f.Paths = []string{d.string()}
	}
	return f
}

// parseReply reads a reply's header; the caller knows which request it answers.
func parseReply(body []byte) *Frame {
	d := decoder{rest: body}
	f := &Frame{Reply: true, Xid: d.int32(), Zxid: d.int64(), Err: d.int32(), Body: body}
	if f.Xid == xidNotification {
		d.skip(8) // type and state
		f.Paths = []string{d.string()}
	}
	return f
}

// multiPaths returns the paths of a multi's operations, up to the first of an
// unknown kind.
func (d *decoder) multiPaths() (paths []string) {
	for !d.bad {
		op, done := d.int32(), d.bool()
		d.skip(4) // error, unused in requests
		if done || d.bad {
			return paths
		}
		paths = append(paths, d.string())
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			d.bytes()
			for range d.int32() {
				d.skip(4)
				d.bytes()
				d.bytes()
				if d.bad {
					return paths
				}
			}
			d.skip(4)
			if op == OpCreateTTL {
				d.skip(8)
			}
		case OpSetData:
			d.bytes()
			d.skip(4)
		case OpDelete, OpCheck:
			d.skip(4)
		case OpGetData, OpGetChildren:
			d.skip(1)
		default:
			return paths
		}
	}
	return paths
}

// decoder reads jute. After the first thing that is not there it gives zero
// values and is bad.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) skip(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) int32() int32 {
	if b := d.skip(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.skip(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.skip(1)
	return len(b) == 1 && b[0] != 0
}

func (d *decoder) bytes() []byte { return d.skip(int(max(d.int32(), 0))) }

func (d *decoder) string() string { return string(d.bytes()) }
