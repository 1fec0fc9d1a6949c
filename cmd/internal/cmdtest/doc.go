// Package cmdtest is for the tests of the command: it starts the program as
// people have it, reads what it writes, and makes what its verbs look at.
package cmdtest
