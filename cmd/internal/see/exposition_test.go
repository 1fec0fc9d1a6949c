package see

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The samples of a metric stand in one group, as Prometheus wants them, and no
// path breaks the format.
func TestAScrapeIsInPrometheusFormat(t *testing.T) {
	t.Parallel()
	up, held := metric("up", "Whether.", "place"), ofRecipe("held_seconds", "How long.")
	e := newExposition()
	e.sample(up, 1, "/a")
	e.sample(held, 1.5e9, "lock", "/a")
	e.sample(up, 0, "/b\"\\\n\xff")
	require.Equal(t, `# HELP zkcoord_path_up Whether.
# TYPE zkcoord_path_up gauge
zkcoord_path_up{place="/a"} 1
zkcoord_path_up{place="/b\"\\\n`+"\ufffd"+`"} 0
# HELP zkcoord_path_held_seconds How long.
# TYPE zkcoord_path_held_seconds gauge
zkcoord_path_held_seconds{kind="lock",path="/a"} 1.5e+09
`, e.String())
}
