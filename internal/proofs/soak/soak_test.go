package soak

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.RegisterChild(childName, childMain)
	zktest.Main(m)
}

// TestSoak is short among the ordinary tests; make soak runs it for longer.
func TestSoak(t *testing.T) {
	opts, err := fromEnvironment()
	require.NoError(t, err)
	Run(t, opts)
}
