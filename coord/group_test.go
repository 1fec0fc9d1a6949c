package coord_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// inGroup makes a group of holds in the directories /0, /1 and so on.
func (b bubble) inGroup(c *coord.Client, n int) (*coord.Group, []*coord.Hold) {
	b.Helper()
	var holds []*coord.Hold
	for i := range n {
		h, _, err := c.Stand(b.Context(), coord.Spec{Line: groupLine(i), Kind: "member"})
		require.NoError(b, err)
		holds = append(holds, h)
	}
	return coord.NewGroup(holds[0], holds[1:]...), holds
}

func groupLine(i int) coord.Line { return coord.Line{Dir: "/" + string(rune('0'+i))} }

func TestAGroupEndsWithTheFirstOfItsMembers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 4)
		ctx := g.Context(b.Context())
		time.Sleep(time.Minute)
		require.NoError(t, g.Err())
		require.NoError(t, ctx.Err())
		require.Equal(t, holds, g.Holds())
		require.False(t, g.Deadline().After(holds[3].Deadline()))
		require.NoError(t, inspect.Break(b.Context(), c, holds[2].Node()))
		<-g.Done()
		require.ErrorIs(t, g.Err(), coord.ErrNodeDeleted)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), coord.ErrLost)
		require.NoError(t, holds[0].Err(), "the others last until the group is released")
		require.NoError(t, g.Release(b.Context()))
		for i, h := range holds {
			if i != 2 {
				require.ErrorIs(t, h.Err(), coord.ErrReleased)
			}
		}
		require.ErrorIs(t, g.Err(), coord.ErrNodeDeleted, "the loss is told also afterwards")
		b.Close(c)
	})
}

func TestAGroupEndsWithTheTrustWindowAtOnceAlsoAfterAPause(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, _ := b.inGroup(c, 3)
		b.Server.Partition(zkembed.Cut{})
		deadline := g.Deadline()
		time.Sleep(time.Until(deadline) - time.Nanosecond)
		require.NoError(t, g.Err())
		time.Sleep(time.Nanosecond)
		require.ErrorIs(t, g.Err(), coord.ErrWindowOver)
		b.Server.Heal()
		b.Close(c)
	})
}

func TestAGroupsContextCarriesEveryMember(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		ctx := g.Context(b.Context())
		for i, h := range holds {
			held, ok := coord.HeldIn(ctx, c, groupLine(i).Dir)
			require.True(t, ok)
			require.Same(t, h, held)
		}
		require.NoError(t, g.Release(b.Context()))
		<-ctx.Done()
		b.Close(c)
	})
}

func TestAGroupIsAskedForWhenAMemberIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		select {
		case <-g.Revoked():
			t.Fatal("nobody asked")
		case <-time.After(time.Minute):
		}
		require.NoError(t, inspect.Revoke(b.Context(), c, holds[1].Node()))
		<-g.Revoked()
		require.NoError(t, g.Err())
		require.NoError(t, g.Release(b.Context()))
		other, _ := b.inGroup(c, 2)
		asked := other.Revoked()
		require.NoError(t, other.Release(b.Context()))
		select {
		case <-asked:
			t.Fatal("a release is no request")
		case <-time.After(time.Minute):
		}
		b.Close(c)
	})
}

func TestAGroupReportsEveryReleaseThatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		before := b.Server.Counts()[zkembed.OpDelete]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 2}, zkembed.ReplyError(zkembed.CodeNoAuth))
		err := g.Release(b.Context())
		require.ErrorIs(t, err, coord.ErrNoAuth)
		require.Regexp(t, `^release /.*; release /`, err.Error())
		require.Equal(t, before+3, b.Server.Counts()[zkembed.OpDelete])
		require.ErrorIs(t, holds[0].Err(), coord.ErrReleased)
		b.Close(c)
	})
}

func TestAClaimListsTheOthersForOneRequestAtMost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/line"}, Kind: "member"}
		first, err := c.Join(b.Context(), spec)
		require.NoError(t, err)
		second, err := c.Join(b.Context(), spec)
		require.NoError(t, err)
		before := b.Server.Counts()
		names, err := second.Listed(b.Context())
		require.NoError(t, err)
		line := coord.Line{Dir: "/line", Kinds: []string{"member"}}.Order(append(names, "else"), coord.Curator)
		require.Len(t, line, 2)
		require.Equal(t, first.Node(), "/line/"+line[0].Name)
		require.Equal(t, second.Node(), "/line/"+line[1].Name)
		require.LessOrEqual(t, b.Server.Counts().Since(before).Total(), 1)
		before = b.Server.Counts()
		require.NoError(t, coordtest.Err(second.Listed(b.Context())))
		require.Zero(t, b.Server.Counts().Since(before).Total())
		spec.Unlisted = true
		third, err := c.Join(b.Context(), spec)
		require.NoError(t, err)
		names, err = third.Listed(b.Context())
		require.NoError(t, err)
		require.Len(t, names, 3)
		fourth, err := c.Join(b.Context(), spec)
		require.NoError(t, err)
		require.NoError(t, inspect.Break(b.Context(), c, fourth.Node()))
		require.ErrorIs(t, coordtest.Err(fourth.Listed(b.Context())), coord.ErrNodeDeleted)
		b.Close(c)
	})
}

func TestAGroupOfAnySizeReportsARequestForAMember(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		g := coord.NewGroup(h, slices.Repeat([]*coord.Hold{h}, 1<<16)...)
		asked := g.Revoked()
		require.NoError(b, inspect.Revoke(b.Context(), c, h.Node()))
		time.Sleep(time.Second)
		select {
		case <-asked:
		default:
			require.Fail(b, "not told")
		}
		require.NoError(b, g.Release(b.Context()))
		b.Close(c)
	})
}
