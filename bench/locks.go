package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// contend is t.sessions times t.each goroutines that acquire and release as
// fast as they can, on one path or each on its own. It measures the time from
// one grant on a path to the next: alone that is a cycle, in company a
// hand-off.
func contend(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	c := &contest{}
	release, err := c.holdBack(s, t)
	if err == nil {
		err = c.start(s, all, t)
	}
	if err == nil && !t.lined {
		err = release(s.ctx)
	}
	return func() (figures, error) {
		if t.lined {
			if err := release(s.ctx); err != nil {
				return nil, err
			}
		}
		f := c.measure(t.during)
		f["memory"], f["goroutines"] = c.memory, c.goroutines
		if t.lined {
			f["queued"] = c.queued.Seconds()
		}
		return f, s.failure()
	}, err
}

// contest collects the grants of one measurement.
type contest struct {
	memory, goroutines float64 // of each waiter
	queued             time.Duration

	mu      sync.Mutex
	on      bool
	grants  int
	between []time.Duration
}

// holdBack acquires the lock that all will queue for, by a session of its own.
func (c *contest) holdBack(s *sessions, t task) (release call, err error) {
	if t.own || t.behind {
		return func(context.Context) error { return nil }, nil
	}
	first, err := s.openOne(t)
	if err != nil {
		return nil, err
	}
	lock, err := first.lock(t.path + "/shared")
	if err != nil {
		return nil, err
	}
	return lock(s.ctx)
}

// start lets all queue.
func (c *contest) start(s *sessions, all []*session, t task) error {
	shared := t.path + "/shared"
	before := footprint()
	grant := c.granted() // of the path that they share
	var work []func(context.Context) error
	for i, one := range all {
		for k := range t.each {
			path, grant := shared, grant
			if t.own {
				path, grant = fmt.Sprintf("%s/own-%d-%d", t.path, i, k), c.granted()
			}
			lock, err := one.lock(path)
			if err != nil {
				return err
			}
			work = append(work, func(ctx context.Context) error { return cycles(ctx, lock, grant) })
		}
	}
	for _, cycles := range work { // when no directory is to be made meanwhile
		s.work(cycles)
	}
	if t.lined {
		if err := c.awaitLine(s.ctx, t, shared); err != nil {
			return err
		}
	}
	<-time.After(t.settle)
	c.memory, c.goroutines = footprint().per(before, t.sessions*t.each)
	return nil
}

