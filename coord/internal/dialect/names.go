// Package dialect holds what this module knows of other recipes' layouts: how
// Curator, Kazoo and described recipes name their nodes, which kinds of claims
// there are, and how one claim asks another to give up.
package dialect

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Dialect is a family of recipes, by the layout of its nodes.
type Dialect string

// The dialects.
const (
	Curator Dialect = "curator"
	Kazoo   Dialect = "kazoo"
	// Unknown is of contenders that neither dialect reads; see [ParseUnknown].
	Unknown Dialect = "unknown"
)

// The kinds of claims that both dialects have.
const (
	Lock  = "lock"  // mutex
	Read  = "read"  // shared side of a read/write lock
	Write = "write" // exclusive side of a read/write lock
	Latch = "latch" // leader election
	Lease = "lease" // of a semaphore
)

var wellKnown = []string{Lock, Read, Write, Latch, Lease}

// Name is what the name of a claim's node says.
type Name struct {
	Name     string // the whole
	GUID     string
	Kind     string
	Sequence int32
	Dialect  Dialect
}

// Replaceable reports whether a contender that is gone may stand in the line
// under another name: a writer that was downgraded has left a reader in its
// place. Kazoo's names do not distinguish a writer from a mutex, so there it
// may be one wherever readers take part.
func Replaceable(d Dialect, kind string, readers bool) bool {
	return kind == Write || d == Kazoo && readers
}

// NotAlphanumeric reports whether a character cannot be in a kind.
func NotAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// marker is what stands between the GUID and the sequence number.
func (d Dialect) marker(k string) string {
	if d == Kazoo {
		switch k {
		case Read:
			return "__rlock__"
		case Lock, Write, Latch:
			// Kazoo's Election is its Lock, and so is its WriteLock.
			return "__lock__"
		}
		return "__" + k + "__"
	}
	switch k {
	case Read:
		return "__READ__"
	case Write:
		return "__WRIT__"
	}
	return k + "-"
}

// Prefix returns the name of a claim's node without its sequence number.
func Prefix(d Dialect, guid, kind string) string {
	if d == Kazoo {
		return guid + d.marker(kind)
	}
	return "_c_" + guid + "-" + d.marker(kind)
}

