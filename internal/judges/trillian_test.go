package judges

import (
	"context"
	"testing"

	"github.com/google/trillian/util/election2"
	"github.com/google/trillian/util/election2/testonly"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// trillianElections makes Trillian's elections of a folder.
type trillianElections struct {
	client *coord.Client
	dir    string
}

func (f trillianElections) NewElection(_ context.Context, resource string) (election2.Election, error) {
	e, err := election.New(f.client, f.dir+"/"+resource)
	return &trillianElection{election: e}, err
}

// trillianElection is not for concurrent use, as its interface says.
type trillianElection struct {
	election *election.Election
	term     *election.Term // nil: none yet
}

func (e *trillianElection) leads() bool { return e.term != nil && e.term.Err() == nil }

func (e *trillianElection) Await(ctx context.Context) (err error) {
	if e.leads() {
		return nil
	}
	e.term, err = e.election.Campaign(ctx, nil)
	return err
}

func (e *trillianElection) WithMastership(ctx context.Context) (context.Context, error) {
	if e.leads() {
		return e.term.Context(ctx), nil
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended, nil
}

func (e *trillianElection) Resign(ctx context.Context) error {
	if e.term == nil {
		return nil
	}
	return e.term.Resign(ctx)
}

func (e *trillianElection) Close(ctx context.Context) error { return e.Resign(ctx) }

func TestTrillianAcceptsOurElection(t *testing.T) {
	require.NotEmpty(t, testonly.Tests)
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, test := range testonly.Tests {
			t.Run(test.Name, func(t *testing.T) {
				test.Run(t, trillianElections{coordtest.Open(t, w.ConnectString()), w.Path(test.Name)})
			})
		}
	})
}
