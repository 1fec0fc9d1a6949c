package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

const throttled = -127

func TestF24AThrottledRequestIsRepeated(t *testing.T) {
	each(t, func(s scene) {
		var rules []*proxy.Rule
		for _, ops := range [][]int32{proxy.Creates, proxy.Lists, {proxy.OpGetData}, {proxy.OpDelete}, {proxy.OpMulti}} {
			rules = append(rules, s.w.Proxy().Inject(proxy.Fault{On: ops, Times: 3, Do: proxy.Reject(throttled)}))
		}
		holder := s.acquire(s.client())
		c := s.behind()
		waiter := s.start(context.Background(), c)
		zktest.Eventually(s, patience, func() bool { return rules[2].Fired() == 3 }, "the waiter does not watch")
		s.release(s.handOver(holder, waiter))
		require.NoError(s, coordtest.Write(s.Context(), c))
		for i, rule := range rules {
			require.Equal(s, 3, rule.Fired(), "rule %d", i)
		}
		require.Empty(s, s.nodes())
	})
}

// The server itself throttles: it refuses each request that waits for more than
// a millisecond, since only one may be under way at a time. On a machine so
// busy that it refuses all for long, the flood stops after 10,000 refusals.
func TestF24AServerThatThrottlesIsServedWithPatience(t *testing.T) {
	onRealAlone(t, func(s scene) {
		flood := zktest.Connect(s, s.w.ConnectString(), T)
		var refused atomic.Int64
		var flooding sync.WaitGroup
		lasting, calm := context.WithCancel(s.Context())
		for range 64 {
			flooding.Go(func() {
				for lasting.Err() == nil && refused.Load() < 10_000 {
					if _, _, err := flood.Get("/"); err != nil && strings.Contains(err.Error(), fmt.Sprint(throttled)) {
						refused.Add(1)
					}
				}
			})
		}
		c := s.contest(s.clients(2), steady(time.Millisecond))
		c.progresses(patience)
		c.progresses(patience)
		calm()
		flooding.Wait()
		require.Positive(s, refused.Load(), "the server did not throttle")
		c.stop()
	}, zktest.WithProperty("zookeeper.request_throttle_max_requests", "1"),
		zktest.WithProperty("zookeeper.request_throttle_stall_time", "5"),
		zktest.WithProperty("zookeeper.throttled_op_wait_time", "1"))
}

func TestF24AQuotaThatIsUsedUpIsReportedAtOnce(t *testing.T) {
	onReal(t, func(s scene) {
		c := s.client()
		s.release(s.acquire(c))
		limits := "/zookeeper/quota" + s.w.Path("")
		for _, node := range []struct{ path, data string }{
			{limits, ""},
			{limits + "/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"},
			{limits + "/zookeeper_stats", "count=1,bytes=0"},
		} {
			require.NoError(s, coordtest.Err(s.admin().Create(node.path, []byte(node.data), 0, zk.WorldACL(zk.PermAll))))
		}
		require.ErrorContains(s, coordtest.Err(s.mutex(c).Acquire(s.Context())), "quota exceeded")
		require.NoError(s, s.admin().Delete(limits+"/zookeeper_limits", -1))
		s.release(s.acquire(c))
	}, zktest.WithProperty("zookeeper.enforceQuota", "true"))
}

