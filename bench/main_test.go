package bench

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/peers"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var (
	document    = flag.String("document", "", "measure, and write the report into this file")
	repetitions = flag.Int("repetitions", 3, "of each measurement")
	during      = flag.Duration("during", 500*time.Millisecond, "of each measurement")
	atSites     = flag.String("sites", "*", "pattern of the sites' names, such as one*")
	ofRows      = flag.String("rows", "*", "pattern of the rows' names, such as handoff")
)

func TestMain(m *testing.M) {
	peers.Register()
	zktest.RegisterChild(childName, childMain)
	zktest.Main(m)
}

// TestFigures is the run that make bench asks for.
func TestFigures(t *testing.T) {
	if *document == "" {
		t.Skip("left out: this measures, for minutes; see make bench")
	}
	cells := run(t, plan{*repetitions, *during, *atSites, *ofRows})
	require.NoError(t, write(*document, cells))
}
