package coord_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// codes are those of KeeperException.Code of ZooKeeper 3.9, and one that is
// none: what a caller is told, if the answer is final. Where the client library
// has an error for it, that is the one.
var codes = map[zkembed.Code]struct {
	told string
	is   error
}{
	-1: {told: "SystemError"}, -2: {told: "RuntimeInconsistency"}, -3: {told: "DataInconsistency"},
	-4: {is: coord.ErrDisconnected}, -5: {told: "MarshallingError"}, -6: {is: errors.ErrUnsupported},
	-7: {is: coord.ErrDisconnected},
	-8: {is: coord.ErrInvalid}, -12: {is: coord.ErrSessionExpired}, -13: {told: "NewConfigNoQuorum"},
	-14:  {told: "ReconfigInProgress"},
	-100: {is: errors.ErrUnsupported}, -101: {is: zk.ErrNoNode}, -102: {is: zk.ErrNoAuth}, -103: {is: zk.ErrBadVersion},
	-108: {is: zk.ErrNoChildrenForEphemerals}, -110: {is: zk.ErrNodeExists}, -111: {is: zk.ErrNotEmpty},
	-112: {is: coord.ErrSessionExpired}, -113: {told: "InvalidCallback"},
	-114: {told: "refuses this ACL", is: coord.ErrInvalid},
	-115: {is: zk.ErrAuthFailed}, -118: {is: coord.ErrDisconnected}, -119: {is: coord.ErrDisconnected},
	-120: {told: "localSessionsUpgradingEnabled", is: errors.ErrUnsupported}, -121: {told: "NoWatcher"},
	-122: {is: coord.ErrDisconnected}, -123: {told: "ReconfigDisabled"},
	-124: {told: "enforce.auth.enabled", is: zk.ErrAuthFailed}, -125: {told: "quota exceeded"},
	-127: {is: coord.ErrThrottled}, -999: {told: "error -999, which is not known here"},
}

// passing says that another attempt may fare better, on this connection or
// another, or in another session.
func passing(err error) bool {
	return slices.Contains([]error{coord.ErrDisconnected, coord.ErrSessionExpired, coord.ErrThrottled}, err)
}

// calls are made at the same time, by one client.
var everyCall = map[string]struct {
	asks zkembed.Op // whose answer is the call's; 0: several requests, or it goes on whatever one of them gets
	make func(ctx context.Context, c *coord.Client) error
}{
	"get": {zkembed.OpGetData, func(ctx context.Context, c *coord.Client) error { return third(c.Get(ctx, "/there")) }},
	"exists": {
		zkembed.OpExists, func(ctx context.Context, c *coord.Client) error { return third(c.Exists(ctx, "/there")) },
	},
	"list": {
		zkembed.OpGetChildren2, func(ctx context.Context, c *coord.Client) error {
			return coordtest.Err(c.Children(ctx, "/there"))
		},
	},
	"create": {zkembed.OpMulti, func(ctx context.Context, c *coord.Client) error { return c.Create(ctx, "/new", nil) }},
	"set": {
		zkembed.OpMulti, func(ctx context.Context, c *coord.Client) error {
			return coordtest.Err(c.Set(ctx, "/there", nil, -1))
		},
	},
	"delete": {zkembed.OpMulti, func(ctx context.Context, c *coord.Client) error { return c.Delete(ctx, "/old", -1) }},
	"txn": {zkembed.OpMulti, func(ctx context.Context, c *coord.Client) error {
		return coordtest.Err(c.Txn(ctx, coord.CheckOp("/there", -1)))
	}},
	"directory": {0, func(ctx context.Context, c *coord.Client) error { return c.EnsureDir(ctx, "/a/b") }},
	"fresh":     {0, func(ctx context.Context, c *coord.Client) error { return third(c.Synced().Get(ctx, "/there")) }},
	"name": {0, func(ctx context.Context, c *coord.Client) error {
		return coordtest.Err(recipe.AcquireName(ctx, c, coord.NameSpec{Path: "/names/n"}))
	}},
	"lock": {0, func(ctx context.Context, c *coord.Client) error {
		return coordtest.Err(recipe.Acquire(ctx, c, &mutex, first))
	}},
	"other lock": {0, func(ctx context.Context, c *coord.Client) error {
		return coordtest.Err(
			recipe.Acquire(ctx, c, &coord.Spec{Line: coord.Line{Dir: "/fresh/lock"}, Kind: "lock", Exclusive: true}, first))
	}},
	"once": {0, func(ctx context.Context, c *coord.Client) error {
		once, err := recipe.NewTransactor(c, "/witnesses")
		if err != nil {
			return err
		}
		return coordtest.Err(once.Txn(ctx, coord.CheckOp("/there", -1)))
	}},
	"wait": {0, func(ctx context.Context, c *coord.Client) error {
		return c.Wait(ctx, func(v *coord.View) (bool, error) {
			if _, err := v.ChildrenIfAny("/there"); err != nil {
				return false, err
			}
			_, _, err := v.Exists("/there")
			return false, err
		})
	}},
}

// answered checks what a call was told whose request got the code.
func answered(t testing.TB, name string, err error, code zkembed.Code) {
	t.Helper()
	want := codes[code]
	switch {
	case name == "exists" && want.is == zk.ErrNoNode:
		require.NoError(t, err)
	case name == "create" && want.is == zk.ErrNoNode: // its parent is made again and again
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case passing(want.is), errors.Is(err, coord.ErrUnconfirmed): // another's answer has ended the connection
		require.Error(t, err, name)
	default:
		require.ErrorContains(t, err, want.told, name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		if want.is != nil {
			require.ErrorIs(t, err, want.is, name)
		}
	}
}

func third[A, B any](_ A, _ B, err error) error { return err }

// F75: whatever a server answers to whatever is asked, the callers are told by
// name, and nothing is asked again and again without a pause.
func TestF75EveryErrorCodeHasANameAndNoneIsRepeatedWithoutAPause(t *testing.T) {
	const (
		within = 1500 * time.Millisecond
		most   = 250 // requests of all the calls
	)
	ops := []zkembed.Op{
		zkembed.OpCreate, zkembed.OpDelete, zkembed.OpExists, zkembed.OpGetData, zkembed.OpSetData, zkembed.OpGetChildren2,
		zkembed.OpMulti, zkembed.OpCreateContainer,
	}
	for code := range codes {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			for _, op := range ops {
				inBubble(t, func(b bubble) {
					admin, c := b.Open(), b.Open()
					for _, path := range []string{"/there", "/old", "/names", "/witnesses"} {
						require.NoError(b, admin.Create(b.Context(), path, nil))
					}
					b.acquire(c, coord.Spec{Line: coord.Line{Dir: "/held"}, Kind: "lock", Exclusive: true})
					fault := b.Server.Inject(zkembed.Match{
						Ops: []zkembed.Op{op}, Times: 10 * most,
						Func: func(r zkembed.Request) bool {
							return r.Session != admin.Info().SessionID
						},
					}, zkembed.ReplyError(code))
					ctx, results := b.Within(within), map[string]<-chan error{}
					for name, call := range everyCall {
						results[name] = coordtest.Go(func() error { return call.make(ctx, c) })
					}
					for name, result := range results {
						err := <-result
						if everyCall[name].asks == op {
							answered(b, name, err, code)
						}
					}
					require.Less(b, fault.Fired(), most, "operation %d", op)
					fault.Remove()
				})
			}
		})
	}
}
