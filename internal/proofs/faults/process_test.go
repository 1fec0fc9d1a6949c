package faults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func init() {
	zktest.RegisterChild("holder", holderMain)
	zktest.RegisterChild("hog", hogMain)
	zktest.RegisterChild("refused", refusedMain)
}

// holderMain acquires the lock. It immediately answers each line by "TOKEN
// true" if it holds the lock, else by "TOKEN false CAUSE".
func holderMain(args []string) {
	ctx := context.Background()
	c := connect(args[0], must(time.ParseDuration(args[2])))
	h := must(must(lock.New(c, args[1])).Acquire(ctx))
	fmt.Println("token", h.Token(), h.Node())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := h.Err(); err != nil {
			fmt.Println(h.Token(), "false", err)
			continue
		}
		fmt.Println(h.Token(), "true")
	}
	zktest.ExitOn(c.Close(ctx))
}

// connect opens a child's client.
func connect(servers string, timeout time.Duration) *coord.Client {
	return must(coord.Open(context.Background(), servers, coord.WithSessionTimeout(timeout), coord.WithTick(tick)))
}

func must[V any](v V, err error) V {
	zktest.ExitOn(err)
	return v
}

// contender starts a process that acquires the lock; token waits until it has.
func (s scene) contender(timeout time.Duration) *zktest.ChildProcess {
	s.Helper()
	return zktest.Child(s, "holder", s.w.ConnectString(), s.dir(), timeout.String())
}

func (s scene) token(p *zktest.ChildProcess) (token int64) {
	s.Helper()
	var node string
	require.NoError(s, coordtest.Err(fmt.Sscan(strings.TrimPrefix(p.Line(patience), "token "), &token, &node)))
	return token
}

// holder starts a process that holds the lock, and returns its token.
func (s scene) holder(timeout time.Duration) (p *zktest.ChildProcess, token int64) {
	s.Helper()
	p = s.contender(timeout)
	return p, s.token(p)
}

// held reads a holder's answer: its token, and whether it holds the lock.
func (s scene) held(p *zktest.ChildProcess) (token int64, held bool) {
	s.Helper()
	require.NoError(s, coordtest.Err(fmt.Sscan(p.Line(patience), &token, &held)))
	return token, held
}

// resource remembers the highest token it has seen and refuses smaller ones.
type resource struct{ highest int64 }

func (r *resource) accepts(token int64) bool {
	r.highest = max(r.highest, token)
	return token == r.highest
}

func TestF25AHolderStoppedForTwiceTheTimeoutKnowsAtItsFirstInstruction(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder(T)
		waiter := s.waiter(waiting, 2)
		var fenced resource
		require.True(s, fenced.accepts(token))
		require.NoError(s, p.Stop())
		stopped := time.Now()
		next, _ := s.granted(waiter)
		require.True(s, fenced.accepts(next.Token()))
		s.wait(2*T, stopped)
		p.Send("held?")
		require.NoError(s, p.Continue())
		old, held := s.held(p)
		require.False(s, held)
		require.False(s, fenced.accepts(old), "the resource takes what an old holder brings")
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}

func TestF26AHolderStoppedForHalfTheTimeoutKeepsItsHold(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 3 * T // what is left of the window is the machine's
		s.w.SetTimeout(timeout)
		p, token := s.holder(timeout)
		require.NoError(s, p.Stop())
		stopped := time.Now()
		p.Send("held?")
		s.wait(timeout/2, stopped)
		require.Empty(s, p.Lines(), "it was not stopped")
		require.NoError(s, p.Continue())
		require.Equal(s, fmt.Sprint(token, " true"), p.Line(patience))
		require.Len(s, s.nodes(), 1)
		p.CloseStdin()
	}, zktest.Embedded, zktest.Real)
}

func TestF28AHolderIsKilled(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder(T)
		waiter := s.waiter(waiting, 2)
		early := len(waiter) > 0
		p.Send("held?")
		_, held := s.held(p)
		require.False(s, early && held, "two holders")
		killed := time.Now()
		p.Kill()
		next := s.grantedWithin(expiry, waiter, killed)
		require.Greater(s, next.Token(), token)
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}

