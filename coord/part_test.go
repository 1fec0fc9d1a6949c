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

var parted = coord.Spec{Line: coord.Line{Dir: "/parts"}, Kind: "whole", Exclusive: true}

// whole is a hold with a part.
func (b bubble) whole(c *coord.Client) *coord.Hold {
	b.Helper()
	h, err := c.Acquire(b.Context(), parted, coord.First)
	require.NoError(b, err)
	require.NoError(b, h.Attach(b.Context(), "/parts/part", nil))
	require.Equal(b, 2, b.owned(h.Session()))
	return h
}

func TestAPartGoesWithItsHoldHoweverThatEnds(t *testing.T) {
	ends := map[string]func(b bubble, c *coord.Client, h *coord.Hold) error{
		"released": func(b bubble, c *coord.Client, h *coord.Hold) error { return h.Release(b.Context()) },
		"released late": func(b bubble, c *coord.Client, h *coord.Hold) error {
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			return h.Release(ctx)
		},
		"released with a transaction": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return b.release(b.Context(), c, h, coord.CreateOp("/done", nil))
		},
		"broken": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return inspect.Break(b.Context(), b.Open(), h.Node())
		},
		"the part": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return inspect.Break(b.Context(), b.Open(), "/parts/part")
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c := b.Open()
				h := b.whole(c)
				time.Sleep(time.Second) // until the own watches are set
				require.NoError(t, end(b, c, h))
				time.Sleep(time.Second)
				if name == "the part" {
					require.NoError(t, h.Err(), "the part is gone and not the whole")
					require.NoError(t, h.Release(b.Context()))
				}
				require.Zero(t, b.owned(h.Session()))
			})
		})
	}
}

// A reply that is lost must not leave the one without the other.
func TestAReleaseThatIsRepeatedDeletesTheParts(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.whole(b.Open())
		lost := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.LoseReply())
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 1, lost.Fired())
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestARequestForAPartIsOneForTheHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.whole(b.Open())
		admin := b.Open()
		require.NoError(t, inspect.Revoke(b.Context(), admin, "/parts/part"))
		select {
		case <-h.Revoked():
		case <-time.After(time.Second):
			require.Fail(t, "nobody has told the holder")
		}
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestAPartIsNotMadeForAHoldThatIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h, err := c.Acquire(b.Context(), parted, coord.First)
		require.NoError(t, err)
		b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
		require.NoError(t, inspect.Break(b.Context(), admin, h.Node()))
		require.NoError(t, h.Err(), "it does not know")
		require.ErrorIs(t, h.Attach(b.Context(), "/", nil), coord.ErrInvalid, "it has no name of its own")
		require.ErrorIs(t, h.Attach(b.Context(), "/parts/part", nil), coord.ErrLost)
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestOnlyALeaderHasANotice(t *testing.T) {
	const guid = "01234567-89ab-4def-8123-456789abcdef"
	for node, notice := range map[string]string{
		"/e/_c_" + guid + "-latch-0000000012":                   "/e/_c_" + guid + "-latch-",
		"/latch-0/_c_" + guid + "-latch--2147483648":            "/latch-0/_c_" + guid + "-latch-",
		"/e/_c_" + guid + "-lock-0000000012":                    "/e/_c_" + guid + "-lock-0000000012",
		"/e/0123456789abcdef0123456789abcdef__lock__0000000012": "/e/0123456789abcdef0123456789abcdef__lock__0000000012",
		"/e/latch-0000000012":                                   "/e/latch-0000000012",
	} {
		require.Equal(t, notice, inspect.Notice(node))
	}
}

// A hold may be lost for a lost connection, which is not one of the request for
// its part.
func TestAPartOfAHoldThatEndsWithItsConnectionIsNotTriedForEver(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.LoseAtDisconnect())
		h, err := c.Acquire(b.Context(), parted, coord.First)
		require.NoError(b, err)
		lost := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.Drop())
		err = h.Attach(b.Context(), "/parts/part", nil)
		require.Equal(b, 1, lost.Fired())
		require.ErrorIs(b, err, coord.ErrLost)
		require.NoError(b, h.Release(b.Context()))
	})
}
