// Package jute reads Jute's binary form, in which ZooKeeper's packets and logs
// are written, for the embedded server and for the proxy of the tests. The
// client's codec stands apart, in package wire: each is the other's judge.
package jute

import (
	"encoding/binary"
	"errors"
	"strings"
)

// ErrShort is a Decoder's error for a body that ends too early or has an
// impossible length: a malformed packet.
var ErrShort = errors.New("zkembed: malformed packet")

// Decoder reads Jute's binary form. Its first error sticks, and everything read
// after it is zero, so callers check once at the end. Lengths are held against
// what is really there before anything is allocated.
type Decoder struct {
	Rest []byte // not read yet
	Err  error
}

// Fail makes the packet malformed.
func (d *Decoder) Fail() { d.Rest, d.Err = nil, ErrShort }

// Take takes so many bytes as they are, which it does not copy.
func (d *Decoder) Take(n int) []byte {
	if n < 0 || n > len(d.Rest) {
		d.Fail()
		return nil
	}
	v := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return v
}

// Int32 reads a number.
func (d *Decoder) Int32() int32 {
	if v := d.Take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

// Int64 reads a long number.
func (d *Decoder) Int64() int64 {
	if v := d.Take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Bool reads a truth value.
func (d *Decoder) Bool() bool {
	v := d.Take(1)
	return v != nil && v[0] != 0
}

// Buffer reads bytes: a copy, or nil for length -1.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if n == -1 || d.Err != nil {
		return nil
	}
	v := d.Take(int(n))
	if d.Err != nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// Null stands for a null string. It is no UTF-8, so no other string equals it.
const Null = "\xff"

// String reads a string that may be [Null]. Bytes that are no UTF-8 become
// U+FFFD, as they do in Java.
func (d *Decoder) String() string {
	n := d.Int32()
	switch {
	case d.Err != nil:
		return ""
	case n == -1:
		return Null
	}
	return strings.ToValidUTF8(string(d.Take(int(n))), "\uFFFD")
}

// Refuse makes the packet malformed if a string is [Null] that a real server
// stumbles over.
func (d *Decoder) Refuse(v string) {
	if v == Null {
		d.Fail()
	}
}

// Strings reads a vector of strings. Every item takes at least its length, so a
// longer vector than the packet can hold is refused before it costs memory.
func (d *Decoder) Strings() []string {
	n := d.Int32()
	if n < 0 || int(n) > len(d.Rest)/4 {
		d.Fail()
	}
	var v []string
	for ; n > 0 && d.Err == nil; n-- {
		v = append(v, d.String())
	}
	return v
}

// Whole reads a vector of strings, none of which may be [Null].
func (d *Decoder) Whole() []string {
	v := d.Strings()
	for _, s := range v {
		d.Refuse(s)
	}
	return v
}
