// Package cli is the command line of zkcoord, which coorddemo is another name
// of. A verb is one file: a struct with its options, a Run method, and its
// entry in the struct of verbs. Run returns nil for success, and otherwise an
// error made by exitWith or usageError, which says what the process exits with.
//
// A verb that runs a command (lock, elect, doublebarrier, queue receive) is a
// task: how to acquire what the command runs under, and how to end that. The
// wait, the guard and the exit status are the job's, which all of them share
// (run.go).
package cli
