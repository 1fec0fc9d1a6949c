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
func contend(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	c := &contest{}
	release, err := c.holdBack(open, s, t)
	if err == nil {
		err = c.start(s, t)
	}
	if err == nil && !t.lined {
		err = release(s.ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return &job{
		run: func() (figures, error) {
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
		},
		close: s.close,
	}, nil
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
func (c *contest) holdBack(open open, s *sessions, t task) (release call, err error) {
	if t.own || t.behind {
		return func(context.Context) error { return nil }, nil
	}
	first, err := open(s.ctx, t.addrs[0], t.timeout)
	if err != nil {
		return nil, err
	}
	s.all = append(s.all, first) // is closed with the others
	lock, err := first.lock(t.path + "/shared")
	if err != nil {
		return nil, err
	}
	return lock(s.ctx)
}

// start lets all queue.
func (c *contest) start(s *sessions, t task) error {
	shared := t.path + "/shared"
	before := footprint()
	grant := c.granted() // of the path that they share
	var all []func(context.Context) error
	for i, one := range s.all[:t.sessions] {
		for k := range t.each {
			path, grant := shared, grant
			if t.own {
				path, grant = fmt.Sprintf("%s/own-%d-%d", t.path, i, k), c.granted()
			}
			lock, err := one.lock(path)
			if err != nil {
				return err
			}
			all = append(all, func(ctx context.Context) error { return cycles(ctx, lock, grant) })
		}
	}
	for _, cycles := range all { // when no directory is to be made meanwhile
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
func wait(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	lock, err := s.all[0].lock(t.path + "/lock")
	if err != nil {
		s.close()
		return nil, err
	}
	return &job{
		run: func() (figures, error) {
			_, err := lock(s.ctx)
			return figures{"ops": 1}, err
		},
		close: s.close,
	}, nil
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

// zkcoordClient is a session of this library.
type zkcoordClient struct {
	client *coord.Client
	opts   []lock.Option

	mu      sync.Mutex
	mutexes map[string]*lock.Mutex // by path: goroutines share one
}

func openZkcoord(opts ...lock.Option) open {
	return func(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
		client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
		if err != nil {
			return nil, err
		}
		c := &zkcoordClient{client: client, opts: opts, mutexes: map[string]*lock.Mutex{}}
		return &session{
			lock: c.lock, barrier: c.barrier, queue: c.queue,
			close: func() { _ = client.Close(context.Background()) },
			id:    client.SessionID,
		}, nil
	}
}

func (c *zkcoordClient) lock(path string) (_ acquire, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mutexes[path]
	if m == nil {
		m, err = lock.New(c.client, path, c.opts...)
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
	put, receive := oneByOne(q)
	return put, receive, err
}

// openTries is TryAcquire in the place of Acquire.
func openTries(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	lock := func(path string) (acquire, error) {
		m, err := lock.New(client, path)
		return func(ctx context.Context) (call, error) {
			h, err := m.TryAcquire(ctx)
			if err != nil {
				return nil, err
			}
			return h.Release, nil
		}, err
	}
	return &session{lock: lock, close: func() { _ = client.Close(context.Background()) }}, nil
}

// hold is one session that holds t.each locks.
func hold(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	before, begun := footprint(), time.Now()
	releases := make([]call, t.each)
	err = together(t.each, func(i int) error {
		lock, err := s.all[0].lock(fmt.Sprintf("%s/lock-%d", t.path, i))
		if err == nil {
			releases[i], err = lock(s.ctx)
		}
		return err
	})
	if err != nil {
		s.close()
		return nil, err
	}
	f := figures{"ops": float64(t.each), "acquire": time.Since(begun).Seconds() / float64(t.each)}
	f["memory"], f["goroutines"] = footprint().per(before, t.each)
	id := s.all[0].id()
	return &job{
		run: func() (figures, error) {
			if s.all[0].id() != id || len(releases) != t.each {
				return nil, errors.New("the locks were lost with their session")
			}
			return f, nil
		},
		close: s.close,
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
func idle(ctx context.Context, open open, t task) (*job, error) {
	acquire := func(s *sessions, i int, path int) error {
		lock, err := s.all[i].lock(fmt.Sprintf("%s/lock-%d", t.path, path))
		if err == nil {
			_, err = lock(s.ctx)
		}
		return err
	}
	waits := t.each == 2
	if waits {
		one := t
		one.sessions = 1
		holder, err := openAll(ctx, open, one)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, holder.close)
		if err := together(t.sessions, func(i int) error { return acquire(holder, 0, i) }); err != nil {
			return nil, err
		}
	}
	before := footprint()
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	if waits {
		for i := range t.sessions {
			s.work(func(context.Context) error { return acquire(s, i, i) })
		}
		<-time.After(t.settle) // they wait by then
	} else {
		err = together(t.sessions, func(i int) error { return acquire(s, i, i) })
	}
	if err != nil {
		s.close()
		return nil, err
	}
	memory, goroutines := footprint().per(before, t.sessions)
	<-time.After(t.settle) // they have read their nodes by then
	return &job{
		run: func() (figures, error) {
			begun := time.Now()
			<-time.After(t.during)
			return figures{"ops": time.Since(begun).Seconds(), "memory": memory, "goroutines": goroutines}, nil
		},
		close: s.close,
	}, nil
}
