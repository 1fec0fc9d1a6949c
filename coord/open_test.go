package coord_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// transcript may be written and read at once.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// journal returns a logger and what it has written, line by line.
func journal(level slog.Level) (*slog.Logger, func(holding string) []string) {
	var text transcript
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))
	return log, func(holding string) (lines []string) {
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, holding) {
				lines = append(lines, line)
			}
		}
		return lines
	}
}

func TestWhatACloseEndsIsNoWarning(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelInfo)
		c := b.Open(coord.WithLogger(log))
		b.acquire(c)
		b.Close(c)
		require.Len(b, written(`msg="session over"`), 1)
		require.Len(b, written(`msg="hold lost"`), 1)
		require.Empty(b, written("level=WARN"))
	})
}

func TestALostSessionIsAWarning(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		c := b.Open(coord.WithLogger(log))
		h := b.acquire(c)
		require.NoError(b, b.Server.ExpireSession(c.SessionID()))
		<-h.Done()
		time.Sleep(time.Second)
		require.Len(b, written(`msg="session over"`), 1)
		require.Len(b, written(`msg="hold lost"`), 1)
	})
}

func TestServersThatCannotBeReachedAreWarnedOfWithTheReasonAfterSomeSecondsAndAgainAtIntervals(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		b.Open(coord.WithLogger(log))
		cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		b.Server.DropConns()
		outage := func() []string { return written(`msg="no connection to any server"`) }
		time.Sleep(4 * time.Second)
		require.Empty(b, outage(), "a short outage is no news")
		time.Sleep(4 * T) // beyond several sessions
		warned := len(outage())
		require.GreaterOrEqual(b, warned, 4)
		require.LessOrEqual(b, warned, 6)
		for _, line := range outage() {
			require.Contains(b, line, "refused")
		}
		require.Contains(b, outage()[warned-1], "for=1m", "the outage is one, over all sessions")
		cut.Heal()
		time.Sleep(T)
		require.Len(b, outage(), warned, "there is a connection")
	})
}

func TestAFirstConnectionThatTakesLongerThanASecondIsWarnedOfWithTheReasonForEachServer(t *testing.T) {
	wait := func(b bubble, opts ...coord.Option) {
		ctx := b.Within(20 * time.Second)
		_, err := coord.Open(ctx, "first:2181,second:2181", append(opts, coord.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, map[string]error{"first:2181": errors.New("nobody home"), "second:2181": errors.New("gone for lunch")}[addr]
		}))...)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "nobody home")
		time.Sleep(T) // the client closes in the background
	}
	judge := func(b bubble, lines []string) {
		require.Len(b, lines, 1)
		require.Contains(b, lines[0], "for=1s")
		require.Contains(b, lines[0], "first:2181: nobody home")
		require.Contains(b, lines[0], "second:2181: gone for lunch")
	}
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		wait(b, coord.WithLogger(log))
		judge(b, written("no connection to any server"))
	})
	inBubble(t, func(b bubble) { // the default logger, if there is no other
		log, written := journal(slog.LevelWarn)
		former := slog.Default()
		slog.SetDefault(log)
		defer slog.SetDefault(former)
		wait(b)
		judge(b, written("first:2181"))
		wait(b, coord.WithLogger(slog.New(slog.DiscardHandler)))
		judge(b, written("first:2181"))
	})
}

func TestAClientTellsWhetherItIsConnected(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.True(b, c.Connected())
		cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		b.Server.DropConns()
		time.Sleep(time.Second)
		require.False(b, c.Connected())
		cut.Heal()
		time.Sleep(T)
		require.True(b, c.Connected())
		b.Close(c)
		require.False(b, c.Connected())
	})
}

func TestEveryObserverHearsOfEveryEvent(t *testing.T) {
	inBubble(t, func(b bubble) {
		var first, second []string
		note := func(kinds *[]string) coord.Option {
			var mu sync.Mutex
			return coord.WithObserver(func(e coord.Event) {
				mu.Lock()
				defer mu.Unlock()
				*kinds = append(*kinds, e.Kind)
			})
		}
		c := b.Open(note(&first), note(&second))
		require.NoError(b, b.acquire(c).Release(b.Context()))
		b.Close(c)
		require.Contains(b, first, coord.ClaimGranted)
		require.Equal(b, first, second)
	})
}

func TestEachFailedAttemptToConnectIsLoggedOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelDebug)
		ctx := b.Within(4 * time.Second)
		attempts := 0
		refuse := func(context.Context, string, string) (net.Conn, error) {
			attempts++
			return nil, errors.New("nobody home")
		}
		require.Error(b, coordtest.Err(coord.Open(ctx, "zk:2181", coord.WithDialer(refuse), coord.WithLogger(log))))
		time.Sleep(T)
		require.Greater(b, attempts, 3)
		require.InDelta(b, attempts, len(written("nobody home")), 1, "the last one may be one of a session that is over")
	})
}

func TestAMissingChrootIsWarnedOf(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		open := func(chroot string, opts ...coord.Option) (*coord.Client, error) {
			opts = append(opts, coord.WithDialer(b.Server.DialContext), coord.WithLogger(log))
			c, err := coord.Open(b.Context(), b.Server.ConnectString()+chroot, opts...)
			if err == nil {
				b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
			}
			return c, err
		}
		c, err := open("/app")
		require.NoError(b, err)
		require.Len(b, written("chroot=/app"), 1)
		_, err = open("/app", coord.RequireChroot())
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.ErrorContains(b, err, "chroot /app")
		require.NotContains(b, err.Error(), "no session")

		require.NoError(b, c.EnsureDir(b.Context(), "/lock"))
		for _, opts := range [][]coord.Option{nil, {coord.RequireChroot()}} {
			require.NoError(b, coordtest.Err(open("/app", opts...)))
		}
		require.NoError(b, coordtest.Err(open("", coord.RequireChroot())), "there is none to look for")
		require.Len(b, written("chroot"), 1)
		time.Sleep(T) // for the client that could not be had
	})
}
