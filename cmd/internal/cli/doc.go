// Package cli is the command line of zkcoord, which coorddemo is another name
// of: the table of verbs, the parser, the usage, and Main. A verb is a struct
// with its options and a Run method, which returns nil for success, and
// otherwise an error made by term.ExitWith or term.UsageError, which says what
// the process exits with.
package cli
