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
	inBubble(t, func(b bubble) {
		seeker := b.shards(b.Open())
		router := seeker.Router()
		for _, err := range []error{
			coordtest.Err(seeker.Owner(b.Context(), "key 0001")), coordtest.Err(router.Owner(b.Context(), "key 0001")),
		} {
			require.ErrorIs(b, err, shards.ErrNoOwner)
			require.ErrorContains(b, err, "no plan")
		}
		one := b.alone(10, shards.Data([]byte("host1:80")), shards.Zone("a"))
		require.ErrorIs(b, coordtest.Err(seeker.Owner(b.Context(), "none")), shards.ErrNoOwner)
		o := b.owner(seeker, "key 0001")
		require.Equal(b, b.tokens()["key 0001"], o.Token)
		require.Equal(b, "one host1:80 a", fmt.Sprintf("%s %s %s", o.Member.ID, o.Member.Data, o.Member.Zone))
		require.Equal(b, o, b.owner(router, "key 0001"))
		one.finish(b)
		require.ErrorIs(b, coordtest.Err(seeker.Owner(b.Context(), "key 0001")), shards.ErrNoOwner)
	})
}

// A router answers from memory, and what it answers belongs together, also when
// it is late.
func TestARouterIsLateAndNeverWrongAboutTheToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		b.alone(10)
		seeker := b.shards(c)
		router := seeker.Router()
		held := map[int64]string{} // who had a key by which token
		look := func(fresh bool) {
			for key, token := range b.tokens() {
				held[token] = b.ownerOf(key)
				o := b.owner(router, key)
				require.Equal(b, held[o.Token], o.Member.ID)
				if fresh {
					require.Equal(b, token, o.Token)
				}
			}
		}
		look(true)
		before := b.Server.SessionCounts(c.Info().SessionID)
		look(true)
		require.Zero(b, b.Server.SessionCounts(c.Info().SessionID).Since(before).Total())
		b.start("two", keys(10))
		b.settled(10, 2)
		look(true)
		// The same member has the same keys again, by other tokens.
		require.NoError(b, c.Delete(b.Context(), b.owner(seeker, "key 0000").Node, -1))
		time.Sleep(time.Second)
		look(false)
		for key := range b.tokens() {
			router.Forget(key)
		}
		look(true)
	})
}

func TestStatusShowsWhatIsDesiredAndWhatIsSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.drain = time.Minute
		one := b.alone(4, shards.DrainTimeout(time.Hour))
		b.start("two", keys(4))
		time.Sleep(time.Second)
		plan, all, err := one.Status(b.Context())
		require.NoError(b, err)
		require.Len(b, plan.Members, 2)
		moving := 0
		for _, s := range all {
			require.Equal(b, "one", s.Owner.Member.ID)
			require.Equal(b, s.Moving, s.Desired.ID == "two")
			require.Equal(b, s.Moving, s.Owner.Revoked)
			require.Equal(b, b.tokens()[s.Key], s.Owner.Token)
			if s.Moving {
				moving++
			}
		}
		require.Equal(b, 2, moving)
		b.settled(4, 2)
		// What would be.
		now, next := b.plans(one.Shards)
		require.Equal(b, now, next)
		_, next = b.plans(one.Shards, "two")
		require.Equal(b, []int{0, 0, 0, 0}, next.Owners)
		_, next = b.plans(b.shards(b.Open(), shards.Ranges(6)))
		require.Equal(b, []int{0, 1, 0, 1, 0, 1}, next.Owners)
		after, _ := b.plans(one.Shards)
		require.Equal(b, now, after, "nothing was carried out")
	})
}

// A key's lock is one of package lock's.
func TestALockKeepsAKeyFromItsMembers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		s := b.shards(c)
		m, err := lock.New(c, s.Line("key 0001").Dir)
		require.NoError(b, err)
		h := coordtest.Acquire(b, m)
		b.start("one", keys(2))
		<-h.Revoked()
		time.Sleep(time.Minute)
		_, all := b.loads()
		require.Equal(b, 1, all)
		o := b.owner(s, "key 0001")
		require.Equal(b, h.Token(), o.Token)
		require.Empty(b, o.Member)
		require.NoError(b, h.Release(b.Context()))
		b.settled(2, 1)
	})
}

// Members that follow the plan do not look at the members, and one that comes
// costs each of them a read of the plan, and the moves.
func TestOnlyThePlannerWatchesTheMembers(t *testing.T) {
	inBubble(t, func(b bubble) {
		var all []*member
		for i := range 5 {
			all = append(all, b.start(fmt.Sprint("m", i), keys(20)))
			b.settled(20, i+1)
		}
		time.Sleep(time.Second)
		id := all[3].client.Info().SessionID
		before := b.Server.SessionCounts(id)
		b.start("idle", shards.Weight(0))
		time.Sleep(time.Second)
		counts := b.Server.SessionCounts(id).Since(before)
		require.Equal(b, 1, counts[zkembed.OpGetData], "the plan")
		require.LessOrEqual(b, counts.Total(), 2, "and a probe")
	})
}
