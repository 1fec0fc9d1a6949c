package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPassageWithinATimeInWhichTheGateWasShutIsSeen(t *testing.T) {
	var g gate
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	g.close(at(10))
	g.open(at(20))
	g.close(at(30))
	for _, fair := range [][2]int{{5, 8}, {5, 15}, {15, 25}, {5, 40}, {21, 29}, {29, 31}, {15, 35}} {
		g.pass("c1.gate.pass", at(fair[0]), at(fair[1]))
	}
	require.Empty(t, g.violations())
	g.pass("c2.gate.pass", at(11), at(19))
	g.pass("c3.gate.pass", at(31), at(1000))
	require.Len(t, g.violations(), 2)
	require.Equal(t, "c2.gate.pass", g.violations()[0].worker)
}
