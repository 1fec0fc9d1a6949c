package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
)

// How often a waiter that reports its place looks: less often the longer
// nothing changes, and the longer the line is.
const (
	lookFirst   = time.Second
	lookLast    = 10 * time.Second
	lookForEach = 10 * time.Millisecond // that waits, too
)

// drawEvery is how often the line on a terminal is drawn.
const drawEvery = 500 * time.Millisecond

// verbosely is an option of the verbs that run a command.
type verbosely struct {
	Verbose bool `short:"v" xor:"told" help:"Report the wait and the hold on standard error."`
	Quiet   bool `short:"q" xor:"told" help:"On a terminal, leave out the line that shows what is waited for."`
}

// narrator says how a command's wait and hold go. It never waits: it writes to
// [term.Notes].
type narrator struct {
	streams *term.Streams
	verbosely
	paths  conn.NodePaths
	joined chan struct{} // gets one when a node was made
	short  bool          // the trust window is
	said   map[string]bool

	mu      sync.Mutex
	own     look.Names // of the nodes that were made
	down    time.Time  // since when there is no connection; zero: there is one
	outages int
}

func newNarrator(s *term.Streams, j *job) *narrator {
	if j.said == nil {
		j.said = map[string]bool{}
	}
	return &narrator{
		streams: s, verbosely: j.verbosely, paths: j.Paths, joined: make(chan struct{}, 1), own: look.Names{}, said: j.said,
	}
}

// tell writes a note, with --verbose only.
func (n *narrator) tell(event string, fields map[string]any, format string, args ...any) {
	to := n.streams.Err
	if all, ok := to.(*term.Notes); ok {
		to = term.Remarks{Notes: all}
	}
	switch {
	case !n.Verbose:
	case n.streams.JSON:
		object := map[string]any{"event": event}
		term.Put(object, "path", n.paths)
		maps.Copy(object, fields)
		_ = term.WriteJSON(to, object)
	default:
		(&term.Streams{Err: to}).Note(format, args...)
	}
}

// noAttendant is the note that there is none, for the reason why.
const noAttendant = "no attendant: should this process be killed, others wait for the session timeout: %v"

// observe is told of the session, and of our nodes.
func (n *narrator) observe(e event.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	session := look.SessionName(e.Session)
	switch {
	case e.Kind == event.Joined:
		n.own[path.Base(e.Path)] = true
		select {
		case n.joined <- struct{}{}:
		default:
		}
	case e.Kind == event.SessionDown:
		n.cutOff()
		n.tell("connection lost", map[string]any{"session": session}, "lost the connection to the servers")
	case e.Kind == event.SessionOver && !errors.Is(e.Err, coord.ErrClosed):
		n.cutOff()
		n.tell("session over", map[string]any{"session": session, "error": e.Err.Error()}, "session %s is over: %v",
			session, e.Err)
	case e.Kind == event.ClockAhead, e.Kind == event.MarkAhead, e.Kind == event.Differs:
		n.once(e)
	case e.Kind == event.SessionAttended && e.Err != nil:
		n.streams.Note(noAttendant, e.Err)
	case e.Kind == event.SessionAttended:
		n.tell("session attended", map[string]any{"session": session}, "session %s is attended", session)
	case e.Kind == event.SessionUp:
		fields, after := map[string]any{"session": session}, ""
		if !n.down.IsZero() {
			fields["after"] = term.Seconds(time.Since(n.down))
			after = fmt.Sprintf(" again, after %s", term.Age(time.Since(n.down).Seconds()))
		}
		n.down = time.Time{}
		n.tell("connected", fields, "connected%s: session %s", after, session)
	}
}

// once writes a note of something that concerns all who use the path, once in
// this process's life; n.mu is held.
func (n *narrator) once(e event.Event) {
	if !n.said[e.Kind] {
		n.said[e.Kind] = true
		n.streams.Note("%s: %v", e.Path, e.Err)
	}
}

// cutOff notes that there is no connection; n.mu is held.
func (n *narrator) cutOff() {
	if n.down.IsZero() {
		n.down = time.Now()
		n.outages++
	}
}

// outage says how often there was no connection, and whether there is none.
func (n *narrator) outage() (count int, now bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outages, !n.down.IsZero()
}

// window says when the servers have not confirmed a hold for so long that its
// trust window is shorter than it ever is in good health, and when they have
// again.
func (n *narrator) window(left, killAfter, session time.Duration) {
	short := left < session/4
	switch {
	case short == n.short:
		return
	case short:
		until := max(0, left-killAfter)
		n.tell("unconfirmed", map[string]any{"left": term.Seconds(until)},
			"the servers do not confirm that %s is held: unless they do, the command must end in %s", n.paths,
			term.Age(until.Seconds()))
	default:
		n.tell("confirmed", nil, "the servers confirm again that %s is held", n.paths)
	}
	n.short = short
}

// looker takes a look at what a task waits for.
type looker func(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error)

