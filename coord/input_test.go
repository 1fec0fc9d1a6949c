package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func TestOpenRefusesWhatCannotBeRight(t *testing.T) {
	for servers, hint := range map[string]string{
		"":                    "a server is empty",
		",host:2181":          "a server is empty",
		"host:2181,":          "a server is empty",
		"host:port":           "port must be a number",
		"host:0":              "port must be a number",
		"host:65536":          "port must be a number",
		"::1:2181":            "brackets",
		"a b:2181":            "separated by commas",
		"a:1 b:2":             "separated by commas",
		"a:1;b:2":             "separated by commas",
		":2181":               "no usable host name",
		"http://host:2181/a":  "no scheme: host:port",
		"host:2181/":          "",
		"host:2181//a":        "a name is empty",
		"host:2181/a/":        "must not end with /",
		"host:2181/a/../b":    `".." is not allowed`,
		"host:2181/a\x01b":    "U+0001",
		"host:2181/a,host:99": "",
	} {
		if hint == "" {
			continue
		}
		_, err := coord.Open(context.Background(), servers)
		require.ErrorIs(t, err, coord.ErrInvalid, "%q", servers)
		require.ErrorContains(t, err, hint, "%q", servers)
	}
}

func TestOpenRefusesOptionsThatCannotBeRight(t *testing.T) {
	for hint, option := range map[string]coord.Option{
		"session time-out 0s":  coord.WithSessionTimeout(0),
		"session time-out -1s": coord.WithSessionTimeout(-time.Second),
		"tick -1ns":            coord.WithTick(-1),
		"empty ACL":            coord.WithACL(),
		"scheme is empty":      coord.WithAuth("", "x"),
		"dialer is nil":        coord.WithDialer(nil),
		"TLS":                  coord.WithTLS(nil),
		"logger is nil":        coord.WithLogger(nil),
		"observer is nil":      coord.WithObserver(nil),
		"one line":             coord.WithIdentity("two\nlines"),
		"write scheme:id":      coord.WithACL("world:anyone"),
		"ACL \":anyone:r\"":    coord.WithACL(":anyone:r"),
		"out of cdrwa":         coord.WithACL("world:anyone:r", "world:anyone:rx"),
		"dialect":              coord.WithDialect("other"),
		"option is nil":        nil,
	} {
		_, err := coord.Open(context.Background(), "localhost:2181", option)
		require.ErrorIs(t, err, coord.ErrInvalid, hint)
		require.ErrorContains(t, err, hint)
	}
}

func TestOpenEndsByItsContextWhenNoServerAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := coord.Open(ctx, "127.0.0.1:1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "refused")
}

func TestPathsThatCannotBeRightAreRefusedBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for path, hint := range map[string]string{
			"": "empty", "/": "root", "relative": "start with /", "/a/": "end with /", "/a//b": "name is empty",
			"/a/./b": "not allowed", "/nul\x00": "U+0000", "/\xff": "UTF-8", "/private\ue000": "U+E000",
			"/special\ufff5": "U+FFF5", "/emoji\U0001f512": "U+1F512", "/last\U0010ffff": "U+10FFFF",
		} {
			_, err := lock.New(c, path)
			require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
			require.ErrorContains(t, err, hint, "%q", path)
			if path != "/" {
				_, _, err = c.Get(b.Context(), path)
				require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
			}
		}
	})
}

func TestDataThatAServerWouldNotAcceptIsRefusedAndNothingElseIsHarmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		large := []byte(strings.Repeat("x", 1<<20))
		require.ErrorIs(t, c.Create(b.Context(), "/large", large), coord.ErrTooLarge)
		spec := mutex
		spec.Data = large
		require.ErrorIs(t, coordtest.Err(c.Acquire(b.Context(), spec, first)), coord.ErrTooLarge)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestASequenceNearItsEndIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/lock"))
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1-1<<16))
		h := b.acquire(c)
		require.NoError(t, h.Release(b.Context()))
		require.ErrorIs(t, coordtest.Err(c.Acquire(b.Context(), mutex, first)), coord.ErrSequenceExhausted)
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1))
		require.ErrorIs(t, coordtest.Err(c.Acquire(b.Context(), mutex, first)), coord.ErrSequenceExhausted)
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestASequenceNearItsEndIsRefusedBehindManyOfTheSameClient(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		c := b.connected()
		giveUp := b.queueUp(c, 20)
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1))
		require.ErrorIs(t, coordtest.Err(c.Acquire(b.Within(time.Second), mutex, coord.First)), coord.ErrSequenceExhausted)
		giveUp()
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestErrorsNameTheOperationAndThePath(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		_, _, err := c.Get(b.Context(), "/missing")
		var op *coord.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "get", op.Op)
		require.Equal(t, "/missing", op.Path)
		require.ErrorIs(t, err, coord.ErrNoNode)
		require.EqualError(t, err, "get /missing: node does not exist")
	})
}

func TestOpenReportsThatTheServerRefusesTheCredentials(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, err := coord.Open(b.Context(), b.Server.ConnectString(), coord.WithDialer(b.Server.DialContext), coord.WithAuth("no-such-scheme", "x"))
		require.ErrorIs(t, err, coord.ErrAuthFailed)
		time.Sleep(10 * time.Second) // the client closes in the background
	})
}

// A server may grant less than was asked for; the limits follow what it
// granted.
func TestTheGrantedTimeoutCounts(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithSessionTimeout(time.Hour))
		require.Equal(t, 20*tick, c.SessionTimeout())
		h := b.acquire(c)
		require.LessOrEqual(t, time.Until(h.Deadline()), 20*tick)
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestTheRootIsNoNameToClaim(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.ErrorIs(t, coordtest.Err(c.JoinName(b.Context(), coord.NameSpec{Path: "/"})), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(c.AcquireName(b.Context(), coord.NameSpec{Path: "/"})), coord.ErrInvalid)
	})
}

func TestAnOperationWithoutAParentSaysThatTheParentIsMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, err := b.Open().Txn(b.Context(), coord.CheckOp("/", -1), coord.CreateOp("/missing/n", nil))
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.EqualError(b, err, "transaction: operation 1 (create /missing/n): parent /missing: node does not exist")
	})
}

func TestAWaitThatItsDeadlineEndsNamesWhoHoldsOrIsAhead(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, second, last := b.Open(), b.Open(), b.Open()
		h := b.acquire(holder)
		waits := func(c *coord.Client, most time.Duration) error {
			_, err := c.Acquire(b.Within(most), mutex, first)
			return err
		}
		over := make(chan error, 1)
		go func() { over <- waits(second, time.Minute) }()
		time.Sleep(time.Second)
		err := waits(last, time.Second)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.EqualError(b, err, `acquire /lock: context deadline exceeded; behind "`+second.Identity()+`"`)
		require.EqualError(b, <-over, `acquire /lock: context deadline exceeded; held by "`+holder.Identity()+`"`)
		require.NoError(b, h.Release(b.Context()))
	})
}

// Another program's node may have anything for data.
func TestAWaitBehindANodeThatDoesNotSayWhoItIsNamesTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		node := "/lock/_c_4f1d5b2c-0000-4000-8000-000000000000-lock-0000000000"
		require.NoError(b, c.Create(b.Context(), node, nil))
		require.ErrorContains(b, coordtest.Err(b.Open().Acquire(b.Within(time.Second), mutex, first)), "; held by "+node)
	})
}
