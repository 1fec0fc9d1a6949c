package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// How often a waiter looks, if it is to tell of its place: the longer nothing
// changes, the less, and the longer the line, the less.
const (
	lookFirst   = time.Second
	lookLast    = 10 * time.Second
	lookForEach = 10 * time.Millisecond // that waits, too
)

// verbosely is an option of the verbs that run a command.
type verbosely struct {
	Verbose bool `short:"v" help:"Tell on standard error, while waiting and holding: who holds, the place in the line, outages."`
}

// narrator tells how a command's wait and hold go. It never waits: what it
// writes to are notes.
type narrator struct {
	streams *streams
	verbose bool
	paths   nodePaths
	joined  chan struct{} // gets one when a node was made
	short   bool          // the trust window is

	mu      sync.Mutex
	own     names     // of the nodes that were made
	down    time.Time // since when there is no connection; zero: there is one
	outages int
}

func newNarrator(s *streams, j *job) *narrator {
	return &narrator{streams: s, verbose: j.Verbose, paths: j.Paths, joined: make(chan struct{}, 1), own: names{}}
}

// tell tells something that only --verbose does.
func (n *narrator) tell(event string, fields map[string]any, format string, args ...any) {
	to := n.streams.err
	if all, ok := to.(*notes); ok {
		to = remarks{all}
	}
	switch {
	case !n.verbose:
	case n.streams.json:
		object := map[string]any{"event": event}
		put(object, "path", n.paths)
		maps.Copy(object, fields)
		_ = writeJSON(to, object)
	default:
		(&streams{err: to}).note(format, args...)
	}
}

// observe hears of the session, and of own nodes.
func (n *narrator) observe(e coord.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	session := sessionName(e.Session)
	switch {
	case e.Kind == coord.ClaimJoined:
		n.own[path.Base(e.Path)] = true
		select {
		case n.joined <- struct{}{}:
		default:
		}
	case e.Kind == coord.SessionDown:
		n.cutOff()
		n.tell("connection lost", map[string]any{"session": session}, "lost the connection to the servers")
	case e.Kind == coord.SessionOver && !errors.Is(e.Err, coord.ErrClosed):
		n.cutOff()
		n.tell("session over", map[string]any{"session": session, "error": e.Err.Error()}, "session %s is over: %v", session, e.Err)
	case e.Kind == coord.SessionUp:
		fields, after := map[string]any{"session": session}, ""
		if !n.down.IsZero() {
			fields["after"] = seconds(time.Since(n.down))
			after = fmt.Sprintf(" again, after %s", age(time.Since(n.down).Seconds()))
		}
		n.down = time.Time{}
		n.tell("connected", fields, "connected%s: session %s", after, session)
	}
}

// cutOff notes that there is no connection; n.mu is held.
func (n *narrator) cutOff() {
	if n.down.IsZero() {
		n.down = time.Now()
		n.outages++
	}
}

// outage tells how often there was no connection, and whether there is none.
func (n *narrator) outage() (count int, now bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outages, !n.down.IsZero()
}

// window tells when the servers have not confirmed a hold for so long that its
// trust window is shorter than it ever is in good health, and when they have
// again.
func (n *narrator) window(left, killAfter, session time.Duration) {
	short := left < session/4
	switch {
	case short == n.short:
		return
	case short:
		until := max(0, left-killAfter)
		n.tell("unconfirmed", map[string]any{"left": seconds(until)},
			"the servers do not confirm that %s is held: unless they do, the command is told to end in %s", n.paths, age(until.Seconds()))
	default:
		n.tell("confirmed", nil, "the servers confirm again that %s is held", n.paths)
	}
	n.short = short
}

// looker takes a look at what a task waits for.
type looker func(ctx context.Context, client *coord.Client, own names) (situation, error)

// glance is one look. It is not taken where no server answers.
func (n *narrator) glance(ctx context.Context, client *coord.Client, look looker) (situation, error) {
	if _, down := n.outage(); down {
		return situation{}, errors.New("no connection")
	}
	n.mu.Lock()
	own := maps.Clone(n.own)
	n.mu.Unlock()
	return look(ctx, client, own)
}

// wait returns a context for accompany, and what ends it: from then on nothing
// is told of the wait, also by a look that is under way.
func (n *narrator) wait(parent context.Context) (waiting context.Context, over func()) {
	waiting, cancel := context.WithCancel(parent)
	return waiting, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		cancel()
	}
}

// accompany tells what a wait is for until it ends: a person after a while,
// and with --verbose whenever it has changed.
func (n *narrator) accompany(waiting context.Context, client *coord.Client, look looker) {
	if n.verbose {
		n.follow(waiting, client, look)
		return
	}
	if !isTerminal(n.streams.err) {
		return
	}
	select {
	case <-time.After(lookFirst):
	case <-waiting.Done():
	}
	s, err := n.glance(waiting, client, look)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && !s.over && waiting.Err() == nil {
		n.streams.note("waiting for %s, %v", n.paths, s)
	}
}

func (n *narrator) follow(waiting context.Context, client *coord.Client, look looker) {
	told, pause := "", lookFirst
	for {
		select {
		case <-n.joined: // one's place is known from here on
		case <-time.After(pause):
		case <-waiting.Done():
			return
		}
		s, err := n.glance(waiting, client, look)
		pause = min(2*pause, lookLast)
		n.mu.Lock()
		if err == nil && !s.over && s.key != told && waiting.Err() == nil {
			n.tell("waiting", s.fields, "waiting for %s, %v", n.paths, s)
			told, pause = s.key, lookFirst
		}
		n.mu.Unlock()
		pause = max(pause, time.Duration(s.others)*lookForEach)
	}
}

// explain adds to an error that says that a wait was in vain who holds, or how
// many have come. If that is not learned at once, it is left out.
func (n *narrator) explain(err error, client *coord.Client, look looker) error {
	status := statusOf(err)
	if status.code != exitBusy && status.code != exitTimeout {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), learnWithin)
	defer cancel()
	s, unknown := n.glance(ctx, client, look)
	if unknown != nil {
		return err
	}
	s = s.withoutPlace()
	return &exitError{code: status.code, err: fmt.Errorf("%w; %v", err, s), fields: s.fields}
}
