package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/go-zookeeper/zk"
)

// awaitUp waits until requests can be sent.
func (s *Session) awaitUp(ctx context.Context) error {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	switch { // for select takes any of several
	case s.ending.Err() != nil:
		return s.Err()
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return Ended(ctx)
	case <-s.ending.Done():
		return s.Err()
	}
}

// Go runs task in a goroutine that the session's end waits for. It returns an
// error when the session is over.
func (s *Session) Go(task func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(task)
}

// begin is Go with s.mu held.
func (s *Session) begin(task func()) error {
	if s.concluded {
		return s.Err()
	}
	s.tasks.Go(task)
	return nil
}

// Modes of Create.
const (
	Persistent           = zk.FlagPersistent
	Ephemeral            = zk.FlagEphemeral
	PersistentSequential = zk.FlagSequence
	EphemeralSequential  = zk.FlagEphemeralSequential
)

// Call waits for the connection and runs f with it in a goroutine. When ctx
// ends, the caller returns; f runs on until the server answers or the session
// is over, and its result is dropped. If f ends its goroutine, Call ends the
// caller's. The client library's errors are translated.
func Call[T any](ctx context.Context, s *Session, f func(*zk.Conn) (T, error)) (T, error) {
	var zero T
	if err := s.awaitUp(ctx); err != nil {
		return zero, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	if err := s.Go(func() {
		defer close(done)
		value, err := f(s.conn)
		done <- result{value, s.translate(err)}
	}); err != nil {
		return zero, err
	}
	select {
	case r, returned := <-done:
		if !returned {
			runtime.Goexit() // as f has done
		}
		return r.value, r.err
	case <-ctx.Done():
		return zero, Ended(ctx)
	}
}

// translate also distinguishes the end of the session from a passing loss of
// the connection.
func (s *Session) translate(err error) error {
	err = translate(err)
	if err == ErrConnection && s.ending.Err() != nil {
		return fmt.Errorf("%w: %w", s.Err(), err)
	}
	return err
}

// Create makes a node and returns its path and czxid. It blocks until the
// server has answered or the session is over, so a caller with a context calls
// it in a goroutine; and the caller must find out the outcome if it is unknown
// ([ErrConnection]).
func (s *Session) Create(path string, data []byte, flags int32, acl []ACL) (string, int64, error) {
	answered, err := s.cfg.packets.admit(packetHeader+createSize(path, data, acl), s.Done())
	if err != nil {
		return "", 0, err
	}
	defer answered()
	if err := s.awaitUp(context.Background()); err != nil {
		return "", 0, err
	}
	return s.create(path, data, flags, acl).Outcome()
}

// Creation is a create that was sent.
type Creation struct {
	sess *Session
	done chan struct{}
	path string
	zxid int64
	err  error
}

// Done is closed when the outcome is there.
func (c *Creation) Done() <-chan struct{} { return c.done }

// Outcome waits for the answer and returns what [Session.Create] does.
func (c *Creation) Outcome() (path string, czxid int64, err error) {
	<-c.done
	return c.path, c.zxid, c.sess.translate(c.err)
}

// BeginCreate is Create that does not block. It returns nil if the request
// cannot be sent at once. What is asked next travels with it, and is answered
// after it.
func (s *Session) BeginCreate(path string, data []byte, flags int32, acl []ACL) *Creation {
	size := packetHeader + createSize(path, data, acl)
	if pause, err := s.cfg.packets.verdict(size); pause > 0 || err != nil || size > s.cfg.MaxPacket || !s.Connected() {
		return nil
	}
	return s.create(path, data, flags, acl)
}

func (s *Session) create(path string, data []byte, flags int32, acl []ACL) *Creation {
	c := &Creation{sess: s, done: make(chan struct{})}
	s.ask(request{op: opCreate}, func(b []byte) []byte {
		b = appendInt32(appendBuffer(appendString(b, path), data), int32(len(acl)))
		for _, a := range acl {
			b = appendString(appendString(appendInt32(b, a.Perms), a.Scheme), a.ID)
		}
		return appendInt32(b, flags)
	}, func(a answer) {
		c.path, _ = stringAt(a.body, 0)
		c.zxid, c.err = a.zxid, a.err
		close(c.done)
	})
	return c
}

// Children lists a node's children.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return roundTrip(ctx, s, request{op: opGetChildren2}, reading(path, false), func(a answer) []string {
		names, _ := namesAt(a.body, 0)
		return names
	})
}

// reading are the fields of a request that reads.
func reading(path string, watch bool) func(b []byte) []byte {
	return func(b []byte) []byte {
		if watch {
			return append(appendString(b, path), 1)
		}
		return append(appendString(b, path), 0)
	}
}

// Delete deletes a node of any version.
func (s *Session) Delete(ctx context.Context, path string) error {
	_, err := roundTrip(ctx, s, request{op: opDelete}, deleting(path), func(answer) struct{} { return struct{}{} })
	return err
}

// BeginDelete is Delete that does not block. tell is called once, by a
// goroutine that must not be held up; or at once, with [ErrConnection], if the
// request cannot be sent.
func (s *Session) BeginDelete(path string, tell func(error)) {
	s.ask(request{op: opDelete}, deleting(path), func(a answer) { tell(s.translate(a.err)) })
}

// deleting are the fields of a request that deletes a node of any version.
func deleting(path string) func(b []byte) []byte {
	return func(b []byte) []byte { return appendInt32(appendString(b, path), -1) }
}

// Flush is a write that changes nothing: a transaction of one check, on which
// the ensemble must agree. When it has returned nil, the server this session
// is connected to has applied whatever was committed before the call, so that
// a following read shows it. A sync is not enough: a superseded leader
// acknowledges one. The check's own result does not matter, as long as it is
// the ensemble's.
func (s *Session) Flush(ctx context.Context) error {
	_, err := Call(ctx, s, func(c *zk.Conn) (struct{}, error) {
		_, err := c.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
		switch translate(err) {
		case ErrNoAuth, ErrNoNode, ErrBadVersion:
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// EnsurePath creates path and its parents as container nodes, which the
// server removes some time after their last child went, or as persistent ones
// where the server has no containers: it says so, or has closed the connection
// twice.
func (s *Session) EnsurePath(ctx context.Context, path string, acl []ACL) error {
	for at := 1; at <= len(path); at++ {
		if at < len(path) && path[at] != '/' || path == "/" {
			continue
		}
		switch err := s.ensure(ctx, path[:at], acl); {
		case errors.Is(err, ErrNoNode):
			at = 0 // the server has just removed an empty container above: begin again
		case err != nil:
			return fmt.Errorf("create %s: %w", path[:at], err)
		}
	}
	return nil
}

func (s *Session) ensure(ctx context.Context, path string, acl []ACL) error {
	_, err := Call(ctx, s, func(c *zk.Conn) (struct{}, error) {
		exists, _, err := c.Exists(path)
		if err != nil || exists {
			return struct{}{}, err
		}
		known := s.cfg.packets.hasContainers()
		if known {
			_, err = c.CreateContainer(path, nil, zk.FlagContainer, zkACL(acl))
		}
		if !known || translate(err) == ErrUnsupported || err == zk.ErrAPIError {
			_, err = c.Create(path, nil, zk.FlagPersistent, zkACL(acl))
		}
		return struct{}{}, err
	})
	if err == ErrNodeExists {
		return nil
	}
	return err
}

// Parent returns the path above path.
func Parent(path string) string {
	if at := strings.LastIndexByte(path, '/'); at > 0 {
		return path[:at]
	}
	return "/"
}
