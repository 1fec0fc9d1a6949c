package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func (s scene) foreign(name string) {
	s.Helper()
	acl := zk.WorldACL(zk.PermAll)
	for at, c := range s.dir() {
		if c == '/' && at > 0 {
			_, err := s.admin().Create(s.dir()[:at], nil, 0, acl)
			require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
		}
	}
	_, err := s.admin().Create(s.dir(), nil, 0, acl)
	require.True(s, err == nil || err == zk.ErrNodeExists, "%v", err)
	_, err = s.admin().Create(s.dir()+"/"+name, nil, 0, acl)
	require.NoError(s, err)
}

// foreignName is one of many names that belong to nobody.
func (s scene) foreignName(i int) string {
	return fmt.Sprintf("%s/%s-%d", s.dir(), strings.Repeat("foreign", 12), i)
}

func TestF40NamesOfNoKnownDialectAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		names := []string{"garbage", "_c_short", "_c_", "lock-", "日本語", "-lock-0000000001", "x-lock-99999999999"}
		for _, name := range names {
			s.foreign(name)
		}
		c := s.behind()
		s.release(s.acquire(c))
		// The recovery of a lost create reads the names, too.
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		begun := time.Now()
		h := s.grantedWithin(progress, s.start(context.Background(), c), begun)
		require.Equal(s, 1, lost.Fired())
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(len(names) + 2)
		released := time.Now()
		s.release(h)
		s.release(s.grantedWithin(progress, waiter, released))
	})
}

func TestF40TenThousandForeignNamesAreIgnored(t *testing.T) {
	each(t, func(s scene) {
		s.foreign("first")
		s.crowd(10_000)
		c, begun := s.client(), time.Now()
		s.release(s.grantedWithin(progress, s.start(context.Background(), c), begun))
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
		const storm, most = 1000, 10_000
		var left atomic.Int64
		clients := s.clients(2, coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.ClaimLeft {
				left.Add(1)
			}
		}))
		for _, c := range clients {
			s.release(s.acquire(c))
		}
		took := time.Now()
		for range 10 {
			s.release(s.acquire(clients[0]))
		}
		one := time.Since(took) / 10
		base := len(goroutines(s.Name()))
		var wg sync.WaitGroup
		var granted, cancelled atomic.Int64
		// stages tells how many were cancelled while they waited, and before.
		stages := func() (waiting, before int64) { n := left.Load(); return n, cancelled.Load() - n }
		enough := func() bool {
			waiting, before := stages()
			return waiting+before >= storm && waiting >= storm/10 && before >= storm/10
		}
		limit := make(chan struct{}, 50)
		random, begun := s.random(), 0
		for ; !enough() && begun < most; begun++ {
			m := s.mutex(clients[begun%2])
			limit <- struct{}{}
			longest := []time.Duration{2, 40, 400}[begun/2%3] * one
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(longest))))
			wg.Go(func() {
				defer func() { <-limit }()
				defer cancel()
				h, err := m.Acquire(ctx)
				if err != nil {
					cancelled.Add(1)
					return
				}
				granted.Add(1)
				s.wait(one, time.Now())
				if err := h.Release(context.Background()); err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		waiting, before := stages()
		s.Logf("of %d, %d granted, %d cancelled while waiting, %d before; one takes %v", begun, granted.Load(), waiting, before, one)
		require.True(s, enough(), "too few were cancelled")
		require.Positive(s, granted.Load())
		s.release(s.acquire(clients[0]))
		s.leavesNothing()
		require.Empty(s, s.drained(T, func() []string {
			now := goroutines(s.Name())
			return now[:max(0, len(now)-base)]
		}), "more goroutines than before")
	})
}
