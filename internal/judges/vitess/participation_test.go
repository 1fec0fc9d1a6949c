package vitess

import (
	"context"
	"errors"
	"iter"
	"path"
	"sync"

	"vitess.io/vitess/go/vt/topo"

	"github.com/zkcoord/zkcoord/coord/election"
)

func (c *conn) NewLeaderParticipation(name, id string) (topo.LeaderParticipation, error) {
	e, err := election.New(c.client, path.Join(c.root, "elections", name))
	if err != nil {
		return nil, err
	}
	p := &participation{election: e, id: []byte(id)}
	p.running, p.stop = context.WithCancel(context.Background())
	return p, nil
}

type participation struct {
	election *election.Election
	id       []byte
	running  context.Context // until Stop
	stop     context.CancelFunc

	mu   sync.Mutex // held by a campaign, for which Stop waits
	term *election.Term
}

func (p *participation) WaitForLeadership() (context.Context, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	term, err := p.election.Campaign(p.running, p.id)
	if err != nil {
		return nil, topoError(err, p.election.Path())
	}
	p.term = term
	return term.Context(context.Background()), nil
}

func (p *participation) Stop() {
	p.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term != nil {
		_ = p.term.Resign(context.Background()) // otherwise it is repeated
	}
}

func (p *participation) GetCurrentLeaderID(ctx context.Context) (string, error) {
	leader, err := p.election.Leader(ctx)
	if errors.Is(err, election.ErrNoLeader) {
		return "", nil
	}
	return string(leader.Data), err
}

// WaitForNewLeader has observed the first leader when it returns.
func (p *participation) WaitForNewLeader(ctx context.Context) (<-chan string, error) {
	next, stop := iter.Pull2(p.election.Observe(ctx))
	leader, err, _ := next()
	if err != nil {
		stop()
		return nil, topoError(err, p.election.Path())
	}
	ids := make(chan string)
	go func() {
		defer stop()
		defer close(ids)
		for ; err == nil; leader, err, _ = next() {
			if leader.None() {
				continue
			}
			select {
			case ids <- string(leader.Data):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ids, nil
}
