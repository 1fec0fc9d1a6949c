package term

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// MostNotes is how many bytes of notes wait for a reader.
const MostNotes = 64 << 10

// Notes is the standard error. While this process guards a command it does not
// wait for the reader, which may be stuck: what does not fit is dropped.
type Notes struct {
	*os.File
	mu      sync.Mutex
	pending []byte
	more    *sync.Cond // something is pending, or nothing more comes
	ended   bool
	busy    bool // a write is under way
	done    chan struct{}
}

func NewNotes(to *os.File) *Notes {
	n := &Notes{File: to, done: make(chan struct{})}
	n.more = sync.NewCond(&n.mu)
	go n.deliver()
	return n
}

func (n *Notes) Write(p []byte) (int, error) {
	n.add(p, MostNotes)
	return len(p), nil
}

// add drops what would make more pending than that.
func (n *Notes) add(p []byte, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending)+len(p) <= most {
		n.pending = append(n.pending, p...)
		n.more.Signal()
	}
}

// Remarks are notes that leave half of the room to the others, such as the
// object of the end.
type Remarks struct{ *Notes }

func (r Remarks) Write(p []byte) (int, error) {
	r.add(p, MostNotes/2)
	return len(p), nil
}

// deliver writes what is pending. A note that cannot be written is dropped.
func (n *Notes) deliver() {
	defer close(n.done)
	for {
		n.mu.Lock()
		for len(n.pending) == 0 && !n.ended {
			n.more.Wait()
		}
		p, ended := bytes.Clone(n.pending), n.ended
		n.busy = len(p) > 0
		n.pending = n.pending[:0]
		n.mu.Unlock()
		_, _ = n.File.Write(p)
		n.mu.Lock()
		n.busy = false
		n.mu.Unlock()
		if ended && len(p) == 0 {
			return
		}
	}
}

// Drain gives the reader a moment, before this process is stopped.
func (n *Notes) Drain() {
	for range 100 {
		n.mu.Lock()
		quiet := len(n.pending) == 0 && !n.busy
		n.mu.Unlock()
		if quiet {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Flush waits for the reader when there is nothing left to protect. A signal
// may end that.
func (n *Notes) Flush() {
	signal.Reset(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	n.mu.Lock()
	n.ended = true
	n.more.Signal()
	n.mu.Unlock()
	<-n.done
}
