package coord_test

import (
	"cmp"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

func (b bubble) connected(opts ...coord.Option) *coord.Client {
	b.Helper()
	c := b.Open(opts...)
	require.NoError(b, c.Flush(b.Context()))
	return c
}

// wait has a claim of c, which is connected, wait for its turn by
// [coord.First], and returns once it does.
func (b bubble) wait(c *coord.Client, spec coord.Spec) <-chan granted {
	done := make(chan granted, 1)
	go func() {
		h, err := c.Acquire(b.Context(), spec, coord.First)
		done <- granted{h, err}
	}()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return done
}

func (b bubble) join(c *coord.Client, spec coord.Spec) *coord.Claim {
	b.Helper()
	claim, err := c.Join(b.Context(), spec)
	require.NoError(b, err)
	return claim
}

// A waiter that has reason to look takes the listing of one that joined behind
// it, as long as that says enough: it names none that may have gone.
func TestAWaiterTakesTheListingOfANewcomerOfTheSameClient(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		c := b.connected()
		var waiting []<-chan granted
		for range 6 {
			waiting = append(waiting, b.wait(c, mutex))
		}
		time.Sleep(time.Second) // each watches its node
		var lists atomic.Int32
		b.requests(func(zkembed.Request) { lists.Add(1) }, zkembed.OpGetChildren2)
		reads := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, Session: c.SessionID()}, zkembed.Drop())
		// The first listing is that of the last to join. By it the third
		// cannot tell, at the second hand-off, that the first holder has gone,
		// and the fourth takes the listing of the third. None is kept for one.
		for _, want := range []int32{0, 1, 0, 1, -1, -1} {
			lists.Store(0)
			require.NoError(t, h.Release(b.Context()))
			time.Sleep(time.Second)
			if want >= 0 {
				require.Equal(t, want, lists.Load(), "%d wait", len(waiting))
			}
			next := <-waiting[0]
			require.NoError(t, next.err)
			h, waiting = next.hold, waiting[1:]
			for _, other := range waiting {
				require.Empty(t, other, "two holders")
			}
		}
		require.Zero(t, reads.Fired(), "all that they wait for was watched")
		require.NoError(t, h.Release(b.Context()))
	})
}

// What another's listing does not tell a waiter is whether its own node is
// there: because it is not in it, or because it may have gone since.
func TestAWaiterWhoseNodeMayBeGoneListsForItself(t *testing.T) {
	for name, listed := range map[string]bool{"not listed": false, "not seen since it was listed": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other := b.connected(), b.Open()
				h := b.acquire(other)
				one := b.wait(c, mutex)
				time.Sleep(time.Second)
				var ahead []*coord.Claim
				for range 17 {
					ahead = append(ahead, b.join(other, mutex))
				}
				last := b.wait(c, mutex) // far back: its own node is not watched yet
				for _, claim := range ahead[:15] {
					require.NoError(t, claim.Leave(b.Context()))
				}
				own := slices.MaxFunc(b.nodesOf(c.SessionID()), func(a, b string) int {
					return cmp.Compare(a[len(a)-10:], b[len(b)-10:])
				})
				if listed {
					time.Sleep(100 * time.Millisecond)
					b.join(c, mutex)
				}
				require.NoError(t, other.Break(b.Context(), own))
				if !listed {
					b.join(c, mutex)
				}
				require.NoError(t, ahead[15].Leave(b.Context()))
				synctest.Wait()
				require.Equal(t, 3, b.owned(c.SessionID()), "it has joined again")
				require.Empty(t, one)
				require.Empty(t, last)
				require.NoError(t, h.Release(b.Context()))
				b.Close(c, other)
				<-one
				<-last
			})
		})
	}
}

// A contender that cannot be honoured is reported to each claim that it came
// after, also when another claim of the client has listed it.
func TestALateForeignerIsReportedToThoseWhoShareAListing(t *testing.T) {
	inBubble(t, func(b bubble) {
		reported := make(chan coord.Event, 10)
		c := b.connected(coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.ClaimForeign {
				reported <- e
			}
		}))
		other := b.Open()
		spec := coord.Spec{Line: coord.LockLine(mutex.Line.Dir), Kind: "lock", Unlisted: true}
		h, between := b.acquire(other), b.join(other, mutex)
		one, two := b.wait(c, spec), b.wait(c, spec)
		claim := b.join(c, spec)
		time.Sleep(time.Second)
		b.join(other, coord.Spec{Line: mutex.Line, Kind: "latch"})
		_, err := claim.Listed(b.Context())
		require.NoError(t, err)
		require.Empty(t, reported)
		require.NoError(t, h.Release(b.Context()))
		synctest.Wait()
		require.Len(t, reported, 1)
		require.NoError(t, between.Leave(b.Context()))
		next := <-one
		require.NoError(t, next.err)
		require.Empty(t, two)
		b.Close(c, other)
		<-two
	})
}
