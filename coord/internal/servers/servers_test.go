package servers

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

// Users of other clients write a chroot behind each server.
func TestF69AChrootBehindEachServerIsRefusedWithTheRightForm(t *testing.T) {
	for list, right := range map[string]string{
		"h1:2181/app,h2:2181/app":          "h1:2181,h2:2181/app",
		"h1:2181/app,h2:2181":              "h1:2181,h2:2181/app",
		"h1/app/a, h2/app/a":               "h1, h2/app/a",
		"h1:2181/a,h2:2181/b":              "host:port,host:port/chroot",
		"h1:2181/,h2:2181/":                "h1:2181,h2:2181/",
		"h1:2181,h2:2181/app,h3:2181/app ": "h1:2181,h2:2181,h3:2181/app",
	} {
		_, _, err := Parse(list)
		require.ErrorIs(t, err, wire.ErrInvalid, list)
		require.ErrorContains(t, err, "the chroot stands once, behind the last server: "+right, list)
	}
	servers, chroot, err := Parse("h1,h2:2182/app")
	require.NoError(t, err)
	require.Equal(t, []string{"h1:2181", "h2:2182"}, servers)
	require.Equal(t, "/app", chroot)
}

func TestEachAddressOfANameIsAServer(t *testing.T) {
	dialled, reversed := map[string]int{}, false
	cfg := Config{
		Lookup: func(_ context.Context, host string) ([]string, error) {
			require.Equal(t, "zk", host)
			reversed = !reversed // as name servers do
			if reversed {
				return []string{"::1", "10.0.0.2", "10.0.0.1"}, nil
			}
			return []string{"10.0.0.1", "10.0.0.2", "::1"}, nil
		},
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled[addr]++
			return nil, errors.New("refused")
		},
	}
	cfg.Servers = []string{"zk:2181", "other:2181"}
	s := New(t.Context(), cfg, nil)
	require.Equal(t, 2, s.count())
	for range 3 {
		_, err := s.connect(t.Context(), "tcp", "zk:2181")
		require.Error(t, err)
	}
	require.Equal(t, map[string]int{"10.0.0.1:2181": 1, "10.0.0.2:2181": 1, "[::1]:2181": 1}, dialled)
	require.Equal(t, 4, s.count(), "the other was not looked up")
}

// With a short session, attempts at a server that hangs add up.
func TestAServerThatHangsDoesNotKeepTheOthersFromBeingTried(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		const timeout = 1200 * time.Millisecond
		began, serves := time.Now(), 8*time.Second
		var hanging atomic.Int32
		s := New(t.Context(), Config{
			Servers: []string{"hangs:2181", "comes:2181"},
			Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
				switch {
				case addr == "hangs:2181":
					hanging.Add(1)
					<-ctx.Done()
					return nil, ctx.Err()
				case time.Since(began) < serves:
					return nil, errors.New("refused")
				}
				conn, other := net.Pipe()
				_ = other.Close()
				return conn, nil
			},
		}, func(attempt func()) error { go attempt(); return nil })
		for {
			server, _ := s.Next()
			found, err := s.Connect("tcp", server, timeout, false, true)
			if err != nil {
				continue
			}
			require.Equal(t, "comes:2181", found.Server)
			require.NoError(t, found.Close())
			break
		}
		require.Less(t, time.Since(began)-serves, timeout)
		require.EqualValues(t, dialsAtOnce, hanging.Load())
	})
}
