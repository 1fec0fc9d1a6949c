package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// hold is one session with t.each locks held at once.
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
// second of that.
func idle(ctx context.Context, open open, t task) (*job, error) {
	before := footprint()
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	err = together(t.sessions, func(i int) error {
		lock, err := s.all[i].lock(fmt.Sprintf("%s/lock-%d", t.path, i))
		if err == nil {
			_, err = lock(s.ctx)
		}
		return err
	})
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
