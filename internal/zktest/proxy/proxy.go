package proxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Direction names one or both ways through a proxy.
type Direction int

// The directions, to be combined by or.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// dialWithin bounds the connection to the server, which is on this machine.
const dialWithin = 5 * time.Second

// Proxy forwards connections to one address. Its methods may be called from any
// goroutine.
type Proxy struct {
	target   string
	raw      bool
	listener net.Listener
	wg       sync.WaitGroup
	done     chan struct{}

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, when a condition changes
	closed   bool
	conns    map[*conn]struct{}
	rules    []*Rule
	hole     Direction
	refuse   bool
	hang     bool
	delay    map[Direction]latency
	rate     int
	stats    Stats
	requests map[int32]int
}

type latency struct{ base, jitter time.Duration }

// Stats counts what a proxy did. Counters only grow.
type Stats struct {
	Conns   int // connections forwarded to the server
	Cut     int // connections cut, by a fault, CutAll or Flap
	Refused int // connections refused
	Hung    int // connections accepted and left without an answer
	GivenUp int // connections that their client closed before the server was called
	Held    int // packets (of a raw proxy: chunks) that had to wait in a black hole
	Lost    int // packets that were dropped by CutWay
	Delayed int // packets that were delayed by the condition Delay

	Passed [Both]Traffic // what was forwarded, by direction
}

// Traffic is what was forwarded in one direction.
type Traffic struct {
	Packets int // of a raw proxy: chunks
	Bytes   int
}

// Total adds up what several proxies did.
func Total(proxies []*Proxy) (sum Stats) {
	for _, p := range proxies {
		s := p.Stats()
		sum.Conns += s.Conns
		sum.Cut += s.Cut
		sum.Refused += s.Refused
		sum.Hung += s.Hung
		sum.GivenUp += s.GivenUp
		sum.Held += s.Held
		sum.Lost += s.Lost
		sum.Delayed += s.Delayed
	}
	return sum
}

// New starts a proxy in front of the server at target.
func New(target string) (*Proxy, error) { return listen(target, false) }

// NewRaw starts a proxy that does not look at what it forwards, for protocols
// other than the client's.
func NewRaw(target string) (*Proxy, error) { return listen(target, true) }

func listen(target string, raw bool) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: listening: %w", err)
	}
	p := &Proxy{
		target: target, raw: raw, listener: listener,
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
		conns:    map[*conn]struct{}{},
		delay:    map[Direction]latency{},
		requests: map[int32]int{},
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and all its connections, and waits for its goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.done)
	}
	p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.current() {
		c.cut()
	}
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.admit(client)
	}
}

// admit decides about a new connection.
func (p *Proxy) admit(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		_ = client.Close()
	case p.refuse:
		p.stats.Refused++
		_ = client.(*net.TCPConn).SetLinger(0) // a reset, the nearest to a refusal that keeps the port
		_ = client.Close()
	default:
		if p.hang {
			p.stats.Hung++
		}
		c := newConn(p, client)
		p.conns[c] = struct{}{}
		p.wg.Go(c.run)
	}
}

// set changes a condition and wakes all that wait for one.
func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Blackhole lets nothing more arrive in the given direction: no data, no end of
// a connection. The sender notices nothing. What was sent meanwhile arrives
// after Heal, as after a lost packet, except that a connection begun and given
// up meanwhile never reaches the server.
func (p *Proxy) Blackhole(d Direction) { p.set(func() { p.hole |= d }) }

// Delay adds base and a random part of jitter to the way of every packet, which
// keep their order.
func (p *Proxy) Delay(d Direction, base, jitter time.Duration) {
	p.set(func() {
		for _, one := range []Direction{ToServer, ToClient} {
			if d&one != 0 {
				p.delay[one] = latency{base, jitter}
			}
		}
	})
}

// Rate lets no more than so many bytes in a second pass on each connection,
// each way.
func (p *Proxy) Rate(bytes int) { p.set(func() { p.rate = bytes }) }

// Refuse resets new connections immediately. Existing ones stay.
func (p *Proxy) Refuse() { p.set(func() { p.refuse = true }) }

// Hang accepts new connections and does not answer, like a stopped server.
// Those there are stay.
func (p *Proxy) Hang() { p.set(func() { p.hang = true }) }

// Heal ends all conditions. Rules stay.
func (p *Proxy) Heal() {
	p.set(func() {
		p.hole, p.refuse, p.hang, p.rate = 0, false, false, 0
		clear(p.delay)
	})
}

// CutAll cuts all connections there are and returns how many.
func (p *Proxy) CutAll() int {
	cut := 0
	for _, c := range p.current() {
		if c.cut() {
			cut++
		}
	}
	p.tally(func(s *Stats) { s.Cut += cut })
	return cut
}

// CutWay breaks one direction of all connections there are, and returns how
// many: what is under way there, also in a black hole, is lost, and so is what
// comes later. Neither end notices before the connection is cut (CutAll).
func (p *Proxy) CutWay(d Direction) int {
	cut := 0
	for _, c := range p.current() {
		if c.lose(d) {
			cut++
		}
	}
	p.set(func() {}) // the contents of a black hole are dropped now
	return cut
}

// Flap cuts all connections again and again, after random times between least
// and most, until stop is called. stop returns how many connections were cut.
func (p *Proxy) Flap(least, most time.Duration, seed uint64) (stop func() int) {
	random := rand.New(rand.NewPCG(seed, 0))
	quit, result := make(chan struct{}), make(chan int, 1)
	p.wg.Go(func() {
		cut := 0
		defer func() { result <- cut }()
		for {
			select {
			case <-time.After(least + time.Duration(random.Int64N(int64(most-least)+1))):
				cut += p.CutAll()
			case <-quit:
				return
			case <-p.done:
				return
			}
		}
	})
	return sync.OnceValue(func() int { close(quit); return <-result })
}

func (p *Proxy) current() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.conns))
}

// tally counts what the proxy did.
func (p *Proxy) tally(count func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count(&p.stats)
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Requests returns how many requests of each opcode were forwarded to the
// server since the last ResetRequests.
func (p *Proxy) Requests() map[int32]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.requests)
}

// ResetRequests sets the counters of Requests to zero.
func (p *Proxy) ResetRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.requests)
}
