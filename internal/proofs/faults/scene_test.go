package faults

import (
	"context"
	"errors"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Scenarios wait more than they compute, so more of them run at a time than
// there are processors, unless -parallel says otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: answerNames}
	zktest.Main(m)
}

const (
	T    = zktest.SessionTimeout
	tick = zktest.DefaultTick
	// patience bounds what must happen but has no promised time of its own.
	patience = 30 * time.Second
	// progress is how long after the last fault the lock is granted again (l),
	// and an abandoned node is gone (o).
	progress = T + 2*time.Second
	// expiry is how long after its last sign of life a client's nodes are gone,
	// and the next in line is granted the lock: the server counts in ticks.
	expiry = T + 2*tick + 500*time.Millisecond
)

// scene is one test's lock path and its clients.
type scene struct {
	*testing.T
	w       *zktest.World
	dialect coord.Dialect // of the lock
	control *workload.Clock
	holds   *roster
}

// play runs a scenario, and the checks that all have in common. The world's
// proxies are made first, not to be taken for the scenario's.
func play(t *testing.T, w *zktest.World, f func(s scene)) {
	w.Proxies()
	control, stop := workload.StartClock()
	t.Cleanup(stop)
	s := scene{T: t, w: w, control: control, holds: &roster{}}
	s.endsEveryGoroutine()
	f(s)
	s.leavesNothing()
}

// each runs a scenario on the embedded server and on a real one that all
// scenarios share; eachPrivate on servers of its own. What the table of all
// recipes (internal/conformance) or a test of coord shows on the embedded
// server runs on the real one only.
func each(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Helper()
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) { play(t, w, f) }, backends...)
}

// recoveries are dialects by how a client finds its node when the reply to its
// create is lost.
var recoveries = map[string]coord.Dialect{"GUID": "", "owner": coord.Description{Prefix: "n_"}.Dialect()}

// eachRecovery is each for nodes that are recovered by their GUIDs, and for
// nodes that are recovered by their owner alone.
func eachRecovery(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Helper()
	t.Parallel()
	for by, dialect := range recoveries {
		t.Run("recovery="+by, func(t *testing.T) {
			each(t, func(s scene) {
				s.dialect = dialect
				f(s)
			}, backends...)
		})
	}
}

// eachAlone is each for a scenario that keeps the processors so busy that it
// and other scenarios would disturb each other's measurements; eachPrivateAlone
// runs such a scenario on servers of its own.
func eachAlone(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) { play(t, w, f) }, backends...)
}

func eachPrivate(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Parallel()
	eachPrivateAlone(t, f, backends...)
}

func eachPrivateAlone(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Helper()
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) { play(t, w, f) }, backends...)
}

// onReal runs a scenario on a real server of its own, onRealAlone while no
// other runs, onEnsemble on an ensemble.
func onReal(t *testing.T, f func(s scene), opts ...zktest.ServerOption) {
	t.Parallel()
	onRealAlone(t, f, opts...)
}

func onRealAlone(t *testing.T, f func(s scene), opts ...zktest.ServerOption) {
	play(t, zktest.NewPrivate(t, zktest.Real, opts...), f)
}

func onEnsemble(t *testing.T, f func(s scene), opts ...zktest.ServerOption) {
	t.Parallel()
	ensembles <- struct{}{}
	t.Cleanup(func() { <-ensembles })
	play(t, zktest.NewPrivate(t, zktest.Ensemble, opts...), f)
}

// ensembles bounds how many there are at a time: each is three JVMs.
var ensembles = make(chan struct{}, 3)

// random returns the scenario's source of randomness. FAULTS_SEED changes it.
func (s scene) random() *rand.Rand {
	s.Helper()
	seed := uint64(1)
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(s, err, "FAULTS_SEED")
		seed = n
	}
	s.Logf("FAULTS_SEED=%d", seed)
	name := fnv.New64()
	_, _ = name.Write([]byte(s.Name()))
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}

// long picks how long a scenario of a certain length lasts: all of it when
// FAULTS_LONG is set, as "make faults" does.
func long(full, short time.Duration) time.Duration {
	if os.Getenv("FAULTS_LONG") != "" {
		return full
	}
	return short
}

func (s scene) dir() string { return s.w.Path("lock") }

// client opens a client straight to the servers, behind opens one through the
// world's proxy.
func (s scene) client(opts ...coord.Option) *coord.Client {
	return s.open(s.w.ConnectString(), opts...)
}

func (s scene) behind(opts ...coord.Option) *coord.Client {
	return s.open(s.w.ProxyConnectString(), opts...)
}

