package soak

import (
	"context"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"
)

// register is the resource that locks protect: it remembers the largest token
// it has seen at each place and refuses smaller ones. Children reach it by TCP.
type register struct {
	listener net.Listener

	mu       sync.Mutex
	largest  map[string]int64
	uses     int
	rejected int
}

func newRegister() (*register, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &register{listener: listener, largest: map[string]int64{}}
	server := rpc.NewServer()
	if err := server.RegisterName("register", g); err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn) // until the child has ended
		}
	}()
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
	g.largest[place] = token
	return true
}

// Access is a use of the resource at a place with a token.
type Access struct {
	Place string
	Token int64
}

// Answer is use for children.
func (g *register) Answer(a Access, accepted *bool) error {
	*accepted = g.use(a.Place, a.Token)
	return nil
}

// remoteUse is use by a child. It panics if there is no answer: the soak needs
// it.
func remoteUse(register *rpc.Client, place string, token int64) (accepted bool) {
	if err := register.Call("register.Answer", Access{place, token}, &accepted); err != nil {
		panic(err)
	}
	return accepted
}

// revived is how long after the last fault a client must be granted something
// at a place, if one connected client is enough for a grant: the sessions of
// clients that are gone end within T, and a hold that lasts is released within
// its time.
func revived(p place) (limit time.Duration, sure bool) {
	if p.name == "meeting" || p.name == "gate" { // need all members, or the gate's keeper
		return 0, false
	}
	return T + 2*time.Second + p.hold[1], true
}

// judgeRevival reports places whose first grant came too late. The delay of
// timers is allowed for.
func (r *run) judgeRevival(first map[string]time.Duration, lag time.Duration) {
	for _, p := range places {
		limit, sure := revived(p)
		took, granted := first[p.name]
		switch {
		case !sure:
		case !granted:
			r.tally.problem("%s: nothing was granted for %v after the last fault", p.name, stuckAfter)
		case took > limit+lag:
			r.tally.problem("%s: nothing was granted for %v after the last fault; timers were late by %v", p.name, took, lag)
		}
	}
}

// stuck lists the workers that are granted nothing in time after the faults,
// and returns how long the first grant took at each place.
func (r *run) stuck(over time.Time) (names []string, first map[string]time.Duration) {
	first = map[string]time.Duration{}
	all := r.pulse.workers(r.clients()...)
	all = slices.DeleteFunc(all, func(who string) bool { return slices.Contains(r.sharing.names, who) }) // see judgeShards
	await(context.Background(), stuckAfter, func() bool {
		names = nil
		for _, who := range all {
			if !r.pulse.since(who, over) {
				names = append(names, who)
			}
		}
		for _, p := range places {
			if _, known := first[p.name]; !known && r.pulse.since(r.w.Path(p.name), over) {
				first[p.name] = time.Since(over)
			}
		}
		return len(names) == 0 && len(first) == len(places)
	})
	return names, first
}

// clients lists the names of all clients.
func (r *run) clients() (names []string) {
	for _, m := range r.fleet {
		names = append(names, m.Name)
	}
	for _, k := range r.children {
		names = append(names, k.name)
	}
	return names
}