// awaitLine returns when the line has not grown for a while.
func (c *contest) awaitLine(ctx context.Context, t task, path string) error {
	conn, err := connect(ctx, t.addrs[0], t.timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	begun, longest := time.Now(), int32(0)
	for time.Since(begun)-c.queued < time.Second {
		_, stat, err := conn.Exists(path)
		if err != nil {
			return err
		}
		if stat.NumChildren > longest {
			longest, c.queued = stat.NumChildren, time.Since(begun)
		}
		<-time.After(10 * time.Millisecond)
	}
	return nil
}

func cycles(ctx context.Context, lock acquire, granted func()) error {
	for ctx.Err() == nil {
		release, err := lock(ctx)
		if err != nil {
			return err
		}
		granted()
		if err := release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// granted returns what is called at each grant on one path.
func (c *contest) granted() func() {
	var last time.Time
	return func() {
		now := time.Now()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.on {
			c.grants++
			if !last.IsZero() {
				c.between = append(c.between, now.Sub(last))
			}
		}
		last = now
	}
}

// measure counts for so long.
func (c *contest) measure(during time.Duration) figures {
	c.set(true)
	begun := time.Now()
	<-time.After(during)
	c.set(false)
	return figures{"ops": float64(c.grants), "seconds": time.Since(begun).Seconds(), "p50": median(c.between)}
}

func (c *contest) set(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = on
}

// median is in seconds, 0 of nothing.
func median(times []time.Duration) float64 {
	if len(times) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(times))[len(times)/2].Seconds()
}

// wait is one session that acquires a lock and keeps it.
func wait(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	return func() (figures, error) { return figures{"ops": 1}, s.acquire(all[0], t.path+"/lock") }, err
}

// use is what this process takes.
type use struct{ bytes, goroutines int }

// footprint is what is alive on the heap, and the stacks.
func footprint() use {
	runtime.GC()
	runtime.GC() // what pools and finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()}
}

// per is what each of n takes that were not there before.
func (u use) per(before use, n int) (bytes, goroutines float64) {
	return float64(u.bytes-before.bytes) / float64(n), float64(u.goroutines-before.goroutines) / float64(n)
}

// usage is how this library is used.
type usage struct {
	locks []lock.Option
	calls func(*queue.Queue) (put, receive) // nil: oneByOne
}

// zkcoordClient is a session of this library.
type zkcoordClient struct {
	usage
	client *coord.Client

	mu      sync.Mutex
	mutexes map[string]*lock.Mutex // by path: goroutines share one
}

func (u usage) open(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	if u.calls == nil {
		u.calls = oneByOne
	}
	c := &zkcoordClient{usage: u, client: client, mutexes: map[string]*lock.Mutex{}}
	return &session{
		lock: c.lock, barrier: c.barrier, queue: c.queue,
		close: func() { _ = client.Close(context.Background()) },
		id:    func() int64 { return client.Info().SessionID },
	}, nil
}

func (c *zkcoordClient) lock(path string) (_ acquire, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mutexes[path]
	if m == nil {
		m, err = lock.New(c.client, path, c.locks...)
		c.mutexes[path] = m
	}
	return func(ctx context.Context) (call, error) {
		h, err := m.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}, err
}

func (c *zkcoordClient) barrier(path string, n int) (enter, leave call, err error) {
	b, err := doublebarrier.New(c.client, path, n)
	var m *doublebarrier.Member
	enter = func(ctx context.Context) (err error) {
		m, err = b.Enter(ctx)
		return err
	}
	return enter, func(ctx context.Context) error { return m.Leave(ctx) }, err
}

func (c *zkcoordClient) queue(path string) (put, receive, error) {
	q, err := queue.New(c.client, path)
	put, receive := c.calls(q)
	return put, receive, err
}

// hold is one session that holds t.each locks.
func hold(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	before, begun := footprint(), time.Now()
	releases := make([]call, t.each)
	err = together(t.each, func(i int) error {
		lock, err := all[0].lock(fmt.Sprintf("%s/lock-%d", t.path, i))
		if err == nil {
			releases[i], err = lock(s.ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f := figures{"ops": float64(t.each), "acquire": time.Since(begun).Seconds() / float64(t.each)}
	f["memory"], f["goroutines"] = footprint().per(before, t.each)
	id := all[0].id()
	return func() (figures, error) {
		if all[0].id() != id || len(releases) != t.each {
			return nil, errors.New("the locks were lost with their session")
		}
		return f, nil
	}, nil
}

// quiet is how long nothing is sent when a client has recovered.
const quiet = 500 * time.Millisecond

// cut cuts the connections to a server and returns how long clients went on to
// send requests, and how many they sent.
func (s *server) cut(within time.Duration) (recovery time.Duration, requests int) {
	sent := func() int { return s.proxy.Stats().Passed[proxy.ToServer].Packets }
	before, begun := sent(), time.Now()
	s.proxy.CutAll()
	for time.Since(begun) < within && (requests == 0 || time.Since(begun)-recovery < quiet) {
		<-time.After(5 * time.Millisecond)
		if n := sent() - before; n > requests {
			requests, recovery = n, time.Since(begun)
		}
	}
	return recovery, requests
}

// idle is t.sessions that hold a lock each, and do nothing. An operation is a
// second of that. If each lock is shared by two, one more session holds them
// all, and these wait.
func idle(s *sessions, t task) (measurement, error) {
	path := func(i int) string { return fmt.Sprintf("%s/lock-%d", t.path, i) }
	waits := t.each == 2
	if waits {
		holder, err := s.openOne(t)
		if err == nil {
			err = together(t.sessions, func(i int) error { return s.acquire(holder, path(i)) })
		}
		if err != nil {
			return nil, err
		}
	}
	before := footprint()
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	if waits {
		for i, one := range all {
			s.work(func(context.Context) error { return s.acquire(one, path(i)) })
		}
		<-time.After(t.settle) // they wait by then
	} else if err := together(t.sessions, func(i int) error { return s.acquire(all[i], path(i)) }); err != nil {
		return nil, err
	}
	memory, goroutines := footprint().per(before, t.sessions)
	<-time.After(t.settle) // they have read their nodes by then
	return func() (figures, error) {
		begun := time.Now()
		<-time.After(t.during)
		return figures{"ops": time.Since(begun).Seconds(), "memory": memory, "goroutines": goroutines}, nil
	}, nil
}
