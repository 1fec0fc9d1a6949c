package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestTheDriverExcusesTheHoldOfTheNodeThatItDeletedAndOfNoOtherOfThatName(t *testing.T) {
	for name, test := range map[string]struct{ older, violations int }{"its node": {0, 0}, "an earlier one": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			coordtest.Virtual(t, func(t *testing.T) {
				w, err := newWorld(1)
				require.NoError(t, err)
				defer func() { require.NoError(t, w.srv.Close()) }()
				defer w.giveUp()
				s, admin := w.newStation("c0", w.stream(0)), w.newStation("admin", w.stream(1))
				for _, s := range []*station{s, admin} {
					s.open(t.Context())
					defer func() { require.NoError(t, s.take().Close(t.Context())) }()
				}
				m, err := lock.New(s.client, "/lock")
				require.NoError(t, err)
				h, err := m.Acquire(t.Context())
				require.NoError(t, err)
				w.srv.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(time.Hour))
				require.NoError(t, admin.client.Delete(t.Context(), h.Node(), -1))
				_, err = s.client.Txn(t.Context(), coord.CreateOp(h.Node(), nil, coord.Ephemeral))
				require.NoError(t, err)
				w.deleted[h.Node()] = erased{h.Token() - int64(test.older), time.Now()}
				s.Look(&workload.Worker{}, h)
				require.Len(t, w.violations, test.violations)
			})
		})
	}
}
