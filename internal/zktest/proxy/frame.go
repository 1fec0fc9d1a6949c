package proxy

import (
	"encoding/binary"
	"slices"
)

// Opcodes of ZooKeeper's client protocol, as in ZooDefs, that tests aim at or
// whose packets are not like the others.
const (
	OpNotification    int32 = 0 // replies only: an event of a watch
	OpCreate          int32 = 1
	OpDelete          int32 = 2
	OpExists          int32 = 3
	OpGetData         int32 = 4
	OpSetData         int32 = 5
	OpGetChildren     int32 = 8
	OpPing            int32 = 11
	OpGetChildren2    int32 = 12
	OpCheck           int32 = 13
	OpMulti           int32 = 14
	OpCreate2         int32 = 15
	OpCreateContainer int32 = 19
	OpCreateTTL       int32 = 21
	OpMultiRead       int32 = 22
	OpAuth            int32 = 100
	OpSetWatches      int32 = 101
	OpSetWatches2     int32 = 105
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
	Body    []byte   // everything after the length
}

// about reports whether the frame concerns path or anything below it.
func (f *Frame) about(path string) bool {
	return slices.ContainsFunc(f.Paths, func(p string) bool {
		return p == path || path == "/" || len(p) > len(path) && p[:len(path)] == path && p[len(path)] == '/'
	})
}

const xidNotification = -1

// parseRequest reads what the proxy needs of a packet that is not a connect
// packet.
func parseRequest(body []byte) *Frame {
	d := Decoder{Rest: body}
	f := &Frame{Xid: d.Int32(), Op: d.Int32(), Body: body}
	switch f.Op {
	case OpPing, OpAuth, OpCloseSession:
	case OpMulti, OpMultiRead:
		f.Paths = d.multiPaths()
	case OpSetWatches, OpSetWatches2:
		d.skip(8) // the client's last zxid
		for len(d.Rest) > 0 {
			for range d.Int32() {
				f.Paths = append(f.Paths, d.String())
				if d.bad {
					return f
				}
			}
		}
	default:
		f.Paths = []string{d.String()}
	}
	return f
}

// parseReply reads a reply's header; the caller knows which request it answers.
func parseReply(body []byte) *Frame {
	d := Decoder{Rest: body}
	f := &Frame{Reply: true, Xid: d.Int32(), Zxid: d.Int64(), Err: d.Int32(), Body: body}
	if f.Xid == xidNotification {
		d.skip(8) // type and state
		f.Paths = []string{d.String()}
	}
	return f
}

// multiPaths returns the paths of a multi's operations, up to the first of an
// unknown kind.
func (d *Decoder) multiPaths() (paths []string) {
	for !d.bad {
		op, done := d.Int32(), d.bool()
		d.skip(4) // error, unused in requests
		if done || d.bad {
			return paths
		}
		paths = append(paths, d.String())
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			d.Bytes()
			for range d.Int32() {
				d.skip(4)
				d.Bytes()
				d.Bytes()
				if d.bad {
					return paths
				}
			}
			d.skip(4)
			if op == OpCreateTTL {
				d.skip(8)
			}
		case OpSetData:
			d.Bytes()
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

// Decoder reads jute. After the first thing that is not there it gives zero
// values and is bad.
type Decoder struct {
	Rest []byte
	bad  bool
}

func (d *Decoder) skip(n int) []byte {
	if n < 0 || n > len(d.Rest) {
		d.bad, d.Rest = true, nil
		return nil
	}
	b := d.Rest[:n]
	d.Rest = d.Rest[n:]
	return b
}

// Int32 takes a number.
func (d *Decoder) Int32() int32 {
	if b := d.skip(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 takes a long number.
func (d *Decoder) Int64() int64 {
	if b := d.skip(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *Decoder) bool() bool {
	b := d.skip(1)
	return len(b) == 1 && b[0] != 0
}

// Bytes takes a piece that has its length before it.
func (d *Decoder) Bytes() []byte { return d.skip(int(max(d.Int32(), 0))) }

// String is Bytes as a string.
func (d *Decoder) String() string { return string(d.Bytes()) }