func TestF27AWaiterStoppedForTwiceTheTimeoutQueuesAgain(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		p := s.contender(T)
		s.awaitNodes(2)
		require.NoError(s, p.Stop())
		stopped := time.Now()
		s.awaitNodes(1)
		s.wait(2*T, stopped)
		last := s.waiter(s.client(), 2)
		require.NoError(s, p.Continue())
		s.awaitNodes(3)
		next := s.handOver(h, last)
		require.Greater(s, next.Token(), h.Token(), "a claim that stood in line all the time comes first")
		s.release(next)
		require.Greater(s, s.token(p), next.Token())
		require.Len(s, s.nodes(), 1, "no phantom node")
		p.CloseStdin()
	})
}

// The next in line is woken once, and then waits for the claim that the killed
// waiter waited for.
func TestF29AMiddleWaiterIsKilled(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		middle := s.contender(T)
		s.awaitNodes(2)
		last := s.waitBehindProxy(3)
		p := s.w.Proxy()
		events := p.Inject(
			proxy.Fault{On: []int32{proxy.OpNotification}, Path: s.dir(), Times: proxy.Always, Do: proxy.WatchReply})
		middle.Kill()
		s.awaitNodes(2)
		zktest.Receive(s, patience, events.First(), "the successor is not told")
		require.Empty(s, last, "two holders")
		require.Equal(s, 1, events.Fired())
		next := s.handOver(h, last)
		require.Equal(s, 2, events.Fired(), "one wake-up for each that went")
		s.release(next)
	})
}

// hogMain contends for the lock on one processor, which many goroutines keep
// busy. It prints how long each hold was trusted, as "TOKEN FROM TO" by the
// machine's clock.
func hogMain(args []string) {
	runtime.GOMAXPROCS(1)
	m := must(lock.New(connect(args[0], T), args[1]))
	end := time.Now().Add(3 * T)
	busy, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var turns atomic.Int64
	for range 10 {
		go func() {
			for busy.Err() == nil {
				turns.Add(1)
			}
		}()
	}
	for held := 0; held == 0 || time.Now().Before(end); held++ {
		h, err := m.Acquire(busy)
		if err != nil {
			break
		}
		from := time.Now()
		to := from
		for now := from; h.Err() == nil && now.Sub(from) < T/4; now = time.Now() {
			to = now // trusted up to the moment before the call of Err
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
		var busy []grant
		turns := 0
		for line := range hog.Lines() {
			var token, from, to int64
			if n, _ := fmt.Sscan(line, &token, &from, &to); n == 3 {
				busy = append(busy, grant{worker: -1, token: token, from: time.Unix(0, from), to: time.Unix(0, to)})
				continue
			}
			require.NoError(s, coordtest.Err(fmt.Sscanf(line, "turns %d", &turns)), line)
		}
		require.NotEmpty(s, busy)
		require.Positive(s, turns, "the process was not busy")
		s.Logf("%d holds of the busy process", len(busy))
		grants := c.stop()
		require.NotEmpty(s, grants)
		for _, g := range grants {
			g.from, g.to = g.from.Round(0), g.to.Round(0) // by the clock that both processes have
			busy = append(busy, g)
		}
		s.areApart(busy)
	}, zktest.Real)
}

func TestF11AServerIsKilledAndBackWithinTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		timeout := 5 * T
		if s.w.Backend() != zktest.Embedded {
			timeout = 15 * T // a JVM needs a moment to start, on a busy machine half a minute
		}
		cut, count := counting(of(event.SessionDown))
		c := s.client(count, s.lasting(timeout))
		h := s.acquire(c)
		token := h.Token()
		killed := time.Now()
		s.w.Crash()
		if s.w.Backend() == zktest.Embedded {
			s.wait(timeout/4, killed) // a real one takes as long to start
		}
		s.w.Recover()
		zktest.Eventually(s, patience, func() bool { return coordtest.Write(s.Context(), c) == nil },
			"the client does not come back")
		down := time.Since(killed)
		s.Logf("down for %v, T = %v", down, timeout)
		require.Positive(s, cut.Load(), "the server was never away")
		require.Less(s, down, timeout, "the server was not back in time")
		require.NoError(s, h.Err())
		require.Equal(s, token, h.Token())
		s.isSoleHolder(h)
		s.release(h)
	})
}

func TestF12AServerIsDownForLongerThanTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		killed := time.Now()
		s.w.Crash()
		s.endWithTheirWindow(h)
		s.failsBy(time.Now().Add(T/4), c)
		s.wait(2*T, killed)
		s.w.Recover()
		s.release(h)
		s.release(s.acquire(c))
	})
}

func TestF13AServerStopsForHalfTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		const timeout = 5 * T // what is left of the window is the machine's
		c := s.client(s.lasting(timeout))
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		waiter := s.start(context.Background(), c)
		s.failsBy(frozen.Add(T/4), c)
		require.ErrorIs(s, coordtest.Write(coordtest.Within(s, T/8), c), context.DeadlineExceeded, "the server answers")
		s.wait(timeout/2, frozen)
		require.Empty(s, waiter)
		s.w.Thaw()
		require.NoError(s, coordtest.Write(s.Context(), c))
		require.NoError(s, h.Err())
		next := s.handOver(h, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

// However many requests wait for the server, each ends by its context.
func TestF13AServerStopsForThreeTimesTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), frozen.Add(T/2))
		defer cancel()
		var hung []<-chan result
		for range 100 {
			hung = append(hung, s.start(ctx, c))
		}
		for _, acquire := range hung {
			s.fails(acquire, frozen.Add(T/2))
		}
		s.waitUntil(h.Deadline())
		require.ErrorIs(s, h.Err(), coord.ErrWindowOver, "Err looks at the clock")
		s.wait(3*T, frozen)
		waiter := s.start(context.Background(), c)
		thawed := time.Now()
		s.w.Thaw()
		next := s.grantedWithin(progress, waiter, thawed)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

// A server that lost its data refuses clients that have seen more than it has.
// Only a new session, which has seen nothing, is accepted.
func TestF20AServerLosesItsData(t *testing.T) {
	onReal(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		old, ended := h.Session(), s.endOf(h)
		require.NoError(s, s.w.Real().WipeAndRestart())
		wiped := time.Now()
		exists, _, err := zktest.Connect(s, s.w.ConnectString(), T).Exists(s.dir())
		require.NoError(s, err)
		require.False(s, exists, "the server remembers")
		s.ends(ended)
		next := s.grantedWithin(T+5*time.Second, s.start(context.Background(), c), wiped)
		require.NotEqual(s, old, next.Session())
		s.release(next)
		s.release(h)
	})
}

// Some servers give a client whose session is gone another one.
func TestF21AServerGivesAnotherSessionInsteadOfSayingExpired(t *testing.T) {
	each(t, func(s scene) {
		over, count := counting(of(event.SessionOver))
		c := s.behind(count)
		h := s.acquire(c)
		p := s.w.Proxy()
		forgotten := p.Inject(proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.ForgetSession})
		type answer struct {
			at      time.Time
			session int64
		}
		given, ended := make(chan answer, 1), s.endOf(h)
		p.Inject(proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.WatchReply, Where: func(f *proxy.Frame) bool {
			select {
			case given <- answer{time.Now(), f.Session}:
			default:
			}
			return true
		}})
		require.Equal(s, 1, p.CutAll())
		zktest.Receive(s, patience, forgotten.First(), "the client does not connect again")
		another := zktest.Receive(s, patience, given, "the server does not answer")
		require.NotZero(s, another.session)
		require.NotEqual(s, h.Session(), another.session, "the server gives no other session")
		s.onTime("lost", another.at, 100*time.Millisecond, s.ends(ended))
		require.ErrorIs(s, h.Err(), coord.ErrSessionExpired)
		zktest.Eventually(s, patience, func() bool { return over.Load() > 0 }, "the observer does not hear of it")
		next := s.acquire(c)
		require.NotEqual(s, h.Session(), next.Session())
		require.Greater(s, next.Token(), h.Token())
		require.Equal(s, 1, forgotten.Fired())
		s.release(next)
	})
}
