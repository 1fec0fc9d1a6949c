package soak

import (
	"bufio"
	"fmt"
	"net"
	"sync"
)

// register is the resource that locks protect: it remembers the largest token
// it has seen at each place and refuses smaller ones. Children reach it by TCP.
type register struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	largest  map[string]int64
	accepted map[string][]int64 // tokens, in order, without repetitions
	uses     int
	rejected int
}

func newRegister() (*register, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &register{listener: listener, conns: map[net.Conn]struct{}{}, largest: map[string]int64{}, accepted: map[string][]int64{}}
	g.wg.Go(g.serve)
	return g, nil
}

// use is one access with a token. It reports whether it was accepted.
func (g *register) use(place string, token int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.largest[place] {
		g.rejected++
		return false
	}
	g.uses++
	g.largest[place] = max(g.largest[place], token)
	if all := g.accepted[place]; len(all) == 0 || all[len(all)-1] != token {
		g.accepted[place] = append(all, token)
	}
	return true
}

// stale counts accesses that were accepted after one with a larger token.
func (g *register) stale() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, tokens := range g.accepted {
		for i := 1; i < len(tokens); i++ {
			if tokens[i] < tokens[i-1] {
				n++
			}
		}
	}
	return n
}

func (g *register) serve() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.conns[conn] = struct{}{}
		g.mu.Unlock()
		g.wg.Go(func() { g.answer(conn) })
	}
}

func (g *register) answer(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewScanner(conn); in.Scan(); {
		var place string
		var token int64
		if _, err := fmt.Sscan(in.Text(), &place, &token); err != nil {
			return
		}
		if _, err := fmt.Fprintln(conn, g.use(place, token)); err != nil {
			return
		}
	}
}

func (g *register) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	for conn := range g.conns {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

// remote is the register as a child sees it.
type remote struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

func dialRegister(addr string) (*remote, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &remote{conn: conn, in: bufio.NewReader(conn)}, nil
}

// use reports whether a token was accepted. It panics if there is no answer:
// the soak needs it.
func (m *remote) use(place string, token int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := fmt.Fprintln(m.conn, place, token)
	if err != nil {
		panic(err)
	}
	answer, err := m.in.ReadString('\n')
	if err != nil {
		panic(err)
	}
	return answer == "true\n"
}