func (s scene) open(servers string, opts ...coord.Option) *coord.Client {
	s.Helper()
	return coordtest.Open(s, servers, opts...)
}

// lasting has a client keep its session for so long.
func (s scene) lasting(timeout time.Duration) coord.Option {
	s.w.SetTimeout(timeout)
	return coord.WithSessionTimeout(timeout)
}

// counting counts events of a client.
func counting(which func(event.Event) bool) (n *atomic.Int64, observes coord.Option) {
	n = new(atomic.Int64)
	return n, coord.WithObserver(func(e event.Event) {
		if which(e) {
			n.Add(1)
		}
	})
}

func of(kind string) func(event.Event) bool {
	return func(e event.Event) bool { return e.Kind == kind }
}

// dialing has a client connect to the address that at returns, whatever server
// it wants.
func dialing(at func() string) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at())
	})
}

func (s scene) mutex(c *coord.Client) *lock.Mutex {
	s.Helper()
	return s.mutexAt(c, s.dir())
}

func (s scene) mutexAt(c *coord.Client, path string) *lock.Mutex {
	s.Helper()
	m, err := lock.New(c, path, lock.Dialect(s.dialect))
	require.NoError(s, err)
	return m
}

func (s scene) acquire(c *coord.Client) *coord.Hold {
	s.Helper()
	h := s.acquireAt(c, s.dir())
	s.holds.add(h)
	return h
}

func (s scene) acquireAt(c *coord.Client, path string) *coord.Hold {
	s.Helper()
	h, err := s.mutexAt(c, path).Acquire(coordtest.Within(s, patience))
	require.NoError(s, err)
	return h
}

// result is how an acquire ended, and when, and which hold of the scene was
// still trusted then.
type result struct {
	hold   *coord.Hold
	err    error
	at     time.Time
	beside *coord.Hold
}

// roster is all that the scene was granted.
type roster struct {
	mu    sync.Mutex
	holds []*coord.Hold
}

// add returns a hold that is trusted when h was granted, if there is one.
func (r *roster) add(h *coord.Hold) (beside *coord.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.holds {
		if other.Err() == nil {
			beside = other
		}
	}
	r.holds = append(r.holds, h)
	return beside
}

// start acquires in the background.
func (s scene) start(ctx context.Context, c *coord.Client) <-chan result {
	s.Helper()
	m, done := s.mutex(c), make(chan result, 1)
	go func() {
		h, err := m.Acquire(ctx)
		r := result{hold: h, err: err, at: time.Now()}
		if err == nil {
			r.beside = s.holds.add(h)
		}
		done <- r
	}()
	return done
}

// waiter starts an acquire, and returns when it is the line's n-th.
func (s scene) waiter(c *coord.Client, n int) <-chan result {
	s.Helper()
	done := s.start(context.Background(), c)
	s.awaitNodes(n)
	return done
}

// granted waits for the hold, and returns when it came.
func (s scene) granted(done <-chan result) (*coord.Hold, time.Time) {
	s.Helper()
	r := s.result(done)
	return r.hold, r.at
}

func (s scene) result(done <-chan result) result {
	s.Helper()
	r := zktest.Receive(s, patience, done, "the acquire does not return")
	require.NoError(s, r.err)
	return r
}

// grantedWithin waits for a hold that comes so soon after a moment, when no
// other of the scene is trusted.
func (s scene) grantedWithin(promised time.Duration, done <-chan result, after time.Time) *coord.Hold {
	s.Helper()
	r := s.result(done)
	require.Nil(s, r.beside, "two holders")
	s.onTime("granted", after, promised, r.at)
	s.Logf("granted after %v", r.at.Sub(after))
	return r.hold
}

// handOver releases a hold, which may have been lost on a machine that stood
// still, and waits for the next one (l).
func (s scene) handOver(first *coord.Hold, next <-chan result) *coord.Hold {
	s.Helper()
	released := time.Now()
	s.release(first)
	return s.grantedWithin(progress, next, released)
}

// grantedAfter waits for a hold that is granted after the servers ended another
// (l), perhaps before the other's client has heard of it.
func (s scene) grantedAfter(end time.Time, done <-chan result) *coord.Hold {
	s.Helper()
	r := s.result(done)
	require.False(s, r.beside != nil && r.at.Before(end), "two holders")
	s.onTime("granted", end, progress, r.at)
	return r.hold
}

func (s scene) release(h *coord.Hold) {
	s.Helper()
	require.NoError(s, h.Release(context.Background()))
}

