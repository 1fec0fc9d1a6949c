// Package crew starts, listens to, kills and ends the processes of a
// demonstration.
//
// The parent keeps a [Crew]. Each process has a pipe for its standard input,
// which is its lifeline: when the parent closes it, or dies, the process ends
// ([Orders]). It sends the parent JSON values on its standard output ([Tell]).
// The parent reads that to its end also when the process is killed: no message
// that was sent is lost.
//
// Each process has a process group of its own: a key typed at the terminal
// reaches the parent alone, which ends the others in good order.
package crew
