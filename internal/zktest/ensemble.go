package zktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// Ens is three real servers that elect a leader among themselves.
type Ens struct {
	servers []*Server
	peers   []*port // the quorum and election port of each server
	links   []*Link
}

// startEnsemble starts three servers and waits until all serve.
func startEnsemble(opts []ServerOption) (_ *Ens, err error) {
	e := &Ens{}
	defer func() {
		if err != nil {
			e.close(true, "start")
		}
	}()
	for id := 1; id <= 3; id++ {
		s, err := newServer(id, opts)
		if err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
		for range 2 {
			p, err := reservePort()
			if err != nil {
				return nil, err
			}
			e.peers = append(e.peers, p)
		}
	}
	if err := e.introduce(); err != nil {
		return nil, err
	}
	for _, s := range e.servers {
		if err := s.Launch(); err != nil {
			return nil, err
		}
	}
	return e, e.AwaitReady()
}

// introduce writes the addresses of the others into each server's
// configuration: their quorum ports, behind a proxy of the server's own if it
// is to have links, and their election ports.
func (e *Ens) introduce() error {
	for i, s := range e.servers {
		link := &Link{}
		e.links = append(e.links, link)
		for j, other := range e.servers {
			quorum, election := fmt.Sprintf("127.0.0.1:%d", e.peers[2*j].number), e.peers[2*j+1].number
			if s.config.links && i != j {
				p, err := proxy.NewRaw(quorum)
				if err != nil {
					return err
				}
				link.proxies = append(link.proxies, p)
				quorum = p.Addr()
			}
			s.config.lines[fmt.Sprintf("server.%d", other.id)] = fmt.Sprintf("%s:%d", quorum, election)
		}
	}
	return nil
}

// AwaitReady returns when all three servers serve, one of them as leader.
func (e *Ens) AwaitReady() error {
	for _, s := range e.servers {
		if err := s.AwaitReady(); err != nil {
			return err
		}
	}
	_, err := e.Leader()
	return err
}

// Servers returns the three servers, in the order of ConnectString.
func (e *Ens) Servers() []*Server { return e.servers }

// ConnectString names all three servers.
func (e *Ens) ConnectString() string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Leader waits until a server says it leads, and returns it. Servers named as
// except do not count: a leader that was stopped and continued says for a while
// that it leads, though there is another.
func (e *Ens) Leader(except ...*Server) (*Server, error) {
	var leader *Server
	found := func() bool {
		for a := range e.ask(except) {
			if a.mode == "leader" {
				leader = a.server
				return true
			}
		}
		return false
	}
	if !poll(readyWithin, found) {
		return nil, errors.New("zktest: the ensemble has no leader")
	}
	return leader, nil
}

// Followers returns the servers that say they follow.
func (e *Ens) Followers() []*Server {
	modes := map[*Server]string{}
	for a := range e.ask(nil) {
		modes[a.server] = a.mode
	}
	return slices.DeleteFunc(slices.Clone(e.servers), func(s *Server) bool { return modes[s] != "follower" })
}

// role is a server's answer about its role.
type role struct {
	server *Server
	mode   string
}

// ask asks all servers together, since the timeout for a stopped one is
// seconds, and gives the answers as they come.
func (e *Ens) ask(except []*Server) <-chan role {
	answers := make(chan role, len(e.servers))
	var wg sync.WaitGroup
	for _, s := range e.servers {
		if !slices.Contains(except, s) {
			wg.Go(func() { answers <- role{s, s.Mode()} })
		}
	}
	go func() { wg.Wait(); close(answers) }()
	return answers
}

// ExpireSession ends a session as if it had expired, through any server that
// answers.
func (e *Ens) ExpireSession(id int64) error {
	var errs []error
	for _, s := range e.servers {
		err := s.ExpireSession(id)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// DropConn makes the server that a session is connected to close that
// connection; the session lives on.
func (e *Ens) DropConn(id int64) error {
	for _, s := range e.servers {
		if timeouts, err := s.sessionTimeouts(); err == nil {
			if _, ok := timeouts[id]; ok {
				return s.DropConn(id)
			}
		}
	}
	return fmt.Errorf("zktest: no server has a connection of session 0x%x", id)
}

func (e *Ens) close(keepLogs bool, label string) {
	for _, s := range e.servers {
		s.close(keepLogs, label)
	}
	for _, l := range e.links {
		l.close()
	}
	for _, p := range e.peers {
		p.release()
	}
}
