package faults

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF06TheReplyToADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.CutOnReply})
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		s.release(s.acquire(c))
	})
}

func TestF07ADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(2)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		s.release(s.granted(waiter))
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
