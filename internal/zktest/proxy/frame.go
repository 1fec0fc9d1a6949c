package proxy

import (
	"slices"

	"github.com/zkcoord/zkcoord/internal/jute"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Opcodes of ZooKeeper's client protocol that tests aim at or whose packets are
// not like the others.
const (
	OpNotification    = int32(zkembed.OpNotify) // replies only: an event of a watch
	OpCreate          = int32(zkembed.OpCreate)
	OpDelete          = int32(zkembed.OpDelete)
	OpExists          = int32(zkembed.OpExists)
	OpGetData         = int32(zkembed.OpGetData)
	OpSetData         = int32(zkembed.OpSetData)
	OpGetChildren     = int32(zkembed.OpGetChildren)
	OpPing            = int32(zkembed.OpPing)
	OpGetChildren2    = int32(zkembed.OpGetChildren2)
	OpCheck           = int32(zkembed.OpCheck)
	OpMulti           = int32(zkembed.OpMulti)
	OpCreate2         = int32(zkembed.OpCreate2)
	OpCreateContainer = int32(zkembed.OpCreateContainer)
	OpCreateTTL       = int32(zkembed.OpCreateTTL)
	OpMultiRead       = int32(zkembed.OpMultiRead)
	OpAuth            = int32(zkembed.OpAuth)
	OpSetWatches      = int32(zkembed.OpSetWatches)
	OpSetWatches2     = int32(zkembed.OpSetWatches2)
	OpCloseSession    = int32(zkembed.OpCloseSession)

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
	d := jute.Decoder{Rest: body}
	f := &Frame{Xid: d.Int32(), Op: d.Int32(), Body: body}
	switch f.Op {
	case OpPing, OpAuth, OpCloseSession:
	case OpMulti, OpMultiRead:
		f.Paths = multiPaths(&d)
	case OpSetWatches, OpSetWatches2:
		d.Take(8) // the client's last zxid
		for len(d.Rest) > 0 {
			for n := d.Int32(); n > 0 && d.Err == nil; n-- {
				f.Paths = append(f.Paths, path(&d))
			}
		}
	default:
		f.Paths = []string{path(&d)}
	}
	return f
}

// path reads a path as it was sent, whatever its bytes are.
func path(d *jute.Decoder) string { return string(d.Buffer()) }

// parseReply reads a reply's header; the caller knows which request it answers.
func parseReply(body []byte) *Frame {
	d := jute.Decoder{Rest: body}
	f := &Frame{Reply: true, Xid: d.Int32(), Zxid: d.Int64(), Err: d.Int32(), Body: body}
	if f.Xid == xidNotification {
		d.Take(8) // type and state
		f.Paths = []string{path(&d)}
	}
	return f
}

// multiPaths returns the paths of a multi's operations, up to the first of an
// unknown kind.
func multiPaths(d *jute.Decoder) (paths []string) {
	for d.Err == nil {
		op, done := d.Int32(), d.Bool()
		d.Take(4) // error, unused in requests
		if done || d.Err != nil {
			return paths
		}
		paths = append(paths, path(d))
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			d.Buffer()
			for n := d.Int32(); n > 0 && d.Err == nil; n-- { // ACLs
				d.Take(4)
				d.Buffer()
				d.Buffer()
			}
			d.Take(4)
			if op == OpCreateTTL {
				d.Take(8)
			}
		case OpSetData:
			d.Buffer()
			d.Take(4)
		case OpDelete, OpCheck:
			d.Take(4)
		case OpGetData, OpGetChildren:
			d.Take(1)
		default:
			return paths
		}
	}
	return paths
}
