// Package crew is what the demonstrations have in common: real processes that
// are started, heard, killed and seen out.
//
// The parent keeps a [Crew]. Each process has a pipe for its standard input,
// which is its lifeline: when the parent closes it, or dies, the process ends
// ([UntilEOF]). It tells the parent what happens in JSON values on its standard
// output ([Tell]), which is read to its end though the process is killed: what
// was told has been heard.
//
// Each process has a process group of its own, so that a key typed at the
// terminal reaches the parent alone, which ends the others in good order.
package crew
