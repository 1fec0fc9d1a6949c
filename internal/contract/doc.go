// Package contract holds the proof that the embedded server behaves as a real
// ZooKeeper server does. It has tests only: a suite of promises that runs
// unchanged against both, and a differential test that sends both the same
// random operations and compares everything that comes back.
//
// The differential test takes its length and its seed from the environment:
//
//	CONTRACT_OPS=20000 CONTRACT_SEED=42 go test ./internal/contract -run Random
package contract
