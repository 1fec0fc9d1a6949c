// Package cli is the command line of zkcoord, which coorddemo is another name of. A verb is one file: a struct with its
// options, a Run method, and its entry in the struct of verbs. Run returns nil for success, and otherwise an error made by exitWith or usageError, which
// says what the process exits with.
package cli
