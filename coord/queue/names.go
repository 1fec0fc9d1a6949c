package queue

import (
	"strconv"

	"github.com/zkcoord/zkcoord/coord"
)

// An entry's name is Kazoo's: entry-PPP-NNNNNNNNNN, the priority and the
// server's sequence number. The names' order is the items'.
const (
	prefix     = "entry-"
	dash       = len("entry-000")
	nameLength = len("entry-000-0000000000")
)

// sequenceLimit is where items are refused: before the server's counter
// sticks, or turns negative and leaves the shape of the names.
const sequenceLimit = 1<<31 - 1<<16

func isEntry(name string) bool {
	if len(name) != nameLength || name[:len(prefix)] != prefix || name[dash] != '-' {
		return false
	}
	for i := len(prefix); i < len(name); i++ {
		if i != dash && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return true
}

func priority(name string) int {
	p, _ := strconv.Atoi(name[len(prefix):dash])
	return p
}

func sequence(name string) int {
	n, _ := strconv.Atoi(name[dash+1:])
	return n
}

// entry is an item's node as it was read.
type entry struct {
	name string
	data []byte
	stat coord.Stat
}