// GUID makes a random identifier in the dialect's form: the 32 hexadecimal
// digits of a UUID, for Curator with its dashes. The version is 8, for what its
// maker defines (RFC 9562). Curator and Kazoo use 4, and look at none.
func GUID(d Dialect) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	if d == Kazoo {
		return s
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// IsOurs reports whether a GUID is of the version that [GUID] makes.
func IsOurs(guid string) bool {
	digits := strings.ReplaceAll(guid, "-", "")
	return len(digits) == 32 && digits[12] == '8'
}

// parse reads names of these kinds, and of the well-known ones.
func parse(name string, kinds []string) (Name, bool) {
	if guid, rest, ok := curatorGUID(name); ok {
		return parseRest(Curator, name, guid, rest, kinds)
	}
	if len(name) > 32 && isHex(name[:32], false) {
		return parseRest(Kazoo, name, name[:32], name[32:], kinds)
	}
	return Name{}, false
}

// Parse reads a node's name in either dialect: of one of these kinds, if it can
// be read so, or of any. It does not know names of other shapes.
func Parse(name string, kinds []string) (Name, bool) {
	c, known := parse(name, kinds)
	if !known {
		kind := strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_")
		kind = kind[strings.LastIndexFunc(kind, NotAlphanumeric)+1:]
		c, known = parse(name, []string{kind})
	}
	return c, known
}

// ParseUnknown reads the name of a contender of an unknown recipe: one that
// Parse does not know, and that ends in the ten digits of a sequence number,
// which most recipes order their contenders by. A listing does not say whether
// a node belongs to a session, so a name decides alone. A bare GUID, which may
// end in digits, is no contender's. The name has no GUID and no kind.
func ParseUnknown(name string) (Name, bool) {
	at := len(name) - 10
	if at < 0 || strings.Trim(name[at:], "0123456789") != "" || isGUID(strings.TrimPrefix(name, "_c_")) {
		return Name{}, false
	}
	digits := name[at:]
	if before := name[:at]; before == "-" || strings.HasSuffix(before, "--") || strings.HasSuffix(before, "_-") {
		digits = "-" + digits // of a counter that has wrapped
	}
	seq, ok := parseSequence(digits)
	return Name{Name: name, Sequence: seq, Dialect: Unknown}, ok
}

// isGUID reports whether a name is a GUID, in either dialect's form.
func isGUID(name string) bool {
	if len(name) == 36 && name[8] == '-' && name[13] == '-' && name[18] == '-' && name[23] == '-' {
		name = name[:8] + name[9:13] + name[14:18] + name[19:23] + name[24:]
	}
	return len(name) == 32 && isHex(name, false)
}

// curatorGUID splits "_c_<guid>-<rest>". Curator writes a dashed UUID,
// go-zookeeper 32 bare digits.
func curatorGUID(name string) (guid, rest string, ok bool) {
	body, ok := strings.CutPrefix(name, "_c_")
	if !ok {
		return "", "", false
	}
	for _, n := range []int{36, 32} {
		if len(body) > n && body[n] == '-' && isHex(body[:n], true) {
			return body[:n], body[n+1:], true
		}
	}
	return "", "", false
}

func parseRest(d Dialect, name, guid, rest string, kinds []string) (Name, bool) {
	for _, known := range [][]string{kinds, wellKnown} {
		for _, k := range known {
			digits, ok := strings.CutPrefix(rest, d.marker(k))
			if !ok {
				continue
			}
			if seq, ok := parseSequence(digits); ok {
				return Name{Name: name, GUID: guid, Kind: k, Sequence: seq, Dialect: d}, true
			}
		}
	}
	return Name{}, false
}

// parseSequence reads what a server appends: %010d of a signed 32-bit counter,
// which wraps after 2147483647 to -2147483648.
func parseSequence(digits string) (int32, bool) {
	if len(digits) < 10 || len(digits) > 11 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// hexDigits has what a GUID is made of, apart from dashes. A table is several
// times as fast as comparisons, whose outcome no processor foresees.
var hexDigits = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true,
	'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true,
}

// isHex reports whether s is made of hexadecimal digits, and dashes if they may
// be in it.
func isHex(s string, dashes bool) bool {
	for i := range len(s) {
		if !hexDigits[s[i]] && (!dashes || s[i] != '-') {
			return false
		}
	}
	return strings.Trim(s, "-") != ""
}

// The requests to give up a hold, which other programs write into its node.
const (
	revokeCurator = "__REVOKE__" // Curator
	revokePlain   = "unlock"     // ZooKeeper's recipe page
)

// Request returns the data that ask a claim of the dialect to give up, or nil
// if none is asked. The request stands in front of the claim's own data, or
// alone if there are none or they are large.
func Request(d Dialect, own []byte) []byte {
	request := revokeCurator
	switch {
	case d == Kazoo:
		request = revokePlain
	case d.IsDescribed():
		request = describe(d).Revoke
	}
	if request == "" {
		return nil
	}
	if len(own) == 0 || len(own) > mostKept {
		return []byte(request)
	}
	return slices.Concat([]byte(request), []byte("\n"), own)
}

// mostKept is the size up to which data are kept behind a request: the node
// must stay smaller than the largest packet.
const mostKept = 1 << 19

// RequestTo is [Request] to the claim of a name. It is nil for the claim of an
// unknown recipe, unless the dialect is a described one. Claims on the items of
// a queue have the items' names, which end as those of contenders do.
func RequestTo(d Dialect, name string, own []byte) []byte {
	if _, known := Parse(name, nil); !known && !d.IsDescribed() && !item.MatchString(name) {
		if _, unknown := ParseUnknown(name); unknown {
			return nil
		}
	}
	return Request(d, own)
}

// item is the name of a queue's item, as Kazoo's LockingQueue makes it.
var item = regexp.MustCompile(`^entry-[0-9]{3}-[0-9]{10}$`)

// IsRequest reports whether data are a request of either dialect: the request
// alone, as other programs write it, or as the first line, before the data that
// the claim had.
func IsRequest(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line) == revokeCurator || string(line) == revokePlain
}

