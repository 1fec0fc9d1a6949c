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
// ([ErrConnection]). sent is called, unless nil, when the request was written:
// later requests are answered after the create. Creates of one path wait for
// each other.
func (s *Session) Create(path string, data []byte, flags int32, acl []ACL, sent func()) (string, int64, error) {
	answered, err := s.cfg.packets.admit(packetHeader+createSize(path, data, acl), s.Done())
	if err != nil {
		return "", 0, err
	}
	defer answered()
	c := &creation{sent: sent, done: make(chan struct{})}
	s.mu.Lock()
	for s.creates[path] != nil { // the replies could not be told apart
		other := s.creates[path].done
		s.mu.Unlock()
		<-other
		s.mu.Lock()
	}
	s.creates[path] = c
	s.mu.Unlock()
	made, err := s.conn.Create(path, data, flags, zkACL(acl))
	s.mu.Lock()
	zxid := c.zxid
	delete(s.creates, path)
	close(c.done)
	s.mu.Unlock()
	return made, zxid, s.translate(err)
}

// Children lists a node's children.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return Call(ctx, s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
}

// Delete deletes a node of any version.
func (s *Session) Delete(ctx context.Context, path string) error {
	_, err := Call(ctx, s, func(c *zk.Conn) (struct{}, error) {
		return struct{}{}, c.Delete(path, -1)
	})
	return err
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
