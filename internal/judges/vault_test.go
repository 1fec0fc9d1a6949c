package judges

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// vaultBackend makes Vault's locks of a folder. Their value, the address of the
// active node, is what a candidate campaigns with.
type vaultBackend struct {
	client *coord.Client
	dir    string
}

func (vaultBackend) HAEnabled() bool { return true }

func (b vaultBackend) LockWith(key, value string) (physical.Lock, error) {
	e, err := election.New(b.client, b.dir+"/"+key)
	return &vaultLock{election: e, value: value}, err
}

type vaultLock struct {
	election *election.Election
	value    string
	term     *election.Term
}

func (l *vaultLock) Lock(stop <-chan struct{}) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	term, err := l.election.Campaign(ctx, []byte(l.value))
	if err != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return nil, err
	}
	l.term = term
	return term.Done(), nil
}

func (l *vaultLock) Unlock() error { return l.term.Resign(context.Background()) }

func (l *vaultLock) Value() (held bool, value string, err error) {
	leader, err := l.election.Leader(context.Background())
	if errors.Is(err, election.ErrNoLeader) {
		return false, "", nil
	}
	return err == nil, string(leader.Data), err
}

func TestVaultAcceptsOurElection(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one := vaultBackend{coordtest.Open(t, w.ConnectString()), w.Path("core")}
		other := vaultBackend{coordtest.Open(t, w.ConnectString()), w.Path("core")}
		physical.ExerciseHABackend(t, one, other)
	})
}
