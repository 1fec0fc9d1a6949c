// Package run has the verbs that run a command under a recipe, or wait for one:
// lock, elect, barrier, doublebarrier and queue.
//
// A verb that runs a command is a task: how to acquire what the command runs
// under, and how to end that. The wait, the guard and the exit status are the
// job's, which all of them share.
package run