// Asks reports whether data ask a claim of a line of this dialect to give up.
func Asks(d Dialect, data []byte) bool {
	if !d.IsDescribed() {
		return IsRequest(data)
	}
	request := describe(d).Revoke
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return request != "" && (string(line) == request || string(data) == request)
}

// Kept returns what stands behind a request to give up in a line of this
// dialect, or the data as they are where there is none. Nil: the request took
// their place.
func Kept(d Dialect, data []byte) []byte {
	if Asks(d, data) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// underLine begins the last line of the data of a claim that was made under
// holds. It has the names of their nodes, the outermost first, between slashes,
// which no name contains. Curator and Kazoo do not read the data of claims.
const underLine = "\nCOORD_HELD="

// Under adds the names of the nodes of holds to the data of a claim.
func Under(data []byte, nodes []string) []byte {
	if len(nodes) == 0 {
		return data
	}
	return slices.Concat(data, []byte(underLine), []byte(strings.Join(nodes, "/")))
}

// noteLine begins each of the lines that [Note] adds. It looks like no variable
// of an environment, which data may be.
const noteLine = "\nCOORD-"

// Note adds a line to a node's data, which [Own] leaves out.
func Note(data []byte, key, value string) []byte {
	return slices.Concat(data, []byte(noteLine), []byte(key), []byte("="), []byte(value))
}

// Noted returns what the line of a key says.
func Noted(data []byte, key string) (value string, found bool) {
	_, line, found := bytes.Cut(data, []byte(noteLine+key+"="))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return string(line), found
}

// Split takes the lines that this module has added from data, and returns the
// names that Under has added.
func Split(data []byte) (own []byte, under []string) {
	own, _, _ = bytes.Cut(data, []byte(noteLine))
	own, line, found := bytes.Cut(own, []byte(underLine))
	if found {
		under = strings.Split(string(line), "/")
	}
	return own, under
}

// Own returns the data that a claim was made with, also where they stand behind
// a request to give up. Nil: the request took their place.
func Own(data []byte) []byte {
	own, _ := Split(Kept("", data))
	return own
}

// NamesOwner reports whether data begin with an identity, "name host pid", as
// claims of this module do. Curator obeys only a bare request. Its revocable
// locks have no data, its other nodes an address, so neither looks like an
// identity. Kazoo obeys none.
func NamesOwner(data []byte) bool {
	line, _, _ := strings.Cut(string(data), "\n")
	words := strings.Split(line, " ")
	_, err := strconv.ParseUint(words[len(words)-1], 10, 32)
	return len(words) >= 3 && err == nil
}

// Notice returns the path of the node into which requests to a claim are
// written: its own node, except for the leader of an election in Curator's
// dialect, whose notice has the node's name without the number.
func Notice(node string) string {
	self, _ := Parse(node[strings.LastIndexByte(node, '/')+1:], nil)
	if self.Kind != Latch || self.Dialect != Curator {
		return node
	}
	marker := Curator.marker(Latch)
	return node[:strings.LastIndex(node, marker)+len(marker)]
}

// InOrder returns the names by the numbers that they end with: in the order of
// their ages, but for nodes of one number and for sequences that have wrapped.
// It sorts numbers, since names and what [Parse] makes of them are large.
func InOrder(names []string) []string {
	if len(names) < 2 {
		return names
	}
	ages := make([]uint64, len(names)) // the last digits, and the place among names
	for i, name := range names {
		ages[i] = lastDigits(name)<<32 | uint64(i)
	}
	slices.Sort(ages)
	sorted := make([]string, len(names))
	for i, age := range ages {
		sorted[i] = names[uint32(age)]
	}
	return sorted
}

// lastDigits is the number that the last ten bytes of a name make, should they
// be digits.
func lastDigits(name string) (n uint64) {
	for _, c := range []byte(name[max(0, len(name)-10):]) {
		n = n*10 + uint64(c-'0')
	}
	return n
}
