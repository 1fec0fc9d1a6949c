package term

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MostNotes is how many bytes may wait for a reader, besides the last note.
const MostNotes = 64 << 10

// Notes is the standard error. Write does not wait for the reader, which may be
// stuck while this process guards a command: notes that do not fit are dropped.
type Notes struct {
	*os.File
	mu      sync.Mutex
	pending []byte
	status  string     // the line below the notes
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

// add drops p if most bytes are pending already. The length of p itself does
// not count: p may be a long JSON object of results.
func (n *Notes) add(p []byte, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) < most {
		n.put(p, n.status)
	}
}

// Remarks are notes that leave half of the room to the others, such as the
// final JSON object.
type Remarks struct{ *Notes }

func (r Remarks) Write(p []byte) (int, error) {
	r.add(p, MostNotes/2-len(p))
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

// Drain waits until everything is written, but 0.1 s at most.
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

// Flush waits until everything is written, when there is no command left to
// guard. A signal then ends the process.
func (n *Notes) Flush() {
	signal.Reset(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	n.mu.Lock()
	n.ended = true
	n.more.Signal()
	n.mu.Unlock()
	<-n.done
}

// Account is what the JSON object of a failed verb has besides status and
// error, and where it is written.
type Account struct {
	Paths []string
	Demo  string // the name of a demonstration
	Runs  bool   // the verb runs a command, which has the standard output
	Told  bool   // an object has already reported the outcome
}

// Put sets a single value under name, or several as a list under its plural.
func Put[T any](object map[string]any, name string, values []T) {
	switch len(values) {
	case 0:
	case 1:
		object[name] = values[0]
	default:
		object[name+"s"] = values
	}
}

// AccountFor reports a failure in JSON, if JSON is wanted and no object has
// reported the outcome. The last line of a demonstration is this object also
// without --json, except after a usage error.
func (s *Streams) AccountFor(status *ExitError) {
	if s.Told || !s.JSON && (s.Demo == "" || status.Code == ExitUsage) {
		return
	}
	s.Told = true
	object := map[string]any{"status": status.Code, "error": Briefly(status).Error()}
	Put(object, "path", s.Paths)
	if s.Demo != "" {
		object["demo"], object["ok"] = s.Demo, false
	}
	for name, value := range status.Fields {
		object[name] = value
	}
	to := s.Out
	if s.Runs {
		to = s.Err
	}
	_ = WriteJSON(to, object)
}

// Tell writes the object of a verb that runs a command.
func (s *Streams) Tell(object map[string]any) {
	if s.JSON {
		s.Told = true
		_ = WriteJSON(s.Err, object)
	}
}

// Progress is a line on a terminal that is rewritten in place. Elsewhere it is
// not drawn.
type Progress struct {
	streams   *Streams
	live      bool
	shown     time.Time
	done, all int
	marks     []int
}

func NewProgress(s *Streams) *Progress {
	return &Progress{streams: s, live: !s.JSON && IsTerminal(s.Out) && os.Getenv("TERM") != "dumb"}
}

// Show redraws the line, a bar and its numbers, at most every 40 ms.
func (p *Progress) Show(done, all int) {
	p.done, p.all = done, all
	if time.Since(p.shown) >= 40*time.Millisecond {
		p.draw()
	}
}

// Mark marks the place on the bar where something happened.
func (p *Progress) Mark(done int) { p.marks = append(p.marks, done) }

func (p *Progress) draw() {
	if p.live && p.all > 0 {
		p.shown = time.Now()
		fmt.Fprint(p.streams.Out, eraseLine+gauge(p.done, p.all, Width(p.streams.Out), p.marks))
	}
}

// Tell prints a line for good, above the moving one.
func (p *Progress) Tell(format string, args ...any) {
	if p.streams.JSON {
		return
	}
	p.erase()
	fmt.Fprintf(p.streams.Out, format+"\n", args...)
	p.draw()
}

// Clear erases the line until Show draws it again.
func (p *Progress) Clear() {
	p.erase()
	p.all = 0
}

func (p *Progress) erase() {
	if p.live {
		fmt.Fprint(p.streams.Out, eraseLine)
	}
}

// gauge draws done of all, and marks, so that they fit on a line of so many
// columns: a line that wraps cannot be erased.
func gauge(done, all, columns int, marks []int) string {
	const longest = 40
	text := fmt.Sprintf("%d of %d", done, all)
	width := min(longest, columns-len(text)-4)
	if width < 4 {
		return text
	}
	n := width
	if all > 0 {
		n = min(width, width*done/all)
	}
	bar := []rune(strings.Repeat("█", n) + strings.Repeat("░", width-n))
	for _, mark := range marks {
		bar[min(width-1, width*mark/max(1, all))] = '✗'
	}
	return "  " + string(bar) + " " + text
}
