package once_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Two programs share a ledger by mistake, or disagree about it.
func TestF70ClientsWithDifferentOptionsOfOneLedgerReportThatOnce(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		told := map[string][]string{}
		use := func(name string, opts ...once.Option) func(key string) {
			c := coordtest.Open(t, w.ConnectString(), coord.WithObserver(func(e event.Event) {
				if e.Kind == event.Differs {
					told[name] = append(told[name], e.Path+": "+e.Err.Error())
				}
			}))
			return func(key string) {
				o, err := once.New(c, w.Path("jobs"), opts...) // for each call
				require.NoError(t, err)
				require.NoError(t, coordtest.Err(o.Do(t.Context(), key, says(key))))
			}
		}
		one, same := use("one", once.Attempts(3, 0)), use("same", once.Attempts(3, time.Second))
		other := use("other", once.Attempts(1, 0), once.Keep(time.Hour))
		one("a")
		same("a")
		require.Empty(t, told)
		for range 3 {
			other("a")
			other("b")
			one("b")
		}
		require.Len(t, told["one"], 1)
		require.Len(t, told["other"], 1)
		require.Empty(t, told["same"])
		require.Contains(t, told["other"][0],
			w.Path("jobs")+
				": another client uses this ledger with other options (3 attempts) than this one (1 attempts, records kept for 1h0m0s)")
	})
}
