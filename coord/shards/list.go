package shards

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord"
)

const (
	maxName   = 200     // bytes of a key, as it is written in a node's name
	maxRanges = 100_000 // ranges of a hash
	maxWeight = 1_000_000
)

// list is a list of keys, sorted. A newer list has a higher version.
type list struct {
	keys    []string
	ranges  int
	version int64 // 0: what the first member came with; nobody has set it
}

// known reports whether there is a list at all.
func (l list) known() bool { return l.keys != nil }

// newList checks keys.
func newList(keys []string) (list, error) {
	sorted := slices.Sorted(slices.Values(keys))
	if len(sorted) == 0 {
		return list{}, fmt.Errorf("%w: the list of keys is empty; name at least one key", coord.ErrInvalid)
	}
	for i, key := range sorted {
		if i > 0 && key == sorted[i-1] {
			return list{}, fmt.Errorf("%w: the list has the key %.40q twice", coord.ErrInvalid, key)
		}
		if n := len(nodeName(key)); n == 0 || n > maxName || !utf8.ValidString(key) {
			return list{}, fmt.Errorf(
				"%w: key %.40q: it must have 1 to %d bytes of UTF-8, %%-escapes counted as in a URL, not %d",
				coord.ErrInvalid, key, maxName, n)
		}
	}
	return list{keys: sorted}, nil
}

// newRanges makes a list of n ranges.
func newRanges(n int) (list, error) {
	if n < 1 || n > maxRanges {
		return list{}, fmt.Errorf("%w: %d ranges: it must be between 1 and %d", coord.ErrInvalid, n, maxRanges)
	}
	return list{keys: ranges(n), ranges: n}, nil
}

// hash identifies a list.
func (l list) hash() string {
	if l.keys == nil {
		return ""
	}
	sum := sha256.New()
	for _, key := range l.keys {
		fmt.Fprintf(sum, "%d %s", len(key), key)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// differs says how two lists differ.
func (l list) differs(other list) string {
	only := func(a, b list) string {
		rest := slices.DeleteFunc(slices.Clone(a.keys), func(key string) bool {
			_, found := slices.BinarySearch(b.keys, key)
			return found
		})
		if len(rest) == 0 {
			return "none"
		}
		return fmt.Sprintf("%d, such as %q", len(rest), rest[0])
	}
	return fmt.Sprintf("of %d keys here and %d there, only here: %s; only there: %s", len(l.keys), len(other.keys),
		only(l, other), only(other, l))
}

// nodeName is the name of the node of a key's lock.
func nodeName(key string) string {
	name := url.PathEscape(key)
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return name
}

const rangePrefix = "range-"

// ranges are the keys of n ranges, in order.
func ranges(n int) []string {
	keys, digits := make([]string, n), len(strconv.Itoa(n-1))
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%0*d", rangePrefix, digits, i)
	}
	return keys
}

// RangeOf returns the key to which an item belongs, such as a customer's id,
// where the keys are n [Ranges]: the range of the first 64 bits of its SHA-256
// hash. It panics if n is not positive.
func RangeOf(item string, n int) string {
	if n < 1 {
		panic(fmt.Sprintf("shards: %d ranges", n))
	}
	sum := sha256.Sum256([]byte(item))
	at, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(n))
	return fmt.Sprintf("%s%0*d", rangePrefix, len(strconv.Itoa(n-1)), at)
}
