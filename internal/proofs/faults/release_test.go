package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF06TheReplyToADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		m := s.mutex(s.behind())
		h, err := m.Acquire(s.Context())
		require.NoError(s, err)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.CutOnReply})
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		require.Empty(s, s.nodes())
		again, err := m.Acquire(s.Context())
		require.NoError(s, err)
		s.isSoleHolder(again)
		s.release(again)
	})
}

func TestF07ADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(2)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		begun := time.Now()
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		s.release(s.grantedWithin(2*time.Second, waiter, begun))
	})
}

// A release whose caller does not wait goes on by itself.
func TestF07AReleaseThatIsLeftGoesOn(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		p := s.w.Proxy()
		lost := p.Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		p.Refuse()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-lost.First()
			cancel()
		}()
		require.Error(s, h.Release(ctx))
		require.Len(s, s.nodes(), 1)
		p.Heal()
		s.release(h) // the same answer as the background's
		require.Empty(s, s.nodes())
	}, zktest.Embedded, zktest.Real)
}