// refusedMain tries to open a client for three seconds, and prints the error,
// and how many milliseconds of processor time and attempts that took.
func refusedMain(args []string) {
	var attempts atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	before := cpuTime()
	_, err := coord.Open(ctx, args[0], coord.WithSessionTimeout(T), dialing(func() string {
		attempts.Add(1)
		return args[0]
	}))
	fmt.Println((cpuTime() - before).Milliseconds(), attempts.Load(), err)
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	zktest.ExitOn(os.NewSyscallError("getrusage", syscall.Getrusage(syscall.RUSAGE_SELF, &usage)))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestF24AServerWithoutRoomForAConnectionIsNotPestered(t *testing.T) {
	onReal(t, func(s scene) {
		h := s.acquire(s.client(s.lasting(10 * T))) // clients that are connected stay so, also on a slow machine
		s.admin()
		c := zktest.Child(s, "refused", s.w.ConnectString())
		var ms, attempts int
		var text string
		line := c.Line(patience)
		require.NoError(s, coordtest.Err(fmt.Sscan(line, &ms, &attempts, &text)))
		require.Contains(s, line, context.DeadlineExceeded.Error())
		s.Logf("%d ms of processor time, %d attempts in 3 s", ms, attempts)
		require.Greater(s, attempts, 2)
		require.Less(s, attempts, 150)
		require.Less(s, ms, 150, "5 %%")
		require.NoError(s, h.Err())
		s.release(h)
	}, zktest.WithConfig("maxClientCnxns", "2"))
}

func TestF39ADirectoryThatIsReapedAgainAndAgainComesBack(t *testing.T) {
	onReal(t, func(s scene) {
		c := s.client()
		var last int64
		for range 3 {
			h := s.acquire(c)
			require.Greater(s, h.Token(), last, "tokens grow though the sequence starts again")
			require.Zero(s, sequence(s, h.Node()))
			last = h.Token()
			s.release(h)
			zktest.Eventually(s, patience, func() bool {
				exists, _, err := s.admin().Exists(s.dir())
				return err == nil && !exists
			}, "the empty container is not reaped")
		}
		// The server's reaper deletes directories between a release and the
		// next acquire of many locks.
		random := s.random()
		var again atomic.Int64
		var wg sync.WaitGroup
		end, patient := time.Now().Add(long(10*time.Second, 3*time.Second)), time.Now().Add(patience)
		for i := range 8 {
			m, err := lock.New(c, fmt.Sprintf("%s-%d", s.dir(), i))
			require.NoError(s, err)
			pauses := rand.New(rand.NewPCG(random.Uint64(), 0))
			wg.Go(func() {
				for token := int64(0); time.Now().Before(end) || again.Load() <= 8 && time.Now().Before(patient); {
					h, err := m.Acquire(context.Background())
					if err != nil || h.Token() <= token {
						s.Errorf("token %d: %v", token, err)
						return
					}
					if token > 0 && strings.HasSuffix(h.Node(), "0000000000") {
						again.Add(1)
					}
					token = h.Token()
					if err := h.Release(context.Background()); err != nil {
						s.Error(err)
					}
					<-time.After(time.Duration(pauses.Int64N(int64(20 * time.Millisecond))))
				}
			})
		}
		wg.Wait()
		s.Logf("%d directories were reaped", again.Load())
		require.Greater(s, again.Load(), int64(8))
	}, zktest.WithContainerCheck(300*time.Millisecond))
}

func TestF39AnAdminDeletesTheWholeDirectory(t *testing.T) {
	each(t, func(s scene) {
		waiter, c, h, deleted := deleteAll(s, true)
		next := s.grantedAfter(deleted, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.isSoleHolder(next)
		s.release(next)
		s.release(s.acquire(c))
	})
}

// The waiter has just joined and does not watch its node yet: its hold does not
// last, unless it has joined again.
func TestF39AnAdminDeletesTheWholeDirectoryAtOnce(t *testing.T) {
	each(t, func(s scene) {
		waiter, c, _, _ := deleteAll(s, false)
		next, _ := s.granted(waiter)
		if len(s.nodes()) == 0 {
			require.ErrorIs(s, s.lost(next, progress), coord.ErrNodeDeleted)
			next = s.acquire(c)
		}
		s.isSoleHolder(next)
		s.release(next)
	})
}

// deleteAll has an administrator delete the directory of a holder and a waiter,
// which watches its node by then, or may not do so yet.
func deleteAll(s scene, watches bool) (waiter <-chan result, c *coord.Client, h *coord.Hold, deleted time.Time) {
	s.Helper()
	c = s.client()
	h = s.acquire(c)
	waiter = s.waiter(s.client(), 2)
	var all []any
	// The waiter's node goes first: if the other's went first, the waiter would
	// be granted the turn until it learns of its own loss.
	names := s.nodes()
	slices.SortFunc(names, func(a, b string) int { return sequence(s, b) - sequence(s, a) })
	if watches {
		s.awaitWatchers(s.dir()+"/"+names[0], 1)
	}
	for _, name := range names {
		all = append(all, &zk.DeleteRequest{Path: s.dir() + "/" + name, Version: -1})
	}
	ended, deleted := s.endOf(h), time.Now()
	require.NoError(s, coordtest.Err(s.admin().Multi(append(all, &zk.DeleteRequest{Path: s.dir(), Version: -1})...)))
	s.ends(ended)
	require.ErrorIs(s, h.Err(), coord.ErrLost)
	require.ErrorIs(s, h.Err(), coord.ErrNodeDeleted)
	return waiter, c, h, deleted
}

// The server accepts half of the default size, and the client has no option
// that says so.
func TestF50APacketThatAServerClosesOnFailsAndOthersAreUnharmed(t *testing.T) {
	const limit = 1 << 19
	onReal(t, func(s scene) {
		for what, try := range map[string]func(scene, *coord.Client, *queue.Queue) error{
			"a claim's data": func(s scene, c *coord.Client, _ *queue.Queue) error {
				_, err := recipe.Acquire(s.Context(), c, &coord.Spec{
					Line: coord.Line{Dir: s.w.Path("large")}, Kind: "lock", Data: make([]byte, limit),
				}, coord.First)
				return err
			},
			"a batch of 10,000 items of a byte": func(s scene, _ *coord.Client, q *queue.Queue) error {
				return q.PutBatch(s.Context(), slices.Repeat([][]byte{[]byte("x")}, 10_000))
			},
			"a claim larger than its item": func(s scene, _ *coord.Client, q *queue.Queue) error {
				data := make([]byte, limit-300-len(s.w.Path("q")))
				require.NoError(s, q.Put(s.Context(), data))
				item, err := q.Receive(s.Context())
				require.NoError(s, err)
				require.Len(s, item.Data, len(data))
				require.NoError(s, item.Ack(s.Context()))
				return fmt.Errorf("%w: and was received without being counted", coord.ErrTooLarge)
			},
		} {
			lost, count := counting(of(event.SessionDown))
			c := s.client(coord.WithSessionTimeout(10*T), count)
			q, err := queue.New(c, s.w.Path("q"))
			require.NoError(s, err)
			require.NoError(s, q.Put(s.Context(), []byte("small")))
			item, err := q.Receive(s.Context())
			require.NoError(s, err)
			h := s.acquire(c)
			require.ErrorIs(s, try(s, c, q), coord.ErrTooLarge, what)
			s.Logf("%s: %d connections lost", what, lost.Load())
			require.LessOrEqual(s, lost.Load(), int64(5), what)
			require.NoError(s, item.Ack(s.Context()), what)
			s.release(h)
			require.NoError(s, q.Close(s.Context()))
			require.NoError(s, c.Close(s.Context())) // its nodes at the queue would stay for its session timeout
		}
	}, zktest.WithProperty("jute.maxbuffer", fmt.Sprint(limit)))
}

// rewrite sets a node's data of 10 KB again and again. It returns how often
// this has succeeded, and a function that ends it and returns the first error.
func (s scene) rewrite(c *coord.Client) (written *atomic.Int64, stop func() error) {
	s.Helper()
	path, data := s.w.Path("rewritten"), make([]byte, 10_000)
	require.NoError(s, c.Create(s.Context(), path, data))
	ctx, cancel := context.WithCancel(s.Context())
	written = new(atomic.Int64)
	over := coordtest.Go(func() error {
		for {
			err := recipe.Retry(ctx, c, func(ctx context.Context) error { return coordtest.Err(c.Set(ctx, path, data, -1)) })
			if err != nil {
				return err
			}
			written.Add(1)
		}
	})
	return written, func() error {
		cancel()
		return <-over
	}
}

// writes waits until the packets have gone on for a while.
func (s scene) writes(written *atomic.Int64) {
	s.Helper()
	from := written.Load()
	zktest.Eventually(s, patience, func() bool { return written.Load() >= from+10 }, "no packet is acknowledged")
}

func TestF60PacketsGoOnBehindAProxyThatFlaps(t *testing.T) {
	each(t, func(s scene) {
		written, stop := s.rewrite(s.behind(s.lasting(2 * T))) // the machine may stand still for a moment
		p := s.w.Proxy()
		before := p.Stats().Cut
		calm := p.Flap(50*time.Millisecond, 500*time.Millisecond, s.random().Uint64())
		for p.Stats().Cut-before <= 20 {
			s.writes(written)
		}
		calm()
		s.writes(written)
		require.ErrorIs(s, stop(), context.Canceled)
	})
}

func TestF60PacketsGoOnOverARollingRestart(t *testing.T) {
	onEnsemble(t, func(s scene) {
		written, stop := s.rewrite(s.client(s.lasting(5 * T))) // an election takes about a second
		for _, server := range s.w.Ensemble().Servers() {
			s.writes(written)
			require.NoError(s, server.Kill())
			s.writes(written)
			require.NoError(s, server.Restart())
			s.learns(server)
		}
		s.writes(written)
		require.ErrorIs(s, stop(), context.Canceled)
	})
}

// leavesNothing checks at the end of a scenario, while its clients are still
// open, that none of them has left a node (o) or a watch (w).
func (s scene) leavesNothing() {
	s.Helper()
	require.Empty(s, s.drained(progress, s.ephemerals), "ephemeral nodes are left")
	require.Empty(s, s.drained(progress, s.w.Watched), "watches are left")
}

// drained waits until there is nothing to list, and returns what is left after
// the given time, extended by the delays of a busy machine.
func (s scene) drained(within time.Duration, list func() []string) (left []string) {
	s.Helper()
	begun := time.Now()
	for {
		over := time.Since(begun) > within+s.control.Slack(begun)
		if left = list(); len(left) == 0 || over {
			return left
		}
		s.wait(5*time.Millisecond, time.Now())
	}
}

// ephemerals lists the scenario's ephemeral nodes, regardless of their ACL.
func (s scene) ephemerals() (found []string) {
	s.Helper()
	root := s.w.Path("") + "/"
	switch s.w.Backend() {
	case zktest.Embedded:
		for _, node := range s.w.Embedded().Nodes() {
			if node.Stat.EphemeralOwner != 0 && strings.HasPrefix(node.Path, root) {
				found = append(found, node.Path)
			}
		}
	case zktest.Real:
		found = dumped(s.w.Real(), root)
	default:
		for _, server := range s.w.Ensemble().Servers() {
			found = append(found, dumped(server, root)...)
		}
	}
	return found
}

// dumped lists the ephemeral nodes below root that a server has.
func dumped(server *zktest.Server, root string) (found []string) {
	answer, err := server.FourLetter("dump")
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(answer) {
		if node := strings.TrimSpace(line); strings.HasPrefix(node, root) {
			found = append(found, node)
		}
	}
	return found
}

// label marks the calling goroutine and all that it starts from now on, and
// theirs. What a callback of a timer starts is not marked.
func (s scene) label(value string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, value)))
}

