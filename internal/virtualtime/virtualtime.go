// Package virtualtime runs tests in virtual time.
package virtualtime

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
