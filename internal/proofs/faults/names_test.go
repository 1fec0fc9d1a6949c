package faults

import (
	"context"
	"fmt"
	"strings"
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

// foreignName is one of many names of no known shape.
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
		s.release(s.handOver(h, waiter))
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
