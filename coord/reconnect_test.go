package coord_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// rewriting is a connection whose packets are changed before they are sent.
type rewriting struct {
	net.Conn
	change func(packet []byte)
}

func (r rewriting) Write(p []byte) (int, error) {
	r.change(p)
	return r.Conn.Write(p)
}

// The limits of session time-outs are each server's own.
func TestAHoldEndsWhenAnotherServerGivesItsSessionLessTime(t *testing.T) {
	inBubble(t, func(b bubble) {
		var dials atomic.Int32
		var refused atomic.Bool
		holder, other := b.Open(coord.WithTick(tick), coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if refused.Load() {
				return nil, net.ErrClosed
			}
			later := dials.Add(1) > 1
			conn, err := b.Server.DialContext(ctx, network, addr)
			return rewriting{conn, func(p []byte) {
				if later && len(p) > 40 && binary.BigEndian.Uint32(p[4:]) == 0 {
					binary.BigEndian.PutUint32(p[16:], uint32(2*tick/time.Millisecond))
				}
			}}, err
		})), b.Open()
		h := b.acquire(holder)
		require.NoError(t, b.Server.DropConn(h.Session()))
		time.Sleep(time.Second)
		require.Greater(t, dials.Load(), int32(1), "connected again")
		refused.Store(true)
		_ = b.Server.DropConn(h.Session())
		next, err := other.Acquire(b.Context(), mutex, first)
		require.NoError(t, err)
		require.True(t, ended(h), "two holders")
		require.ErrorIs(t, h.Err(), coord.ErrSessionExpired)
		refused.Store(false)
		require.NoError(t, next.Release(b.Context()))
		next = b.acquire(holder)
		require.Equal(t, 2*tick, holder.SessionTimeout())
		require.NoError(t, next.Release(b.Context()))
	})
}

// The credentials are presented again on every connection.
func TestAReleaseIsDoneWhenTheServerRefusesTheCredentialsMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		var stranded atomic.Int32
		var refusing atomic.Bool
		c := b.Open(coord.WithAuth("digest", "user:password"),
			coord.WithObserver(func(e coord.Event) {
				if e.Kind == coord.NodeStranded {
					stranded.Add(1)
				}
			}),
			coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := b.Server.DialContext(ctx, network, addr)
				return rewriting{conn, func(p []byte) {
					if len(p) > 12 && int32(binary.BigEndian.Uint32(p[8:])) == int32(zkembed.OpAuth) && refusing.Load() {
						p[20] = 'x' // of the scheme
					}
				}}, err
			}))
		h := b.acquire(c)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1}, zkembed.Drop())
		refusing.Store(true)
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 1, lost.Fired())
		require.Zero(t, stranded.Load())
		refusing.Store(false)
	})
}

// Simulation and soak look at the other calls.
func TestACallWhoseContextEndsAsTheConnectionIsLostTellsBoth(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for _, lost := range []error{coord.ErrDisconnected, coord.ErrSessionExpired} {
			ctx, cancel := context.WithCancel(b.Context())
			err := c.Retry(ctx, func(context.Context) error {
				cancel()
				return lost
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, lost)
		}
	})
}
