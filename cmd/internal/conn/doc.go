// Package conn makes a client from the flags that every verb has, and asks the
// servers what only their four-letter commands answer.
package conn
