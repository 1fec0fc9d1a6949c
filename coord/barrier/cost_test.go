package barrier_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestWhatABarrierCosts(t *testing.T) {
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	w.SetTimeout(time.Minute)
	c := coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute)) // no probe, no ping meanwhile
	path := w.Path("barrier")
	b := at(t, c, path)
	require.NoError(t, b.Set(coordtest.Limited(t)))
	require.NoError(t, b.Remove(coordtest.Limited(t)))
	spent := func(f func()) zkembed.Counts {
		before := w.Embedded().SessionCounts(c.SessionID())
		f()
		return w.Embedded().SessionCounts(c.SessionID()).Since(before)
	}
	set := spent(func() { require.NoError(t, b.Set(coordtest.Limited(t))) })
	require.Equal(t, 1, set.Total(), "%v", set)
	again := spent(func() { require.NoError(t, b.Set(coordtest.Limited(t))) })
	require.Equal(t, 2, again.Total(), "%v", again)
	var all []<-chan error
	waits := spent(func() {
		all = append(all, waiting(t, w, t.Context(), b, path))
	})
	require.Equal(t, zkembed.Counts{zkembed.OpMulti: 1, zkembed.OpGetData: 1}, waits)
	const more = 10
	flushed := w.Embedded().SessionCounts(c.SessionID())[zkembed.OpMulti]
	waits = spent(func() {
		for range more {
			passed := make(chan error, 1)
			go func() { passed <- b.Wait(coordtest.Limited(t)) }()
			all = append(all, passed)
		}
		zktest.Eventually(t, coordtest.Soon, func() bool {
			return w.Embedded().SessionCounts(c.SessionID())[zkembed.OpMulti] == flushed+more
		}, "all wait")
	})
	require.Zero(t, waits[zkembed.OpGetData], "all that wait in one process share one watch")
	opened := spent(func() {
		require.NoError(t, b.Remove(coordtest.Limited(t)))
		passes(t, all...)
	})
	require.Equal(t, 1, opened[zkembed.OpNotify])
	require.Equal(t, 1, opened.Total(), "%v", opened)
}
