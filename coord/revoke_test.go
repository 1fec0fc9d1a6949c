package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/zkembed"
)

// taking returns a hold whose node's name others take in their turn.
func (b bubble) taking(c *coord.Client, who string) *coord.Hold {
	b.Helper()
	h, err := c.AcquireName(b.Context(), coord.NameSpec{Path: "/names/one", Data: []byte(who)})
	require.NoError(b, err)
	return h
}

// The claim goes and another takes its name while the request to revoke, or to
// break, the first is on its way.
func TestNothingIsDoneToASuccessorOfTheSameName(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, c *coord.Client, node string) error{
		"revoke": inspect.Revoke,
		"break":  inspect.Break,
		"wait": func(ctx context.Context, c *coord.Client, node string) error {
			_, err := inspect.RevokeAndWait(ctx, c, node, time.Minute)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other, admin := b.Open(), b.Open(), b.Open()
				h := b.taking(c, "first")
				_, err := c.Set(b.Context(), h.Node(), []byte("at work"), -1) // its version differs from a new one's
				require.NoError(b, err)
				lost := b.Server.Inject(zkembed.Match{
					Session: admin.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: h.Node(), Times: 1,
				}, zkembed.Delay(time.Second))
				done := make(chan error, 1)
				go func() { done <- ask(b.Context(), admin, h.Node()) }()
				time.Sleep(time.Millisecond)
				require.NoError(b, h.Release(b.Context()))
				next := b.taking(other, "second")
				require.NoError(b, <-done)
				require.Equal(b, 1, lost.Fired())
				time.Sleep(2 * time.Minute)
				require.NoError(b, next.Err())
				data, _, err := admin.Get(b.Context(), next.Node())
				require.NoError(b, err)
				require.Equal(b, "second", string(data))
				require.NoError(b, next.Release(b.Context()))
				b.Close(c, other, admin)
			})
		})
	}
}

// A server that lags behind shows the claim's predecessor, or nothing.
func TestRevokeAndWaitForcesTheClaimThatItAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other, admin := b.Open(), b.Open(), b.Open()
		h := b.taking(c, "first")
		late := b.Server.Inject(zkembed.Match{Session: admin.SessionID(), PathPrefix: h.Node()}, zkembed.DelayEvents(time.Hour))
		done := make(chan error, 1)
		go func() {
			_, err := inspect.RevokeAndWait(b.Context(), admin, h.Node(), time.Minute)
			done <- err
		}()
		<-h.Revoked()
		require.NoError(b, h.Release(b.Context()))
		next := b.taking(other, "second")
		require.NoError(b, <-done)
		late.Remove()
		time.Sleep(time.Minute)
		require.NoError(b, next.Err(), "the successor was broken")
		require.NoError(b, next.Release(b.Context()))
		b.Close(c, other, admin)
	})
}

func TestWhatIsNoClaimIsNotAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/dir/item", []byte("data")))
		for _, node := range []string{"/dir", "/dir/item"} { // a container, too
			require.ErrorIs(b, inspect.Revoke(b.Context(), c, node), coord.ErrInvalid)
			_, err := inspect.RevokeAndWait(b.Context(), c, node, time.Second)
			require.ErrorIs(b, err, coord.ErrInvalid)
		}
		data, _, err := c.Get(b.Context(), "/dir/item")
		require.NoError(b, err)
		require.Equal(b, "data", string(data))
		b.Close(c)
	})
}

func TestRevokeAndWaitEndsWhenAnotherHasTheName(t *testing.T) {
	for name, away := range map[string]bool{"the watch says so": false, "while the connection is lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other, admin := b.Open(), b.Open(), b.Open()
				h := b.taking(c, "first")
				done := make(chan error, 1)
				go func() {
					_, err := inspect.RevokeAndWait(b.Context(), admin, h.Node(), 0)
					done <- err
				}()
				<-h.Revoked()
				time.Sleep(time.Second)
				heal := func() {}
				if away {
					heal = b.Server.Partition(zkembed.Cut{Sessions: []int64{admin.SessionID()}}).Heal
				}
				_, err := other.Txn(b.Context(), coord.DeleteOp(h.Node(), -1), coord.CreateOp(h.Node(), nil, coord.Ephemeral))
				require.NoError(b, err)
				if away {
					require.NoError(b, b.Server.DropConn(admin.SessionID()))
				}
				heal()
				time.Sleep(time.Second)
				require.Len(b, done, 1)
				require.NoError(b, <-done)
				b.Close(c, other, admin)
			})
		})
	}
}
