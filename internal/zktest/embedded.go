package zktest

import "testing"

func newEmbedded(t testing.TB) *World {
	t.Helper()
	t.Skip("left out: the embedded server is not there yet")
	return nil
}
