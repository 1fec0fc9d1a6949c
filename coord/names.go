package coord

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Dialect is a family of recipes whose node names and data this package writes
// and understands, so that programs in several languages can share a path. One
// directory has one dialect: no single node name is right for both.
type Dialect string

const (
	// Curator is the layout of Apache Curator's recipes, which go-zookeeper's
	// own Lock can read as well. The default.
	Curator Dialect = "curator"
	// Kazoo is the layout of Python's Kazoo.
	Kazoo Dialect = "kazoo"
)

// The kinds of the recipes in this module that both dialects have. A kind is
// the part of a claim's node name that tells what it claims; kinds of your own
// are letters and digits.
const (
	kindLock  = "lock"  // mutex
	kindRead  = "read"  // shared side of a read/write lock
	kindWrite = "write" // exclusive side of a read/write lock
	kindLatch = "latch" // leader election
	kindLease = "lease" // of a semaphore
)

var wellKnown = []string{kindLock, kindRead, kindWrite, kindLatch, kindLease}

// marker is what stands between the GUID and the sequence number.
func (d Dialect) marker(k string) string {
	if d == Kazoo {
		switch k {
		case kindRead:
			return "__rlock__"
		case kindLock, kindWrite, kindLatch:
			// Kazoo's Election is its Lock, and so is its WriteLock.
			return "__lock__"
		}
		return "__" + k + "__"
	}
	switch k {
	case kindRead:
		return "__READ__"
	case kindWrite:
		return "__WRIT__"
	}
	return k + "-"
}

// prefix is a claim's node name without its sequence number.
func (d Dialect) prefix(guid, k string) string {
	if d == Kazoo {
		return guid + d.marker(k)
	}
	return "_c_" + guid + "-" + d.marker(k)
}

// newGUID makes a random identifier in the dialect's form: 32 hexadecimal
// digits, in Curator's case with the dashes of a version 4 UUID.
func (d Dialect) newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	if d == Kazoo {
		return hex.EncodeToString(b[:])
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Contender is a claim as its node's name describes it.
type Contender struct {
	Name     string // of the node
	GUID     string
	Kind     string
	Sequence int32
	Dialect  Dialect
}

// parseName reads a node's name in either dialect. Names of no known shape are
// ignored.
func parseName(name string, kinds []string) (Contender, bool) {
	if guid, rest, ok := curatorGUID(name); ok {
		return parseRest(Curator, name, guid, rest, kinds)
	}
	if len(name) > 32 && isHex(name[:32], false) {
		return parseRest(Kazoo, name, name[:32], name[32:], kinds)
	}
	return Contender{}, false
}

// parseOf is [parseName], and reads names of every kind if none is given.
func parseOf(name string, kinds []string) (Contender, bool) {
	c, known := parseName(name, kinds)
	if !known && len(kinds) == 0 {
		kind := strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_")
		kind = kind[strings.LastIndexFunc(kind, notAlphanumeric)+1:]
		c, known = parseName(name, []string{kind})
	}
	return c, known
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

func parseRest(d Dialect, name, guid, rest string, kinds []string) (Contender, bool) {
	for _, known := range [][]string{kinds, wellKnown} {
		for _, k := range known {
			digits, ok := strings.CutPrefix(rest, d.marker(k))
			if !ok {
				continue
			}
			if seq, ok := parseSequence(digits); ok {
				return Contender{Name: name, GUID: guid, Kind: k, Sequence: seq, Dialect: d}, true
			}
		}
	}
	return Contender{}, false
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

// parseServers reads "host:port,host:port/chroot". The port defaults to 2181,
// the chroot to none ("").
func parseServers(s string) (servers []string, chroot string, err error) {
	list := strings.TrimSpace(s)
	if at := strings.IndexByte(list, '/'); at >= 0 {
		list, chroot = list[:at], list[at:]
		if chroot == "/" {
			chroot = ""
		} else if err := checkPath(chroot); err != nil {
			return nil, "", fmt.Errorf("chroot of %q: %w", s, err)
		}
	}
	for _, server := range strings.Split(list, ",") {
		server, err := parseServer(strings.TrimSpace(server))
		if err != nil {
			return nil, "", fmt.Errorf("server list %q: %w", s, err)
		}
		servers = append(servers, server)
	}
	return servers, chroot, nil
}

const defaultPort = "2181"

func parseServer(s string) (string, error) {
	if s == "" {
		return "", invalid("a server is empty; write host:port,host:port/chroot")
	}
	if strings.ContainsAny(s, " \t;") {
		return "", invalid("%q is not one server: servers are separated by commas, as in host:port,host:port", s)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
			return "", invalid("%q: put an IPv6 address in brackets, as in [::1]:2181", s)
		}
		host, port = strings.Trim(s, "[]"), defaultPort
		if strings.Contains(s, ":") && !strings.HasPrefix(s, "[") {
			return "", invalid("%q is not host:port", s)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", invalid("%q: the port must be a number from 1 to 65535", s)
	}
	if host == "" || strings.ContainsAny(host, "\"'@") {
		return "", invalid("%q has no usable host name; write host:port", s)
	}
	return net.JoinHostPort(host, port), nil
}

// checkPath applies the server's rules, so that a mistake is reported before
// anything is sent.
func checkPath(path string) error {
	switch {
	case path == "":
		return invalid("the path is empty")
	case path[0] != '/':
		return invalid("path %q must start with /", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return invalid("path %q must not end with /", path)
	case !utf8.ValidString(path):
		return invalid("path %q is not UTF-8", path)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if err := checkName(name); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// checkName checks one segment of a path.
func checkName(name string) error {
	switch {
	case name == "":
		return invalid("a name is empty")
	case name == "." || name == "..":
		return invalid("the name %q is not allowed", name)
	case strings.Contains(name, "/"):
		return invalid("the name %q contains /", name)
	}
	for _, r := range name {
		// The servers see each half of a character beyond U+FFFF, a surrogate.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return invalid("the name %q contains the character %U, which ZooKeeper does not allow", name, r)
		}
	}
	return nil
}
