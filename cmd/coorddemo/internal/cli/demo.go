package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	// demoLimit is when a demo ends, done or not.
	demoLimit = 55 * time.Second
	// demoSession is the longest session time-out of a demo. The killed wait so long for their successors.
	demoSession = 4 * time.Second
	// The demo's own server ticks fast, so that a killed process's session ends soon.
	embeddedTick    = 100 * time.Millisecond
	embeddedSession = time.Second
)

type demoVerbs struct {
	All      allDemos     `cmd:"" help:"All of them, one after the other."`
	Batch    batchDemo    `cmd:"" help:"Processes start together, share the words of some files, and add them up when all are done, though one is killed."`
	Election electionDemo `cmd:"" help:"Replicas stand for election while their leader is killed again and again; never two may lead."`
	Queue    queueDemo    `cmd:"" help:"Producers and consumers share a queue while consumers are killed with an item in hand; none may be lost."`
	Stock    stockVerb    `cmd:"" help:"Processes sell a stock under a lock while their holders are killed; none may be oversold."`
}

// servers returns a connection for a demo: to the servers that were named, or else to one of its own. stop ends that.
func (c connection) forDemo() (_ connection, where string, stop func(), err error) {
	longest := demoSession
	stop, where = func() {}, c.ZK
	if c.ZK == "" {
		server, err := zkembed.Start(zkembed.WithTick(embeddedTick))
		if err != nil {
			return c, "", nil, exitWith(exitFailed, "%w", err)
		}
		longest = embeddedSession
		c.ZK, where, stop = server.ConnectString(), "an embedded server", func() { _ = server.Close() }
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = longest
	}
	c.SessionTimeout = min(c.SessionTimeout, demoSession)
	return c, where, stop, nil
}

// outcome prints a demo's last line and gives its status.
func (s *streams) outcome(result any, ok bool) error {
	writeJSON(s.out, result)
	if !ok {
		return silently(exitFailed)
	}
	return nil
}

// progress is a line on a terminal that is written anew again and again. On anything else it is nothing.
type progress struct {
	streams *streams
	live    bool
	shown   time.Time
}

func newProgress(s *streams) *progress {
	return &progress{streams: s, live: !s.json && isTerminal(s.out)}
}

// show replaces the line, but not more often than eyes can follow.
func (p *progress) show(format string, args ...any) {
	if !p.live || time.Since(p.shown) < 40*time.Millisecond {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.streams.out, "\r\x1b[K"+format, args...)
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

// bar draws done of all.
func bar(done, all int) string {
	const width = 40
	n := width
	if all > 0 {
		n = min(width, width*done/all)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

// plural is "1 process", "2 processes".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// briefly is what an error says, without the errors it is made of line by line.
func briefly(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")) }