// nodes lists the lock's directory as the server has it; a missing one is
// empty.
func (s scene) nodes() (names []string) {
	s.Helper()
	var err error
	zktest.Eventually(s, patience, func() bool {
		names, _, err = s.admin().Children(s.dir())
		return err == nil || err == zk.ErrNoNode
	}, "the directory cannot be listed")
	return names
}

func (s scene) awaitNodes(n int) {
	s.Helper()
	zktest.Eventually(s, patience, func() bool { return len(s.nodes()) == n }, "the directory never has %d nodes", n)
}

// isSoleHolder checks that h's node is the only one and belongs to h's session.
func (s scene) isSoleHolder(h *coord.Hold) {
	s.Helper()
	require.NoError(s, h.Err())
	require.Len(s, s.nodes(), 1)
	_, stat, err := s.admin().Get(h.Node())
	require.NoError(s, err)
	require.Equal(s, h.Session(), stat.EphemeralOwner)
	require.Equal(s, stat.Czxid, h.Token())
}

// lost waits for the end of h and returns its cause.
func (s scene) lost(h *coord.Hold, within time.Duration) error {
	s.Helper()
	zktest.Receive(s, within, h.Done(), "the hold does not end")
	err := h.Err()
	require.ErrorIs(s, err, coord.ErrLost)
	return err
}

// ending is when a hold's Done was closed, and the end of its window as known
// then, from which on Err returns the loss.
type ending struct{ done, window time.Time }

// endOf gives the end of h when it comes.
func (s scene) endOf(h *coord.Hold) <-chan ending {
	return coordtest.Go(func() ending {
		<-h.Done()
		return ending{time.Now(), h.Deadline()}
	})
}

// ends waits for the end of a hold, which must come no later than the end of
// its window, and returns until when the hold was trusted.
func (s scene) ends(ended <-chan ending) (trusted time.Time) {
	s.Helper()
	e := zktest.Receive(s, patience, ended, "the hold does not end")
	s.onTime("lost", e.window, prompt, e.done)
	if e.window.Before(e.done) {
		return e.window
	}
	return e.done
}

// succeeds waits for the hold after h, before which h must have been given up.
func (s scene) succeeds(h *coord.Hold, ended <-chan ending, waiter <-chan result) (next *coord.Hold) {
	s.Helper()
	next, granted := s.granted(waiter)
	end := s.ends(ended)
	s.Logf("gave up %v before the second grant", granted.Sub(end))
	require.True(s, end.Before(granted), "held %v too long", end.Sub(granted))
	require.Greater(s, next.Token(), h.Token())
	return next
}

// endWithTheirWindow waits for the end of holds that end for no other reason
// than that their window is over.
func (s scene) endWithTheirWindow(holds ...*coord.Hold) {
	s.Helper()
	var ended []<-chan ending
	for _, h := range holds {
		ended = append(ended, s.endOf(h))
	}
	for i, h := range holds {
		e := zktest.Receive(s, patience, ended[i], "the hold does not end")
		require.ErrorIs(s, h.Err(), coord.ErrWindowOver)
		require.False(s, e.done.Before(e.window), "lost %v before the window was over", e.window.Sub(e.done))
		s.onTime("lost", e.window, prompt, e.done)
		s.Logf("lost %v after the window's end", e.done.Sub(e.window))
	}
}

// fails checks that an acquire ends by its context, on time (d), and that its
// error says so.
func (s scene) fails(done <-chan result, deadline time.Time) {
	s.Helper()
	r := zktest.Receive(s, patience, done, "the acquire does not return")
	s.onTime("failed", deadline, prompt, r.at)
	require.Error(s, r.err)
	require.True(s, errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled), "%v", r.err)
}

// failsBy checks that an acquire ends at a deadline.
func (s scene) failsBy(deadline time.Time, c *coord.Client) {
	s.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	s.fails(s.start(ctx, c), deadline)
}

// repeat calls f again and again until stop, each time when the context of the
// last call has ended. stop returns how often f has succeeded.
func (s scene) repeat(every time.Duration, f func(context.Context) error) (stop func() int) {
	ctx, cancel := context.WithCancel(s.Context())
	succeeded := coordtest.Go(func() (n int) {
		for ctx.Err() == nil {
			one, end := context.WithTimeout(ctx, every)
			if f(one) == nil {
				n++
			}
			<-one.Done()
			end()
		}
		return n
	})
	return func() int {
		cancel()
		return <-succeeded
	}
}

// wait waits until so long after a moment.
func (s scene) wait(d time.Duration, after time.Time) { s.waitUntil(after.Add(d)) }

func (s scene) waitUntil(at time.Time) { <-time.After(time.Until(at)) }
