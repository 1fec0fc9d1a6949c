// Package coordtest has what the tests of coord and of its recipes share:
// clients that end with their test, and servers in virtual time. The servers
// themselves, and the faults, are package zktest's.
package coordtest
