package faults

import (
	"context"
	"errors"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Scenarios wait more than they compute, so more of them run at a time than
// there are processors, unless -parallel says otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6")
	zktest.Main(m)
}

const (
	T    = zktest.SessionTimeout
	tick = zktest.DefaultTick
	// patience bounds what must happen but has no promised time of its own.
	patience = 30 * time.Second
)

// scene is one test's lock path and the clients around it.
type scene struct {
	*testing.T
	w *zktest.World
}

// each runs a scenario on the embedded server and on a real one that all
// scenarios share; eachPrivate on servers of its own.
func each(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) { f(scene{t, w}) }, backends...)
}

func eachPrivate(t *testing.T, f func(s scene), backends ...zktest.Backend) {
	t.Parallel()
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) { f(scene{t, w}) }, backends...)
}

// onReal runs a scenario on a real server of its own, onEnsemble on an ensemble.
func onReal(t *testing.T, f func(s scene), opts ...zktest.ServerOption) {
	t.Parallel()
	f(scene{t, zktest.NewPrivate(t, zktest.Real, opts...)})
}

func onEnsemble(t *testing.T, f func(s scene), opts ...zktest.ServerOption) {
	t.Parallel()
	ensembles <- struct{}{}
	t.Cleanup(func() { <-ensembles })
	f(scene{t, zktest.NewPrivate(t, zktest.Ensemble, opts...)})
}

// ensembles bounds how many there are at a time: each is three JVMs.
var ensembles = make(chan struct{}, 2)

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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opts = append([]coord.Option{coord.WithSessionTimeout(T), coord.WithTick(tick)}, opts...)
	c, err := coord.Open(ctx, servers, opts...)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, c.Close(context.Background())) })
	return c
}

func (s scene) mutex(c *coord.Client) *lock.Mutex {
	s.Helper()
	m, err := lock.New(c, s.dir())
	require.NoError(s, err)
	return m
}

func (s scene) acquire(c *coord.Client) *coord.Hold {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h, err := s.mutex(c).Acquire(ctx)
	require.NoError(s, err)
	return h
}

type result struct {
	hold *coord.Hold
	err  error
}

// start acquires in the background.
func (s scene) start(ctx context.Context, c *coord.Client) <-chan result {
	s.Helper()
	m, done := s.mutex(c), make(chan result, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- result{h, err}
	}()
	return done
}

func (s scene) granted(done <-chan result) *coord.Hold {
	s.Helper()
	r := zktest.Receive(s, patience, done, "the acquire does not return")
	require.NoError(s, r.err)
	return r.hold
}

func (s scene) release(h *coord.Hold) {
	s.Helper()
	require.NoError(s, h.Release(context.Background()))
}

// nodes lists the lock's directory as the server has it.
func (s scene) nodes() []string {
	s.Helper()
	names, _, err := s.w.Admin().Children(s.dir())
	if err != nil {
		return nil
	}
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
	_, stat, err := s.w.Admin().Get(h.Node())
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

// fails checks that an acquire ends by its context, on time (d), with an error
// that tells.
func (s scene) fails(done <-chan result, deadline time.Time) {
	s.Helper()
	r := zktest.Receive(s, patience, done, "the acquire does not return")
	require.Less(s, time.Since(deadline), 50*time.Millisecond+schedulingSlack, "returned too late")
	require.Error(s, r.err)
	require.True(s, errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled), "%v", r.err)
}

// schedulingSlack is what a busy two-core machine may add to the 50 ms within
// which a call must return after its context ended.
const schedulingSlack = 500 * time.Millisecond
