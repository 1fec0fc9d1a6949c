//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAllDemosRunInTurnAndTellTogether(t *testing.T) {
	p := start(t, "demo", "all", "--json")
	zktest.Receive(t, 4*time.Minute, p.exited, "the demos do not end")
	require.Zero(t, p.exit())
	r := parse[allResult](t, p.output())
	require.True(t, r.OK)
	for _, name := range demoNames {
		var outcome struct {
			Demo string
			OK   bool
		}
		require.NoError(t, json.Unmarshal(r.Demos[name], &outcome), name)
		require.Equal(t, name, outcome.Demo)
		require.True(t, outcome.OK, name)
	}
}
