package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// measured reads, of the first table below a heading of docs/benchmarks.md, the
// numbers of a column by contender, without the ratios.
func measured(t *testing.T, heading, column string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/benchmarks.md")
	require.NoError(t, err)
	_, below, found := strings.Cut(string(text), "### "+heading+"\n")
	require.True(t, found, heading)
	at, figures := 0, map[string]string{}
	for line := range strings.Lines(below) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " *`")
		}
		switch {
		case at == 0 && len(cells) > 1:
			for i, cell := range cells {
				if cell == column {
					at = i
				}
			}
			require.Positive(t, at, column)
		case at > 0 && len(cells) == 1:
			return figures
		case at > 0:
			figures[cells[0]], _, _ = strings.Cut(cells[at], " ")
		}
	}
	return figures
}

func TestTheFiguresOfTheComparisonAreThoseOfTheBenchmarks(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	peers := []string{"zkcoord", "Curator", "Kazoo", "zk.Lock", "etcd"}
	cycle := measured(t, "Uncontended acquire and release: one server, loopback", "median, µs")
	for row, figures := range map[string]map[string]string{
		"acquire and release, one server, µs":           cycle,
		"hand-offs per second, 32 sessions, one server": measured(t, "Hand-offs among N sessions: one server, loopback", "N = 32: per second"),
		"hand-offs per second, 32 sessions, ensemble":   measured(t, "Hand-offs among N sessions: ensemble of three, loopback", "N = 32: per second"),
	} {
		want := "| " + row
		for _, peer := range peers {
			want += " | " + figures[peer]
		}
		require.Contains(t, string(text), want+" |\n")
	}
	require.Contains(t, string(text), "faster ("+cycle["Redis (weaker)"]+" µs)")
}
