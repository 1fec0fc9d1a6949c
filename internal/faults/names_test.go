package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func (s scene) foreign(name string) {
	s.Helper()
	acl := zk.WorldACL(zk.PermAll)
	for at, c := range s.dir() {
		if c == '/' && at > 0 {
			_, err := s.w.Admin().Create(s.dir()[:at], nil, 0, acl)
			require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
		}
	}
	_, err := s.w.Admin().Create(s.dir(), nil, 0, acl)
	require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
	_, err = s.w.Admin().Create(s.dir()+"/"+name, nil, 0, acl)
	require.NoError(s, err)
}

// foreignName is one of many names that belong to nobody.
func (s scene) foreignName(i int) string {
	return fmt.Sprintf("%s/%s-%d", s.dir(), strings.Repeat("foreign", 12), i)
}

func TestF40NamesOfNoKnownDialectAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		for _, name := range []string{"garbage", "_c_short", "_c_", "lock-", "日本語", "-lock-0000000001", "x-lock-99999999999"} {
			s.foreign(name)
		}
		c := s.behind()
		s.release(s.acquire(c))
		// The recovery of a lost create reads the names, too.
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		h := s.acquire(c)
		require.Equal(s, 1, lost.Fired())
		waiter := s.start(context.Background(), s.client())
		s.release(h)
		s.release(s.granted(waiter))
	})
}

func TestF40TenThousandForeignNamesAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		s.foreign("first")
		s.crowd(10_000)
		s.release(s.acquire(s.client()))
	})
}

func TestF40AContenderOfTheOtherDialectThatCameFirstIsRefused(t *testing.T) {
	each(t, func(s scene) {
		kazoo := s.client(coord.WithDialect(coord.Kazoo))
		h := s.acquire(kazoo)
		_, err := s.mutex(s.client()).Acquire(context.Background())
		require.ErrorIs(s, err, coord.ErrForeign)
		require.ErrorContains(s, err, h.Node()[len(s.dir())+1:])
		_, err = s.mutex(s.client()).TryAcquire(context.Background())
		require.ErrorIs(s, err, coord.ErrForeign)
		s.awaitNodes(1)
		s.release(h)
	})
}

// Of 1,000 acquires that are cancelled at random moments, in every stage from
// the create to the grant, nothing is left behind.
func TestF44ACancelStormLeavesNothing(t *testing.T) {
	each(t, func(s scene) {
		clients := []*coord.Client{s.client(), s.client()}
		const acquires = 1000
		var wg sync.WaitGroup
		var mu sync.Mutex
		granted, cancelled := 0, 0
		limit := make(chan struct{}, 50)
		random := s.random()
		begun := time.Now()
		s.release(s.acquire(clients[0]))
		longest := max(150*time.Millisecond, 100*time.Since(begun)) // on a busy machine
		for i := range acquires {
			m := s.mutex(clients[i%2])
			limit <- struct{}{}
			after := time.Duration(random.Int64N(int64(longest)))
			wg.Go(func() {
				defer func() { <-limit }()
				ctx, cancel := context.WithTimeout(context.Background(), after)
				defer cancel()
				h, err := m.Acquire(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					cancelled++
					return
				}
				granted++
				if err := h.Release(context.Background()); err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		require.Positive(s, cancelled)
		require.Positive(s, granted)
		s.Logf("%d granted, %d cancelled", granted, cancelled)
		s.release(s.acquire(clients[0]))
		zktest.Eventually(s, T, func() bool { return len(s.nodes()) == 0 }, "nodes are left: %v", s.nodes())
	})
}
