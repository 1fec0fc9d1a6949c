// Package zkembed is an in-process server that speaks the ZooKeeper client
// protocol, for development, demonstrations and tests.
//
// It keeps everything in memory, is one node, and forgets everything when it
// is closed. Do not keep anything in it that you need: for that there is
// Apache ZooKeeper, and the same client code runs against both.
package zkembed