const labelKey = "scenario"

// endsEveryGoroutine checks after a scenario that its clients, which are closed
// by then, have left no goroutine (g).
func (s scene) endsEveryGoroutine() {
	s.Helper()
	s.label(s.Name())
	s.Cleanup(func() {
		left := s.drained(T, func() []string { return goroutines(s.Name()) })
		require.Empty(s, left, "goroutines are left")
	})
}

var countOfStack = regexp.MustCompile(`(?m)^(\d+) @`)

// goroutines lists the stacks of the marked goroutines that are in the library
// or the client library.
func goroutines(label string) (stacks []string) {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		marked := strings.Contains(stack, fmt.Sprintf("%q:%q", labelKey, label))
		ours := strings.Contains(stack, "zkcoord/zkcoord/coord") || strings.Contains(stack, "go-zookeeper/zk")
		if count := countOfStack.FindStringSubmatch(stack); marked && ours && count != nil {
			n, _ := strconv.Atoi(count[1])
			stacks = append(stacks, slices.Repeat([]string{stack}, n)...)
		}
	}
	return stacks
}

// admin is the world's client for tampering. It outlives the scenario, so its
// goroutines are not marked.
func (s scene) admin() *zk.Conn {
	s.Helper()
	made := make(chan *zk.Conn, 1)
	go func() {
		defer close(made)
		pprof.SetGoroutineLabels(context.Background())
		made <- s.w.Admin()
	}()
	conn := <-made
	require.NotNil(s, conn)
	return conn
}

// prompt is the time within which a call returns after its context ended, and a
// hold ends after its window (d).
const prompt = 50 * time.Millisecond

// onTime checks that something happened within a promised time from a moment
// on, or was late by no more than this process was.
func (s scene) onTime(what string, from time.Time, promised time.Duration, at time.Time) {
	s.Helper()
	slack := s.control.Slack(from)
	require.LessOrEqual(s, at.Sub(from), promised+slack, "%s too late, and this process was by %v", what, slack)
}
