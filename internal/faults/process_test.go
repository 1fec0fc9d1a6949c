package faults

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func init() {
	zktest.RegisterChild("holder", holderMain)
	zktest.RegisterChild("hog", hogMain)
	zktest.RegisterChild("refused", refusedMain)
}

// holderMain acquires the lock and answers each line "held?" by "true TOKEN" or
// "false CAUSE", the first thing it does with it.
func holderMain(args []string) {
	servers, dir := args[0], args[1]
	ctx := context.Background()
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(T), coord.WithTick(tick))
	exitOn(err)
	m, err := lock.New(c, dir)
	exitOn(err)
	h, err := m.Acquire(ctx)
	exitOn(err)
	fmt.Println("token", h.Token(), h.Node())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := h.Err(); err != nil {
			fmt.Println("false", err)
			continue
		}
		fmt.Println("true", h.Token())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// contender starts a process that acquires the lock; token waits until it has.
func (s scene) contender() *zktest.ChildProcess {
	s.Helper()
	return zktest.Child(s, "holder", s.w.ConnectString(), s.dir())
}

func (s scene) token(p *zktest.ChildProcess) (token int64) {
	s.Helper()
	var node string
	_, err := fmt.Sscan(strings.TrimPrefix(p.Line(patience), "token "), &token, &node)
	require.NoError(s, err)
	return token
}

// holder starts a process that holds the lock, and returns its token.
func (s scene) holder() (p *zktest.ChildProcess, token int64) {
	s.Helper()
	p = s.contender()
	return p, s.token(p)
}

func TestF25AHolderStoppedForTwiceTheTimeoutKnowsAtItsFirstInstruction(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder()
		waiter := s.start(context.Background(), waiting)
		s.awaitNodes(2)
		require.NoError(s, p.Stop())
		stopped := time.Now()
		next := s.granted(waiter)
		require.Greater(s, next.Token(), token, "a resource that saw the new token rejects the old one")
		zktest.Eventually(s, patience, func() bool { return time.Since(stopped) > 2*T }, "time stands still")
		p.Send("held?")
		require.NoError(s, p.Continue())
		answer := p.Line(patience)
		require.True(s, strings.HasPrefix(answer, "false"), answer)
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}

func TestF26AHolderStoppedForHalfTheTimeoutKeepsItsHold(t *testing.T) {
	each(t, func(s scene) {
		p, token := s.holder()
		require.NoError(s, p.Stop())
		stopped := time.Now()
		zktest.Eventually(s, patience, func() bool { return time.Since(stopped) > T/2 }, "time stands still")
		p.Send("held?")
		require.NoError(s, p.Continue())
		require.Equal(s, fmt.Sprint("true ", token), p.Line(patience))
		require.Len(s, s.nodes(), 1)
		p.CloseStdin()
	}, zktest.Embedded, zktest.Real)
}

func TestF28AHolderIsKilled(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder()
		waiter := s.start(context.Background(), waiting)
		s.awaitNodes(2)
		p.Kill()
		killed := time.Now()
		next := s.granted(waiter)
		require.Less(s, time.Since(killed), T+2*tick+500*time.Millisecond)
		require.Greater(s, next.Token(), token)
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}

func TestF27AWaiterStoppedForTwiceTheTimeoutQueuesAgain(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		p := s.contender()
		s.awaitNodes(2)
		require.NoError(s, p.Stop())
		stopped := time.Now()
		s.awaitNodes(1)
		zktest.Eventually(s, patience, func() bool { return time.Since(stopped) > 2*T }, "time stands still")
		last := s.start(context.Background(), s.client())
		s.awaitNodes(2)
		require.NoError(s, p.Continue())
		s.awaitNodes(3)
		s.release(h)
		next := s.granted(last)
		require.Greater(s, next.Token(), h.Token(), "who stood in line all the time comes first")
		s.release(next)
		require.Greater(s, s.token(p), next.Token())
		require.Len(s, s.nodes(), 1, "no phantom node")
		p.CloseStdin()
	})
}

// The next in line hears of it once, and waits for whom the killed one waited.
func TestF29AMiddleWaiterIsKilled(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		middle := s.contender()
		s.awaitNodes(2)
		last := s.waitBehindProxy(3)
		p := s.w.Proxy()
		events := p.Inject(proxy.Fault{On: []int32{proxy.OpNotification}, Path: s.dir(), Times: proxy.Always, Do: proxy.WatchReply})
		middle.Kill()
		s.awaitNodes(2)
		zktest.Receive(s, patience, events.First(), "the successor is not told")
		require.Empty(s, last, "two holders")
		require.Equal(s, 1, events.Fired())
		s.release(h)
		next := s.granted(last)
		require.Equal(s, 2, events.Fired())
		s.release(next)
	})
}

// hogMain contends for the lock with one processor and many goroutines that do
// not let go of it. It prints how long each hold was believed in, as
// "TOKEN FROM TO" by the machine's clock.
func hogMain(args []string) {
	runtime.GOMAXPROCS(1)
	c, err := coord.Open(context.Background(), args[0], coord.WithSessionTimeout(T), coord.WithTick(tick))
	exitOn(err)
	m, err := lock.New(c, args[1])
	exitOn(err)
	busy, cancel := context.WithTimeout(context.Background(), 3*T)
	defer cancel()
	var turns atomic.Int64
	for range 10 {
		go func() {
			for busy.Err() == nil {
				turns.Add(1)
			}
		}()
	}
	for busy.Err() == nil {
		h, err := m.Acquire(busy)
		if err != nil {
			break
		}
		from := time.Now()
		to := from
		for now := from; h.Err() == nil && now.Sub(from) < T/4; now = time.Now() {
			to = now // believed at the moment before Err was asked
			runtime.Gosched()
		}
		fmt.Println(h.Token(), from.UnixNano(), to.UnixNano())
		_ = h.Release(context.Background())
	}
	fmt.Println("turns", turns.Load())
}

func TestF30AHolderWithoutAProcessorToItselfIsHonest(t *testing.T) {
	each(t, func(s scene) {
		hog := zktest.Child(s, "hog", s.w.ConnectString(), s.dir())
		c := s.contest(s.clients(1), steady(20*time.Millisecond))
		var spans []span
		for line := range hog.Lines() {
			var one span
			if n, _ := fmt.Sscan(line, &one.token, &one.from, &one.to); n < 3 {
				s.Log(line)
				continue
			}
			spans = append(spans, one)
		}
		require.NotEmpty(s, spans)
		s.Logf("%d holds of the busy process", len(spans))
		grants := c.stop()
		for _, g := range grants {
			spans = append(spans, span{g.token, g.from.UnixNano(), g.to.UnixNano()})
		}
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.token, b.token) })
		for i, next := range spans[1:] {
			overlap := time.Duration(spans[i].to - next.from)
			require.LessOrEqual(s, overlap, time.Duration(0), "two holders")
		}
	}, zktest.Real)
}

type span struct{ token, from, to int64 }
