package coord_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

func TestARequestStandsBeforeTheDataOrAlone(t *testing.T) {
	for data, want := range map[string]struct {
		own   string
		asked bool
	}{
		"":                          {"", false},
		"a host 12":                 {"a host 12", false},
		"a __REVOKE__ 12":           {"a __REVOKE__ 12", false},
		"__REVOKE__ host 12":        {"__REVOKE__ host 12", false},
		"a host 12\n__REVOKE__":     {"a host 12\n__REVOKE__", false},
		"__REVOKE__":                {"", true},
		"unlock":                    {"", true},
		"__REVOKE__\na host 12":     {"a host 12", true},
		"unlock\na host 12\nnumber": {"a host 12\nnumber", true},

		"a host 12\nCOORD_HELD=x/y":             {"a host 12", false},
		"__REVOKE__\na host 12\nCOORD_HELD=x/y": {"a host 12", true},
	} {
		require.Equal(t, want.asked, inspect.IsRevocation([]byte(data)), data)
		require.Equal(t, want.own, string(inspect.OwnData([]byte(data))), data)
	}
}

var bareRequests = map[coord.Dialect]string{coord.Curator: "__REVOKE__", coord.Kazoo: "unlock"}

func TestARequestLeavesToSeeWhoseTheClaimIs(t *testing.T) {
	for dialect, request := range bareRequests {
		inBubble(t, func(b bubble) {
			c, admin := b.Open(coord.WithDialect(dialect)), b.Open(coord.WithDialect(dialect))
			h := b.acquire(c)
			for range 2 { // who asks again keeps the same
				require.NoError(b, inspect.Revoke(b.Context(), admin, h.Node()))
				<-h.Revoked()
				data, _, err := admin.Get(b.Context(), h.Node())
				require.NoError(b, err)
				require.Equal(b, request+"\n"+c.Identity(), string(data))
				all, err := inspect.Contenders(b.Context(), admin, "/lock")
				require.NoError(b, err)
				require.Len(b, all, 1)
				require.True(b, all[0].Revoked)
				require.Equal(b, c.Identity(), all[0].Owner)
			}
			require.NoError(b, h.Release(b.Context()))
			b.Close(c, admin)
		})
	}
}

// A lock of Curator's that can be revoked has no data, and heeds the request
// only where it stands alone.
func TestARequestIsBareUnlessTheDataNameTheOwner(t *testing.T) {
	for dialect, request := range bareRequests {
		for _, data := range []string{"", "10.0.0.7", "worker 12", "of another program", "a host pid\n12", "unlock", "__REVOKE__"} {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(coord.WithDialect(dialect)), b.Open(coord.WithDialect(dialect))
				h := b.taking(c, data)
				require.NoError(b, inspect.Revoke(b.Context(), admin, h.Node()))
				<-h.Revoked()
				got, _, err := admin.Get(b.Context(), h.Node())
				require.NoError(b, err)
				require.Equal(b, request, string(got), data)
				require.NoError(b, h.Release(b.Context()))
				b.Close(c, admin)
			})
		}
	}
}

func TestAClaimThatMayNotBeReadIsAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(coord.WithACL("world:anyone:cdw")), b.Open()
		h, err := c.AcquireName(b.Context(), coord.NameSpec{Path: "/names/one"})
		require.NoError(b, err)
		require.NoError(b, inspect.Revoke(b.Context(), admin, h.Node()))
		for _, node := range b.Server.Nodes() {
			if node.Path == h.Node() {
				require.EqualValues(b, 1, node.Stat.Version)
			}
		}
		require.NoError(b, inspect.Break(b.Context(), admin, h.Node()))
		require.Empty(b, b.nodesOf(c.SessionID()))
		b.Close(c, admin)
	})
}
