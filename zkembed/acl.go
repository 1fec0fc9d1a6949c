package zkembed

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	permRead   = 1
	permWrite  = 2
	permCreate = 4
	permDelete = 8
	permAdmin  = 16
)

var (
	openACL = []ACL{{31, "world", "anyone"}}
	readACL = []ACL{{permRead, "world", "anyone"}}
)

// identity is one identity of a connection, and ends with it. Every connection
// has its address; credentials add more.
type identity struct{ scheme, id string }

// fixACL checks an ACL that a client sent, removes duplicates, and expands the
// scheme auth to the identities of its connection. Duplicates that come from
// the expansion stay, as on a real server. ok is false for an ACL that
// ZooKeeper refuses.
func fixACL(acl []ACL, by author) (fixed []ACL, ok bool) {
	seen := make(map[ACL]struct{}, len(acl))
	for _, a := range acl {
		if _, twice := seen[a]; twice {
			continue
		}
		seen[a] = struct{}{}
		switch {
		case a.Scheme == "world" && a.ID == "anyone":
			fixed = append(fixed, a)
		case a.Scheme == "auth":
			n := len(fixed)
			for _, id := range by.ids {
				if id.scheme == "digest" || id.scheme == x509Scheme || id.scheme == saslScheme {
					fixed = append(fixed, ACL{a.Perms, id.scheme, id.id})
				}
			}
			if len(fixed) == n {
				return nil, false
			}
		case a.Scheme == "digest" && strings.Count(strings.TrimRight(a.ID, ":"), ":") == 1: // as Java splits
			fixed = append(fixed, a)
		case a.Scheme == x509Scheme && by.tls && strings.Contains(a.ID, "="): // a server without TLS knows no such scheme
			fixed = append(fixed, a)
		case a.Scheme == saslScheme && by.sasl && strings.Count(a.ID, "@") <= 1: // as a name of Kerberos
			fixed = append(fixed, a)
		case a.Scheme == "ip" && parseIP(a.ID).IsValid():
			fixed = append(fixed, a)
		default:
			return nil, false
		}
	}
	return fixed, len(fixed) > 0
}

// allowed reports whether one of the identities has one of the permissions.
func allowed(acl []ACL, ids []identity, perm int32) bool {
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == "world" {
			return true
		}
		for _, id := range ids {
			if id.scheme == a.Scheme && matches(a, id.id) {
				return true
			}
		}
	}
	return len(acl) == 0
}

func matches(a ACL, id string) bool {
	if a.Scheme != "ip" {
		return a.ID == id
	}
	addr, err := netip.ParseAddr(id)
	return err == nil && parseIP(a.ID).Contains(addr)
}

// parseIP reads an IPv4 address with or without a prefix length. ZooKeeper
// 3.8 knows no others in an ACL.
func parseIP(s string) netip.Prefix {
	host, bits, found := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return netip.Prefix{}
	}
	n := addr.BitLen()
	if found {
		if n, err = strconv.Atoi(bits); err != nil {
			return netip.Prefix{}
		}
	}
	return netip.PrefixFrom(addr, n)
}

// digest is the identity of credentials user:password.
func digest(credentials string) identity {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// hideDigests returns an ACL as a client sees it that may read but not
// administer the node.
func hideDigests(acl []ACL) []ACL {
	out := slices.Clone(acl)
	for i, a := range out {
		if user, _, ok := strings.Cut(a.ID, ":"); ok && a.Scheme == "digest" {
			out[i].ID = user + ":x"
		}
	}
	return out
}
