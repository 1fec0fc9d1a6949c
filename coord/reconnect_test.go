package coord_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// outage is how servers are not there, for as long as it is on.
type outage struct {
	on   atomic.Bool
	over chan struct{} // closed at its end
	how  func(o *outage, ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error)

	mu    sync.Mutex
	dials []time.Time
}

func (o *outage) dialing(b bubble) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		o.mu.Lock()
		o.dials = append(o.dials, time.Now())
		o.mu.Unlock()
		dial := func() (net.Conn, error) { return b.Server.DialContext(ctx, network, addr) }
		if !o.on.Load() {
			return dial()
		}
		return o.how(o, ctx, dial)
	})
}

// since returns how many attempts there were, and the shortest time between two
// of them.
func (o *outage) since(begun time.Time) (n int, shortest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	shortest = time.Hour
	for i, at := range o.dials {
		if at.Before(begun) {
			continue
		}
		n++
		if n > 1 {
			shortest = min(shortest, at.Sub(o.dials[i-1]))
		}
	}
	return n, shortest
}

// heldBack is a connection on which nothing goes out before the outage is over.
type heldBack struct {
	net.Conn
	over   <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *heldBack) Write(p []byte) (int, error) {
	select {
	case <-l.over:
		return l.Conn.Write(p)
	default:
	}
	held := bytes.Clone(p)
	go func() {
		select {
		case <-l.over:
			_, _ = l.Conn.Write(held)
		case <-l.closed:
		}
	}()
	return len(p), nil
}

func (l *heldBack) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

var outages = map[string]func(o *outage, ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error){
	"refused": func(*outage, context.Context, func() (net.Conn, error)) (net.Conn, error) {
		return nil, syscall.ECONNREFUSED
	},
	"no route": func(o *outage, ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		select {
		case <-o.over:
			return dial()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	},
	"silent": func(o *outage, _ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		conn, err := dial()
		return &heldBack{Conn: conn, over: o.over, closed: make(chan struct{})}, err
	},
	"closed": func(*outage, context.Context, func() (net.Conn, error)) (net.Conn, error) {
		near, far := net.Pipe()
		return near, far.Close()
	},
}

// F76: what is left to be saved is worth an attempt every T/40. Then the
// servers, which have other clients to serve, get one a second.
func TestF76AfterAnOutageLongerThanTheTimeoutAClientTriesOnceASecond(t *testing.T) {
	for what, how := range outages {
		for _, servers := range []string{"a", "a,b,c"} {
			t.Run(what+" "+servers, func(t *testing.T) {
				inBubble(t, func(b bubble) {
					o := &outage{over: make(chan struct{}), how: how}
					c, err := coord.Open(b.Context(), servers, coord.WithSessionTimeout(T), o.dialing(b))
					require.NoError(b, err)
					defer b.Close(c)
					h := b.Hold(recipe.Acquire(b.Context(), c, &mutex, first))
					o.on.Store(true)
					begun := time.Now()
					require.NoError(b, b.Server.DropConn(h.Session()))
					time.Sleep(T * 3 / 4)
					if n, _ := o.since(begun); what == "refused" {
						require.Greater(b, n, 25, "as long as something can be saved")
					}
					time.Sleep(T / 2)
					slow := time.Now()
					time.Sleep(time.Minute)
					n, shortest := o.since(slow)
					b.Logf("%d attempts in a minute, at least %v apart", n, shortest)
					require.LessOrEqual(b, n, 60)
					require.GreaterOrEqual(b, shortest, time.Second)
					require.Greater(b, n, 3)
					o.on.Store(false)
					close(o.over)
					back := time.Now()
					require.NoError(b, coordtest.Write(b.Context(), c))
					b.Logf("back after %v", time.Since(back))
					require.LessOrEqual(b, time.Since(back), 1500*time.Millisecond)
				})
			})
		}
	}
}
