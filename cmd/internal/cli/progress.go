package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// progress is a line on a terminal that is written anew again and again. On
// anything else it is nothing.
type progress struct {
	streams *streams
	live    bool
	shown   time.Time
}

func newProgress(s *streams) *progress {
	return &progress{streams: s, live: !s.json && isTerminal(s.out) && os.Getenv("TERM") != "dumb"}
}

// show replaces the line by a bar and how much it is, but not more often than
// eyes can follow.
func (p *progress) show(done, all int) {
	if !p.live || time.Since(p.shown) < 40*time.Millisecond {
		return
	}
	p.shown = time.Now()
	fmt.Fprint(p.streams.out, "\r\x1b[K"+gauge(done, all, width(p.streams.out)))
}

// tell prints a line for good, above the moving one.
func (p *progress) tell(format string, args ...any) {
	if p.streams.json {
		return
	}
	p.clear()
	fmt.Fprintf(p.streams.out, format+"\n", args...)
}

func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.streams.out, "\r\x1b[K")
	}
}

// gauge draws done of all on a line of so many columns: a longer one would
// break, and stay.
func gauge(done, all, columns int) string {
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
	return "  " + strings.Repeat("█", n) + strings.Repeat("░", width-n) + " " + text
}
