package zkembed

import (
	"encoding/binary"

	"github.com/zkcoord/zkcoord/internal/jute"
)

// decoder reads what a client sends.
type decoder struct{ jute.Decoder }

func decode(b []byte) *decoder { return &decoder{jute.Decoder{Rest: b}} }

// encoder appends Jute's binary form: big-endian numbers, length-prefixed
// strings and vectors.
type encoder []byte

func (e encoder) int(v int32) encoder  { return binary.BigEndian.AppendUint32(e, uint32(v)) }
func (e encoder) long(v int64) encoder { return binary.BigEndian.AppendUint64(e, uint64(v)) }

func (e encoder) bool(v bool) encoder {
	if v {
		return append(e, 1)
	}
	return append(e, 0)
}

// buffer writes nil as length -1: ZooKeeper distinguishes "no data" from "empty
// data".
func (e encoder) buffer(v []byte) encoder {
	if v == nil {
		return e.int(-1)
	}
	return append(e.int(int32(len(v))), v...)
}

func (e encoder) string(v string) encoder {
	if v == jute.Null {
		return e.int(-1)
	}
	return append(e.int(int32(len(v))), v...)
}

func (e encoder) strings(v []string) encoder {
	e = e.int(int32(len(v)))
	for _, s := range v {
		e = e.string(s)
	}
	return e
}
