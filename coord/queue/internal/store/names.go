package store

import (
	"fmt"
	"strconv"
	"strings"
)

// An item's name is Kazoo's: entry-PPP-NNNNNNNNNN, the priority and the
// server's sequence number. Items are taken in the order of their names.
const (
	prefix     = "entry-"
	dash       = len("entry-000")
	nameLength = len("entry-000-0000000000")
)

// IsItem reports whether a name is an item's.
func IsItem(name string) bool {
	return len(name) == nameLength && name[:len(prefix)] == prefix && name[dash] == '-' &&
		isNumber(name[len(prefix):dash]) && isNumber(name[dash+1:])
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// Prefix is what the names of the items of a priority begin with. The server
// appends the number.
func Prefix(priority int) string { return fmt.Sprintf("%s%03d-", prefix, priority) }

// CutItem returns the item's name that a name begins with.
func CutItem(name string) string { return name[:min(len(name), nameLength)] }

// Priority of the item with this name, lower first.
func Priority(name string) int {
	p, _ := strconv.Atoi(name[len(prefix):dash])
	return p
}

// Sequence is the number in an item's name.
func Sequence(name string) int {
	n, _ := strconv.Atoi(name[dash+1:])
	return n
}
