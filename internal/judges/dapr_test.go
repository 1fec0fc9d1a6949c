package judges

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	daprlock "github.com/dapr/components-contrib/lock"
	suite "github.com/dapr/components-contrib/tests/conformance/lock"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// daprStore has Dapr's locks: with an owner, who may be anybody's name, and a
// time after which they are free.
type daprStore struct {
	client *coord.Client
	dir    string

	mu    sync.Mutex
	holds map[string]*coord.Hold // of this store, by resource
}

func (s *daprStore) InitLockStore(ctx context.Context, _ daprlock.Metadata) error {
	s.holds = map[string]*coord.Hold{}
	return nil
}

func (s *daprStore) Close() error { return s.client.Close(context.Background()) }

func (s *daprStore) mutex(resource string, opts ...lock.Option) (*lock.Mutex, error) {
	return lock.New(s.client, s.dir+"/"+resource, opts...)
}

func (s *daprStore) TryLock(ctx context.Context, r *daprlock.TryLockRequest) (*daprlock.TryLockResponse, error) {
	m, err := s.mutex(r.ResourceID, lock.Data([]byte(r.LockOwner)),
		lock.MaxHold(time.Duration(r.ExpiryInSeconds)*time.Second, 0))
	if err != nil {
		return nil, err
	}
	hold, err := m.TryAcquire(ctx)
	if errors.Is(err, coord.ErrBusy) {
		return &daprlock.TryLockResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[r.ResourceID] = hold
	return &daprlock.TryLockResponse{Success: true}, nil
}

func (s *daprStore) Unlock(ctx context.Context, r *daprlock.UnlockRequest) (*daprlock.UnlockResponse, error) {
	status, err := s.unlock(ctx, r)
	if err != nil {
		status = daprlock.InternalError
	}
	return &daprlock.UnlockResponse{Status: status}, err
}

func (s *daprStore) unlock(ctx context.Context, r *daprlock.UnlockRequest) (daprlock.Status, error) {
	m, err := s.mutex(r.ResourceID)
	if err != nil {
		return 0, err
	}
	line, err := m.Contenders(ctx)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	hold := s.holds[r.ResourceID]
	s.mu.Unlock()
	switch {
	case len(line) == 0:
		return daprlock.LockDoesNotExist, nil
	case line[0].Owner != r.LockOwner, hold == nil, hold.Node() != line[0].Node:
		return daprlock.LockBelongsToOthers, nil
	}
	return daprlock.Success, hold.Release(ctx)
}

func TestDaprAcceptsOurLock(t *testing.T) {
	config, err := suite.NewTestConfig("zookeeper", nil, nil)
	require.NoError(t, err)
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		suite.ConformanceTests(t, nil, &daprStore{client: coordtest.Open(t, w.ConnectString()), dir: w.Path("locks")}, config)
	})
}
