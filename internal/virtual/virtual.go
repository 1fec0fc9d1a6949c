// Package virtual runs tests in virtual time. It links the standard library
// alone, so all packages' tests can use it, and little is compiled for them.
package virtual

import (
	"testing"
	"testing/synctest"
)

// Test runs f in a testing/synctest bubble.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer onOneProcessor()()
	synctest.Test(t, f)
}
