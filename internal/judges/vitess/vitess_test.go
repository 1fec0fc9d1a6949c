package vitess

import (
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	"vitess.io/vitess/go/vt/topo"
	suite "vitess.io/vitess/go/vt/topo/test"
	"vitess.io/vitess/go/vt/topo/zk2topo"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestVitessAcceptsOurLocksAndElections(t *testing.T) { judge(t, factory{}) }

// Vitess skips it in its CI, as too flaky on ZooKeeper.
func TestVitessAcceptsItsOwnImplementationOnTheEmbeddedServer(t *testing.T) {
	judge(t, zk2topo.Factory{})
}

// unsupported by Vitess's implementation, whose files ours has as well.
var unsupported = []string{"checkList", "checkWatchRecursive"}

func judge(t *testing.T, f topo.Factory) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		made := 0
		suite.TopoServerTestSuite(t, t.Context(), func() *topo.Server {
			made++
			root := w.Path(fmt.Sprint(made))
			// Vitess takes a second list for one of observers.
			s, err := topo.NewWithFactory(f, w.ConnectString()+"|"+w.ConnectString(), path.Join(root, topo.GlobalCell))
			require.NoError(t, err)
			require.NoError(t, s.CreateCellInfo(t.Context(), suite.LocalCellName, &topodatapb.CellInfo{
				ServerAddress: w.ConnectString(),
				Root:          path.Join(root, suite.LocalCellName),
			}))
			return s
		}, unsupported)
	})
}
