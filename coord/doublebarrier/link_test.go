package doublebarrier_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

// oneWay is how long a packet is on its way over a far link, tour there and
// back.
const (
	oneWay = 2 * time.Millisecond
	tour   = 2 * oneWay
)

// far is a connection over a link that delays each packet.
type far struct {
	net.Conn
	out, in chan packet
	rest    []byte
	once    sync.Once
	closed  chan struct{}
}

type packet struct {
	due  time.Time
	data []byte
	err  error
}

func newFar(c net.Conn) *far {
	f := &far{Conn: c, closed: make(chan struct{}), out: make(chan packet, 1<<8), in: make(chan packet, 1<<8)}
	go func() {
		for {
			select {
			case <-f.closed:
				return
			case p := <-f.out:
				time.Sleep(time.Until(p.due))
				if _, err := c.Write(p.data); err != nil {
					return
				}
			}
		}
	}()
	go func() {
		defer close(f.in)
		for {
			data := make([]byte, 1<<16)
			n, err := c.Read(data)
			f.in <- packet{time.Now().Add(oneWay), data[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return f
}

func (f *far) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *far) Write(data []byte) (int, error) {
	f.out <- packet{due: time.Now().Add(oneWay), data: append([]byte(nil), data...)}
	return len(data), nil
}

func (f *far) Read(data []byte) (int, error) {
	for len(f.rest) == 0 {
		p, open := <-f.in
		if !open {
			return 0, net.ErrClosed
		}
		time.Sleep(time.Until(p.due))
		if p.err != nil {
			return 0, p.err
		}
		f.rest = p.data
	}
	n := copy(data, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// distant opens n clients over such links.
func (b bubble) distant(n int) (clients []*coord.Client) {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := b.Server.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newFar(c), nil
	}
	for range n {
		clients = append(clients, b.Open(coord.WithSessionTimeout(calm), coord.WithDialer(dial)))
	}
	return clients
}

func TestARoundTakesAConstantAndSmallNumberOfRoundTripsInARow(t *testing.T) {
	for _, n := range []int{8, 32, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				inARow(t, b, b.distant(n))
			}, zkembed.WithSessionTimeouts(0, calm))
		})
	}
}

// inARow has the clients enter and leave a barrier, all at once and one of them
// last, and counts the round trips that the slowest needs, and what they ask
// for.
func inARow(t *testing.T, b bubble, clients []*coord.Client) {
	n := len(clients)
	members := make([]*doublebarrier.Member, n) // by index
	enter := func(i int) {
		m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
		require.NoError(t, err)
		members[m.Index()] = m
	}
	leave := func(i int) { require.NoError(t, members[i].Leave(b.Context())) }
	toEnter, each := time.Duration(5), 9*n // requests in a round that all come to and leave together
	if n <= doublebarrier.Small {
		toEnter, each = 4, 10*n
	}
	phase := func(what string, most time.Duration, last int, f func(i int)) (requests int) {
		var all sync.WaitGroup
		begun := time.Now()
		spent := b.phase(clients, func(i int) {
			switch {
			case last < 0:
				f(i)
			case i != last:
				all.Go(func() { f(i) })
			default:
				time.Sleep(time.Second)
				begun = time.Now()
				f(i)
				all.Wait()
			}
		})
		rounds := (time.Since(begun) - time.Second) / tour
		t.Logf("%s: %d round trips, %.2f requests per member", what, rounds, float64(total(spent))/float64(n))
		require.LessOrEqual(t, rounds, most, what)
		return total(spent)
	}
	b.phase(clients, enter) // which makes the barrier
	b.phase(clients, leave)
	for range 2 {
		requests := phase("all enter", toEnter, -1, enter) + phase("all leave", 5, -1, leave)
		require.LessOrEqual(t, requests, each+n/4)
		requests = phase("one enters last", toEnter, 0, enter) + phase("one leaves last", 5, n-1, leave)
		require.LessOrEqual(t, requests, each+2*n)
		requests = phase("one enters last", toEnter, n-1, enter) + phase("the monitor leaves last", 5, 0, leave)
		require.LessOrEqual(t, requests, each+2*n)
	}
}
