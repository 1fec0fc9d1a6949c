// Package contract holds the proof that the embedded server behaves as a real
// ZooKeeper server does: a suite of promises that runs unchanged against both,
// and a differential test that sends both the same random operations and
// compares everything that comes back. Besides the tests it has the generator
// of these operations, which the embedded server's fuzz test uses, too.
//
// The random operations cover every operation code, three sessions with
// reconnects and restarts, bad paths, versions, flags and ACLs. Left out is
// only what no client does and a real server of release 3.8.0 gets wrong: a
// check outside a multi that succeeds (never answered), checkWatches (answered
// for other connections' watches too; the suite has its sound part), a create
// with TTL flags but no time to live inside a multi, and paths outside the
// basic plane in setWatches. The order of children, of the identities that the
// scheme auth stands for, and of the deletions when a session ends is a hash
// table's on a real server and is not compared.
//
// The differential test takes its length and its seed from the environment:
//
//	CONTRACT_OPS=20000 CONTRACT_SEED=42 go test ./zkembed/internal/contract -run Random
package contract
