package shards_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestOwnersAreFound(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		seeker, err := shards.New(b.Open(), "/shards")
		require.NoError(b, err)
		router := seeker.Router()
		for _, err := range []error{
			coordtest.Err(seeker.Owner(b.Context(), "key 0001")), coordtest.Err(router.Owner(b.Context(), "key 0001")),
		} {
			require.ErrorIs(b, err, shards.ErrNoOwner)
			require.ErrorContains(b, err, "no plan")
		}
		one := d.start(b, "one", keys(10), shards.Data([]byte("host1:80")), shards.Zone("a"))
		d.settled(b, 10, 1)
		require.ErrorIs(b, coordtest.Err(seeker.Owner(b.Context(), "none")), shards.ErrNoOwner)
		o, err := seeker.Owner(b.Context(), "key 0001")
		require.NoError(b, err)
		require.Equal(b, d.tokens()["key 0001"], o.Token)
		require.Equal(b, "one host1:80 a", fmt.Sprintf("%s %s %s", o.Member.ID, o.Member.Data, o.Member.Zone))
		routed, err := router.Owner(b.Context(), "key 0001")
		require.NoError(b, err)
		require.Equal(b, o, routed)
		one.finish(b)
		require.ErrorIs(b, coordtest.Err(seeker.Owner(b.Context(), "key 0001")), shards.ErrNoOwner)
	})
}

// A router answers from memory, and what it answers belongs together, also when
// it is late.
func TestARouterIsLateAndNeverWrongAboutTheToken(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, c := newBoard(b), b.Open()
		one := d.start(b, "one", keys(10))
		d.settled(b, 10, 1)
		seeker, err := shards.New(c, "/shards")
		require.NoError(b, err)
		router := seeker.Router()
		held := map[int64]string{} // who had a key by which token
		look := func(fresh bool) {
			for key, token := range d.tokens() {
				held[token] = d.ownerOf(key)
				o, err := router.Owner(b.Context(), key)
				require.NoError(b, err)
				require.Equal(b, held[o.Token], o.Member.ID)
				if fresh {
					require.Equal(b, token, o.Token)
				}
			}
		}
		look(true)
		before := b.Server.SessionCounts(c.SessionID())
		look(true)
		require.Zero(b, b.Server.SessionCounts(c.SessionID()).Since(before).Total())
		two := d.start(b, "two", keys(10))
		d.settled(b, 10, 2)
		look(true)
		// The same member has the same keys again, by other tokens.
		o, err := seeker.Owner(b.Context(), "key 0000")
		require.NoError(b, err)
		require.NoError(b, c.Delete(b.Context(), o.Node, -1))
		time.Sleep(time.Second)
		look(false)
		for key := range d.tokens() {
			router.Forget(key)
		}
		look(true)
		one.finish(b)
		two.finish(b)
	})
}

func TestStatusShowsWhatIsDesiredAndWhatIsSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d := newBoard(b)
		d.drain = time.Minute
		one := d.start(b, "one", keys(4), shards.DrainTimeout(time.Hour))
		d.settled(b, 4, 1)
		two := d.start(b, "two", keys(4))
		time.Sleep(time.Second)
		plan, all, err := one.Status(b.Context())
		require.NoError(b, err)
		require.Len(b, plan.Members, 2)
		moving := 0
		for _, s := range all {
			require.Equal(b, "one", s.Owner.Member.ID)
			require.Equal(b, s.Moving, s.Desired.ID == "two")
			require.Equal(b, s.Moving, s.Owner.Asked)
			require.Equal(b, d.tokens()[s.Key], s.Owner.Token)
			if s.Moving {
				moving++
			}
		}
		require.Equal(b, 2, moving)
		d.settled(b, 4, 2)
		// What would be.
		now, next, err := one.Plan(b.Context())
		require.NoError(b, err)
		require.Equal(b, now, next)
		_, next, err = one.Plan(b.Context(), "two")
		require.NoError(b, err)
		require.Equal(b, []int{0, 0, 0, 0}, next.Owners)
		other, err := shards.New(b.Open(), "/shards", shards.Ranges(6))
		require.NoError(b, err)
		_, next, err = other.Plan(b.Context())
		require.NoError(b, err)
		require.Equal(b, []int{0, 1, 0, 1, 0, 1}, next.Owners)
		after, _, err := one.Plan(b.Context())
		require.NoError(b, err)
		require.Equal(b, now, after, "nothing was carried out")
		one.finish(b)
		two.finish(b)
	})
}

// A key's lock is one of package lock's.
func TestALockKeepsAKeyFromItsMembers(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, c := newBoard(b), b.Open()
		s, err := shards.New(c, "/shards")
		require.NoError(b, err)
		m, err := lock.New(c, s.Line("key 0001").Dir)
		require.NoError(b, err)
		h, err := m.Acquire(b.Context())
		require.NoError(b, err)
		one := d.start(b, "one", keys(2))
		<-h.Revoked()
		time.Sleep(time.Minute)
		_, all := d.loads()
		require.Equal(b, 1, all)
		o, err := s.Owner(b.Context(), "key 0001")
		require.NoError(b, err)
		require.Equal(b, h.Token(), o.Token)
		require.Empty(b, o.Member)
		require.NoError(b, h.Release(b.Context()))
		d.settled(b, 2, 1)
		one.finish(b)
	})
}

// Members that follow the plan do not look at the members, and one that comes
// costs each of them a read of the plan, and the moves.
func TestOnlyThePlannerWatchesTheMembers(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		d, all := newBoard(b), []*member{}
		for i := range 5 {
			all = append(all, d.start(b, fmt.Sprint("m", i), keys(20)))
			d.settled(b, 20, i+1)
		}
		time.Sleep(time.Second)
		follower, id := all[3], all[3].client.SessionID()
		before := b.Server.SessionCounts(id)
		idle := d.start(b, "idle", shards.Weight(0))
		time.Sleep(time.Second)
		counts := b.Server.SessionCounts(id).Since(before)
		require.Equal(b, 1, counts[zkembed.OpGetData], "the plan")
		require.LessOrEqual(b, counts.Total(), 2, "and a probe")
		idle.finish(b)
		time.Sleep(time.Second)
		follower.finish(b)
		for _, m := range []int{0, 1, 2, 4} {
			all[m].finish(b)
		}
	})
}
