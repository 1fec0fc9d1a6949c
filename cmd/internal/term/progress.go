package term

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Progress is a line on a terminal that is written anew again and again. On
// anything else it is nothing.
type Progress struct {
	streams *Streams
	live    bool
	shown   time.Time
}

func NewProgress(s *Streams) *Progress {
	return &Progress{streams: s, live: !s.JSON && IsTerminal(s.Out) && os.Getenv("TERM") != "dumb"}
}

// Show replaces the line by a bar and how much it is, but not more often than
// eyes can follow.
func (p *Progress) Show(done, all int) {
	if !p.live || time.Since(p.shown) < 40*time.Millisecond {
		return
	}
	p.shown = time.Now()
	fmt.Fprint(p.streams.Out, "\r\x1b[K"+gauge(done, all, Width(p.streams.Out)))
}

// Tell prints a line for good, above the moving one.
func (p *Progress) Tell(format string, args ...any) {
	if p.streams.JSON {
		return
	}
	p.Clear()
	fmt.Fprintf(p.streams.Out, format+"\n", args...)
}

func (p *Progress) Clear() {
	if p.live {
		fmt.Fprint(p.streams.Out, "\r\x1b[K")
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
