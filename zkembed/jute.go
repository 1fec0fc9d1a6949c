package zkembed

import (
	"encoding/binary"
	"errors"
	"strings"
)

// errShort is a decoder's error for a body that ends too early or has an
// impossible length: a malformed packet.
var errShort = errors.New("zkembed: malformed packet")

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
	if v == null {
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

// decoder reads Jute's binary form. Its first error sticks, and everything read
// after it is zero, so callers check once at the end. Lengths are held against
// what is really there before anything is allocated.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() { d.b, d.err = nil, errShort }

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int32 {
	if v := d.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (d *decoder) long() int64 {
	if v := d.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (d *decoder) bool() bool {
	v := d.take(1)
	return v != nil && v[0] != 0
}

// buffer returns a copy, or nil for length -1.
func (d *decoder) buffer() []byte {
	n := d.int()
	if n == -1 || d.err != nil {
		return nil
	}
	v := d.take(int(n))
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// null stands for a null string. It is no UTF-8, so no other string equals it.
const null = "\xff"

// string reads a string that may be [null]. Bytes that are no UTF-8 become
// U+FFFD, as they do in Java.
func (d *decoder) string() string {
	n := d.int()
	switch {
	case d.err != nil:
		return ""
	case n == -1:
		return null
	}
	return strings.ToValidUTF8(string(d.take(int(n))), "\uFFFD")
}

// refuse makes the packet malformed if a string is [null] that a real server
// stumbles over.
func (d *decoder) refuse(v string) {
	if v == null {
		d.fail()
	}
}

// strings reads a vector of strings. Every item takes at least its length, so a
// longer vector than the packet can hold is refused before it costs memory.
func (d *decoder) strings() []string {
	n := d.int()
	if n < 0 || int(n) > len(d.b)/4 {
		d.fail()
	}
	var v []string
	for ; n > 0 && d.err == nil; n-- {
		v = append(v, d.string())
	}
	return v
}

// whole reads a vector of strings, none of which may be [null].
func (d *decoder) whole() []string {
	v := d.strings()
	for _, s := range v {
		d.refuse(s)
	}
	return v
}