// glance is one look. It is not taken where no server answers.
func (n *narrator) glance(ctx context.Context, client *coord.Client, lookAt looker) (look.Situation, error) {
	if _, down := n.outage(); down {
		return look.Situation{}, errors.New("no connection")
	}
	n.mu.Lock()
	own := maps.Clone(n.own)
	n.mu.Unlock()
	return lookAt(ctx, client, own)
}

// wait returns a context for accompany, and what ends it: from then on nothing
// is printed about the wait, not even by a look that is under way, and the line
// about it is gone.
func (n *narrator) wait(parent context.Context) (waiting context.Context, over func()) {
	waiting, cancel := context.WithCancel(parent)
	return waiting, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		cancel()
		n.clear()
	}
}

// accompany reports what a wait is for, until it ends: with --verbose whenever
// it has changed, and otherwise in a line on a person's terminal.
func (n *narrator) accompany(waiting context.Context, client *coord.Client, lookAt looker) {
	switch notes, ok := n.streams.Err.(*term.Notes); {
	case n.Verbose:
		n.follow(waiting, client, lookAt, func(s look.Situation, isNew bool) {
			if isNew {
				n.tell("waiting", s.Fields, "waiting for %s, %v", n.paths, s)
			}
		})
	case ok && notes.HasStatus() && !n.Quiet && !n.streams.JSON:
		seen := look.Situation{}
		go n.draw(waiting, notes, &seen)
		select {
		case <-time.After(lookFirst): // most waits are shorter
			n.follow(waiting, client, lookAt, func(s look.Situation, _ bool) { seen = s })
		case <-waiting.Done():
		}
	}
}

// follow takes looks until the wait ends, and hands each on, with n.mu held,
// and whether it shows something else than the one before.
func (n *narrator) follow(
	waiting context.Context, client *coord.Client, lookAt looker, show func(s look.Situation, isNew bool),
) {
	told, pause := "", lookFirst
	for {
		select {
		case <-n.joined: // our place is known from here on
		case <-time.After(pause):
		case <-waiting.Done():
			return
		}
		s, err := n.glance(waiting, client, lookAt)
		pause = min(2*pause, lookLast)
		n.mu.Lock()
		if err == nil && !s.Over && waiting.Err() == nil {
			show(s, s.Key != told)
			if s.Key != told {
				told, pause = s.Key, lookFirst
			}
		}
		n.mu.Unlock()
		pause = max(pause, time.Duration(s.Others)*lookForEach)
	}
}

// draw keeps the line about a wait up to date, which says what was seen last.
// No look can hold it up.
func (n *narrator) draw(waiting context.Context, notes *term.Notes, seen *look.Situation) {
	begun, tick := time.Now(), time.NewTicker(drawEvery)
	defer tick.Stop()
	for waiting.Err() == nil {
		select {
		case <-tick.C:
		case <-waiting.Done():
		}
		n.mu.Lock()
		switch waited := time.Since(begun); {
		case waiting.Err() != nil:
			n.clear()
		case waited > lookFirst:
			notes.Status(n.line(waited, term.Width(notes), *seen))
		}
		n.mu.Unlock()
	}
}

// line is the line about a wait; n.mu is held.
func (n *narrator) line(waited time.Duration, columns int, seen look.Situation) string {
	line := fmt.Sprintf("%s: waiting %v for %s", term.Program, waited.Truncate(time.Second),
		term.Middle(n.paths.String(), max(20, columns/3)))
	if !n.down.IsZero() {
		line += fmt.Sprintf(", no connection for %v", time.Since(n.down).Truncate(time.Second))
	}
	if seen.Text != "" {
		line += ": " + seen.PlaceFirst()
	}
	return line
}

// clear erases the line about the wait, before another program writes; n.mu is
// held.
func (n *narrator) clear() {
	if notes, ok := n.streams.Err.(*term.Notes); ok {
		notes.Clear()
	}
}

// stopSelf stops this process as the stop key would. The shell begins a line.
func (n *narrator) stopSelf() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	term.StopSelf()
}

// explain adds to the error of a failed wait who holds, or how many have come,
// unless one look does not show it in time.
func (n *narrator) explain(err error, client *coord.Client, lookAt looker) error {
	status := term.StatusOf(err)
	if status.Code != term.ExitBusy && status.Code != term.ExitTimeout {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), look.LearnWithin)
	defer cancel()
	s, unknown := n.glance(ctx, client, lookAt)
	if unknown != nil {
		return err
	}
	s = s.WithoutPlace()
	told := fmt.Errorf("%w; %v", err, s)
	var vain *coord.WaitError
	if errors.As(err, &vain) { // the look says the same, and for how long
		told = fmt.Errorf("%s; %v", strings.TrimSuffix(err.Error(), "; "+vain.For), s)
	}
	if before, busy := strings.CutSuffix(err.Error(), coord.ErrBusy.Error()); busy {
		told = fmt.Errorf("%s%v", before, s) // who the other is
	}
	return &term.ExitError{Code: status.Code, Err: told, Fields: s.Fields}
}
