package interop

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// lockByHand waits for a lock as the recipes' page has it.
func lockByHand(conn *zk.Conn, dir string) (node string, err error) {
	node, err = conn.Create(dir+"/n_", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	for err == nil {
		var names []string
		if names, _, err = conn.Children(dir); err != nil {
			break
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
		at := slices.Index(names, node[len(dir)+1:])
		if at == 0 {
			return node, nil
		}
		there, _, gone, failed := conn.ExistsW(dir + "/" + names[at-1])
		err = failed
		if err == nil && there {
			<-gone
		}
	}
	return "", err
}

// mover is a process of the fleet: it locks by hand, or by this module. It
// works without protection under the lock.
type mover struct {
	t      *testing.T
	w      *zktest.World
	dir    string
	inside *atomic.Int32
	work   *int
}

func (m mover) use(what string) {
	require.EqualValues(m.t, 1, m.inside.Add(1), "two hold, one %s", what)
	before := *m.work
	time.Sleep(time.Millisecond)
	*m.work = before + 1
	m.inside.Add(-1)
}

// byHand runs as the program before, which ends while it stands in line.
func (m mover) byHand(rounds int) {
	conn, _, err := zk.Connect(strings.Split(m.w.ConnectString(), ","), contenderSession*time.Second, zk.WithLogInfo(false))
	require.NoError(m.t, err)
	defer conn.Close()
	for range rounds {
		node, err := lockByHand(conn, m.dir)
		require.NoError(m.t, err)
		m.use("by hand")
		require.NoError(m.t, conn.Delete(node, -1))
	}
	_, err = conn.Create(m.dir+"/n_", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(m.t, err)
}

// byModule runs as the program after.
func (m mover) byModule(rounds int) {
	client := openAs(m.t, m.w, coord.Curator)
	n, err := lock.New(client, m.dir, lock.Dialect(coord.Description{Prefix: "n_"}.Dialect()))
	require.NoError(m.t, err)
	for range rounds {
		require.NoError(m.t, n.Do(context.Background(), func(context.Context, *coord.Hold) error {
			m.use("by this module")
			return nil
		}))
	}
}

// TestAFleetMovesFromALockOfItsOwnAndBack has six processes change one after
// the other, while all lock as fast as they can.
func TestAFleetMovesFromALockOfItsOwnAndBack(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		const fleet, rounds = 6, 5
		m, work := mover{t: t, w: w, dir: w.Path("jobs"), inside: &atomic.Int32{}}, 0
		m.work = &work
		require.NoError(t, openAs(t, w, coord.Curator).EnsureDir(t.Context(), m.dir))
		var running sync.WaitGroup
		for i := range fleet {
			running.Go(func() {
				m.byHand(rounds * (1 + i))
				m.byModule(rounds * fleet)
				m.byHand(rounds * (fleet - i))
			})
		}
		running.Wait()
		require.Equal(t, fleet*rounds*fleet+fleet*(fleet+1)*rounds, work, "no update is lost")
	})
}

func TestEachDescribedDialectExcludesOnEachServer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, d := range []coord.Dialect{
			coord.Numbers, coord.ZooKeeper, coord.Named("one"), "prefix=zlock#{guid}#", "prefix=x-{session:hex}-", "prefix={session}-{label:a:1_b}-n_",
		} {
			m, err := lock.New(openAs(t, w, coord.Curator), w.Path("l"), lock.Dialect(d))
			require.NoError(t, err)
			h, err := m.Acquire(patient(t))
			require.NoError(t, err, d)
			other, err := lock.New(openAs(t, w, coord.Curator), m.Path(), lock.Dialect(d))
			require.NoError(t, err)
			_, err = other.TryAcquire(patient(t))
			require.ErrorIs(t, err, coord.ErrBusy)
			require.NoError(t, h.Release(patient(t)))
			h, err = other.TryAcquire(patient(t))
			require.NoError(t, err)
			require.NoError(t, h.Release(patient(t)))
		}
	})
}
