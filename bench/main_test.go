package bench

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var (
	document    = flag.String("document", "", "measure, and write the report into this file")
	repetitions = flag.Int("repetitions", 3, "of each measurement")
	during      = flag.Duration("during", 500*time.Millisecond, "of each measurement")
	atSites     = flag.String("sites", "*", "pattern of the sites' names, such as one*")
	scale       = flag.Bool("scale", false, "measure how the cost grows")
	ofRows      = flag.String("rows", "*", "pattern of the rows' names, such as handoff")
)

func TestMain(m *testing.M) {
	interop.Register()
	zktest.RegisterChild(childName, childMain)
	zktest.Main(m)
}

// TestFigures is the run that make bench asks for.
func TestFigures(t *testing.T) {
	if *document == "" {
		t.Skip("left out: this measures, for minutes; see make bench")
	}
	p := plan{*repetitions, *during, *atSites, *ofRows, rows}
	if *scale {
		p.table = scaleRows
	}
	cells := run(t, p)
	if *scale {
		require.NoError(t, write(*document, "scaling.json", cells, (*report).growth))
	} else {
		require.NoError(t, write(*document, "figures.json", cells, (*report).tables))
	}
}
