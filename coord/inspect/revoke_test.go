package inspect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestOnlyTheClaimThatIsMeantIsBroken(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		first := b.Hold(
			recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/names/one", Data: []byte("the same"), Exclusive: true}))
		token := first.Token()
		require.NoError(t, first.Release(b.Context()))
		next := b.taking(b.Open(), "the same")
		deleted, err := inspect.BreakClaim(b.Context(), admin, "/names/one", token)
		require.NoError(t, err)
		require.False(t, deleted)
		require.True(t, b.exists("/names/one"))
		require.NoError(t, inspect.Break(b.Context(), admin, "/names/one"))
		require.False(t, b.exists("/names/one"))
		require.NoError(t, next.Release(b.Context()))
	})
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
		runInBubble(t, name, func(b bubble) {
			c, other, admin := b.Open(), b.Open(), b.Open()
			h := b.taking(c, "first")
			_, err := c.Set(b.Context(), h.Node(), []byte("at work"), -1) // its version differs from a new one's
			require.NoError(b, err)
			lost := b.Server.Inject(zkembed.Match{
				Session: admin.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: h.Node(), Times: 1,
			}, zkembed.Delay(time.Second))
			done := coordtest.Go(func() error { return ask(b.Context(), admin, h.Node()) })
			time.Sleep(time.Millisecond)
			require.NoError(b, h.Release(b.Context()))
			next := b.taking(other, "second")
			require.NoError(b, <-done)
			require.Equal(b, 1, lost.Fired())
			time.Sleep(2 * time.Minute)
			require.NoError(b, next.Err())
			require.Equal(b, "second", b.data(next.Node()))
		})
	}
}

// A server that lags behind shows the claim's predecessor, or nothing.
func TestRevokeAndWaitForcesTheClaimThatItAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other, admin := b.Open(), b.Open(), b.Open()
		h := b.taking(c, "first")
		late := b.Server.Inject(zkembed.Match{Session: admin.Info().SessionID, PathPrefix: h.Node()},
			zkembed.DelayEvents(time.Hour))
		done := coordtest.Go(
			func() error { return coordtest.Err(inspect.RevokeAndWait(b.Context(), admin, h.Node(), time.Minute)) })
		<-h.Revoked()
		require.NoError(b, h.Release(b.Context()))
		next := b.taking(other, "second")
		require.NoError(b, <-done)
		late.Remove()
		time.Sleep(time.Minute)
		require.NoError(b, next.Err(), "the successor was broken")
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
		require.Equal(b, "data", b.data("/dir/item"))
	})
}

func TestRevokeAndWaitEndsWhenAnotherHasTheName(t *testing.T) {
	for name, away := range map[string]bool{"the watch says so": false, "while the connection is lost": true} {
		runInBubble(t, name, func(b bubble) {
			c, other, admin := b.Open(), b.Open(), b.Open()
			h := b.taking(c, "first")
			done := coordtest.Go(func() error { return coordtest.Err(inspect.RevokeAndWait(b.Context(), admin, h.Node(), 0)) })
			<-h.Revoked()
			time.Sleep(time.Second)
			heal := func() {}
			if away {
				heal = b.Server.Partition(zkembed.Cut{Sessions: []int64{admin.Info().SessionID}}).Heal
			}
			_, err := other.Txn(b.Context(), coord.DeleteOp(h.Node(), -1), coord.EphemeralOp(h.Node(), nil))
			require.NoError(b, err)
			if away {
				require.NoError(b, b.Server.DropConn(admin.Info().SessionID))
			}
			heal()
			time.Sleep(time.Second)
			require.Len(b, done, 1)
			require.NoError(b, <-done)
		})
	}
}

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
				require.Equal(b, request+"\n"+c.Info().Identity, b.data(h.Node()))
				all := b.contenders(admin, "/lock")
				require.Len(b, all, 1)
				require.True(b, all[0].Revoked)
				require.Equal(b, c.Info().Identity, all[0].Owner)
			}
		})
	}
}

// A lock of Curator's that can be revoked has no data, and heeds the request
// only where it stands alone.
func TestARequestIsBareUnlessTheDataNameTheOwner(t *testing.T) {
	for dialect, request := range bareRequests {
		for _, data := range []string{
			"", "10.0.0.7", "worker 12", "of another program", "a host pid\n12", "unlock", "__REVOKE__",
		} {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(coord.WithDialect(dialect)), b.Open(coord.WithDialect(dialect))
				h := b.taking(c, data)
				require.NoError(b, inspect.Revoke(b.Context(), admin, h.Node()))
				<-h.Revoked()
				require.Equal(b, request, b.data(h.Node()), data)
			})
		}
	}
}

func TestAClaimThatMayNotBeReadIsAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(coord.WithACL("world:anyone:cdw")), b.Open()
		h := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/names/one"}))
		require.NoError(b, inspect.Revoke(b.Context(), admin, h.Node()))
		require.EqualValues(b, 2, b.node(h.Node()).Stat.Version, "one by the claim, one by the request")
		require.NoError(b, inspect.Break(b.Context(), admin, h.Node()))
		require.False(b, b.exists(h.Node()))
	})
}

func TestInspectListsEveryKindUnlessSomeAreNamed(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			c := b.Open(coord.WithDialect(dialect))
			h, _, err := recipe.Join(b.Context(), c, &coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"})
			h = b.Hold(h, err)
			require.NoError(t, c.Create(b.Context(), "/group/member-1", nil))
			require.Empty(t, b.contenders(c, "/group", "lock"))
			all := b.contenders(c, "/group")
			require.Len(t, all, 1)
			require.Equal(t, all, b.contenders(c, "/group", "lock", "member"))
			require.Equal(t, "member", all[0].Kind)
			require.Equal(t, dialect, all[0].Dialect)
			require.Equal(t, h.Node(), all[0].Node)
			require.Equal(t, c.Info().Identity, all[0].Owner)
		})
	}
}

func TestTheFirstOfEachDialectHolds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/mixed"))
		guid := strings.Repeat("0123456789abcdef", 2)
		for _, name := range []string{
			"_c_" + guid + "-__READ__0000000001", guid + "__lock__0000000002",
			"_c_" + guid + "-__READ__0000000003", guid + "__lock__0000000004", "_c_" + guid + "-__WRIT__0000000005",
		} {
			require.NoError(t, c.Create(b.Context(), "/mixed/"+name, nil))
		}
		var holds []bool
		for _, info := range b.contenders(c, "/mixed") {
			holds = append(holds, info.Holds)
		}
		require.Equal(t, []bool{true, true, true, false, false}, holds)
	})
}
