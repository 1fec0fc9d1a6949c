package term

import (
	"os"
	"strings"
)

// eraseLine erases the line that the cursor is in.
const eraseLine = "\r\x1b[K"

// HasStatus reports whether the reader sees a line that is rewritten in place.
func (n *Notes) HasStatus() bool { return IsTerminal(n.File) && os.Getenv("TERM") != "dumb" }

// Status replaces the line below the notes, cut to the terminal's width. It
// writes nothing while notes are pending, or in the background, where the
// terminal is another process's.
func (n *Notes) Status(line string) {
	line = Cut(Visible(strings.ReplaceAll(line, "\n", " ")), Width(n.File)-1)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !foreground(n.File):
		n.status = ""
	case line != n.status && len(n.pending) == 0 && !n.busy:
		n.put(nil, line)
	}
}

// Clear erases the line that Status has written, and gives the terminal a
// moment to do so: the next output of another program then begins on an empty
// line.
func (n *Notes) Clear() {
	n.mu.Lock()
	shown := n.status != "" && foreground(n.File)
	if shown {
		n.put(nil, "")
	}
	n.status = ""
	n.mu.Unlock()
	if shown {
		n.Drain()
	}
}

// put adds a note, and the line below it; n.mu is held.
func (n *Notes) put(note []byte, status string) {
	if n.status != "" {
		n.pending = append(n.pending, eraseLine...)
	}
	n.pending = append(append(n.pending, note...), status...)
	n.status = status
	n.more.Signal()
}
