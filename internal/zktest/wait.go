package zktest

import (
	"fmt"
	"os"
	"path"
	"testing"
	"time"
)

// pollEvery is how often a condition is looked at.
const pollEvery = 5 * time.Millisecond

// Eventually fails the test unless cond becomes true within the given time.
// cond runs in the calling goroutine, immediately and then every few
// milliseconds, so it may use require and t.
func Eventually(t testing.TB, within time.Duration, cond func() bool, format string, args ...any) {
	t.Helper()
	if !poll(within, cond) {
		t.Fatalf("not within %v: %s", within, fmt.Sprintf(format, args...))
	}
}

// Receive returns the next value of a channel and fails the test if none comes
// within the given time. A closed channel gives the zero value, so it also
// waits for a Done channel.
func Receive[T any](t testing.TB, within time.Duration, ch <-chan T, format string, args ...any) T {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
	}
	t.Fatalf("not within %v: %s", within, fmt.Sprintf(format, args...))
	panic("unreachable")
}

// poll reports whether cond became true in time. It looks once more at the end,
// for a busy machine.
func poll(within time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return cond()
		}
	}
}

// PID returns the process id of the server, 0 before its first start.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid()
}

// Alive reports whether the server's process exists; a stopped one does.
func (s *Server) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && s.proc.alive()
}

// Kill ends the server by SIGKILL and returns when its process is gone. Its
// data stay, as far as they were written: the server does not wait for the
// disk, but what it wrote survives its own death.
func (s *Server) Kill() error {
	return s.signal(func(p *process) error { p.kill(); return nil })
}

// Stop halts the server by SIGSTOP: the kernel still accepts connections, and
// nothing answers. Stop returns when the process stands still.
func (s *Server) Stop() error { return s.signal((*process).stop) }

// Continue ends a Stop.
func (s *Server) Continue() error { return s.signal((*process).cont) }

func (s *Server) signal(send func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.alive() {
		return fmt.Errorf("zktest: server %s is not running", s.Addr())
	}
	return send(s.proc)
}

// Restart kills the server if it runs, starts it on the same data and address,
// and returns when it serves.
func (s *Server) Restart() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitReady()
}

// WipeAndRestart is Restart with the data removed: the server has forgotten
// every node and session.
func (s *Server) WipeAndRestart() error {
	_ = s.Kill() // if it runs
	if err := os.RemoveAll(s.DataDir()); err != nil {
		return fmt.Errorf("zktest: wiping server %s: %w", s.Addr(), err)
	}
	return s.Restart()
}

// close ends the server for good and removes its data; with keepLog its log
// goes to the artefacts first.
func (s *Server) close(keepLog bool, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
	}
	if keepLog {
		if kept, err := keep(s.log(), path.Join(label, fmt.Sprintf("server%d.log", s.id))); err == nil {
			fmt.Fprintln(os.Stderr, "zktest: log of server", s.Addr(), "kept as", kept)
		}
	}
	s.client.release()
	_ = os.RemoveAll(s.dir)
}
