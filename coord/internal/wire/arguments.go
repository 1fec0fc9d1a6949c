package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
)

// CheckPath applies the server's rules, to report a mistake before anything is
// sent.
func CheckPath(path string) error {
	switch {
	case path == "":
		return Invalid("the path is empty")
	case path[0] != '/':
		return Invalid("path %q must start with /", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return Invalid("path %q must not end with /", path)
	case !utf8.ValidString(path):
		return Invalid("path %q is not UTF-8", path)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// CheckPlace applies [CheckPath] to the path of a recipe, or a chroot. It also
// refuses the root and the servers' own nodes.
func CheckPlace(path string) error {
	err := CheckPath(path)
	switch {
	case err != nil:
		return err
	case path == "/":
		return Invalid("the root cannot be used; name a path below it")
	case strings.HasPrefix(path+"/", "/zookeeper/"):
		return Invalid(
			"%s cannot be used: the servers keep nodes of their own at /zookeeper and below; name another path", path)
	}
	return nil
}

// CheckName checks one segment of a path.
func CheckName(name string) error {
	switch {
	case name == "":
		return Invalid("a name is empty")
	case name == "." || name == "..":
		return Invalid("the name %q is not allowed", name)
	case strings.Contains(name, "/"):
		return Invalid("the name %q contains /", name)
	}
	for _, r := range name {
		// The servers see each half of a character beyond U+FFFF, a surrogate.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return Invalid("the name %q contains the character %U, which ZooKeeper does not allow", name, r)
		}
	}
	return nil
}

// permissions are the letters of an ACL in the order of the bits they stand
// for.
const permissions = "rwcda"

// ParseACL reads an entry as ZooKeeper's own tools write it:
// "scheme:id:permissions".
func ParseACL(entry string) (zk.ACL, error) {
	scheme, rest, _ := strings.Cut(entry, ":")
	at := strings.LastIndexByte(rest, ':')
	if scheme == "" || at < 0 {
		return zk.ACL{}, Invalid("ACL %q: write scheme:id:permissions, such as world:anyone:cdrwa", entry)
	}
	acl := zk.ACL{Scheme: scheme, ID: rest[:at]}
	for _, letter := range rest[at+1:] {
		bit := strings.IndexRune(permissions, letter)
		if bit < 0 {
			return zk.ACL{}, Invalid("ACL %q: the permissions are letters out of cdrwa", entry)
		}
		acl.Perms |= 1 << bit
	}
	return acl, nil
}
