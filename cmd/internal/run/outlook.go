package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// look says who holds the lock, of several the one that is waited for, and the
// place in its line.
func (t *turn) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	at := *t.at.Load()
	dir, holders, line, err := t.parties(ctx, client, at)
	if err != nil {
		return look.Situation{}, err
	}
	over := t.seen.Look()
	defer over()
	for _, c := range line {
		t.seen.See(path.Join(dir, c.Name), 0, false, nil)
	}
	all := len(holders)
	holders = slices.DeleteFunc(holders, func(c coord.Contender) bool { return own[c.Name] })
	first, err := (&look.Report{}).Read(ctx, client, dir, holders)
	for i, c := range first {
		first[i].Held = t.seen.See(c.Node, c.Token, true, c.Age)
	}
	s := look.Situation{
		Text: look.HeldBy(first, len(holders)), Key: look.KeyOf(first), Over: len(holders) < all,
		Fields: map[string]any{"holders": first, "holding": len(holders)},
	}
	if len(t.paths) > 1 {
		s.Text, s.Key, s.Fields["at"] = fmt.Sprintf("%s is %s", at, s.Text), string(at)+s.Key, at
	}
	s.StandIn(line, all, own)
	return s, err
}

// parties lists who holds, in which directory, and who waits.
func (t *turn) parties(ctx context.Context, client *coord.Client, path conn.NodePath) (dir string, holders, line []coord.Contender, err error) {
	if t.slots != nil {
		return t.slotParties(ctx, client, path)
	}
	found, err := look.Children(ctx, client, string(path))
	all := look.LineOf(found)
	var before []coord.Contender // that it cannot honour
	for i, granted := range inspect.Granted(all) {
		switch c := all[i]; {
		case c.Dialect != client.Dialect() && len(holders)+len(line) == 0:
			before = append(before, c)
		case c.Dialect != client.Dialect():
		case granted:
			holders = append(holders, c)
		default:
			line = append(line, c)
		}
	}
	if len(holders) == 0 {
		holders = before
	}
	return string(path), holders, line, err
}

func (t *turn) slotParties(ctx context.Context, client *coord.Client, path conn.NodePath) (dir string, holders, line []coord.Contender, err error) {
	at := semaphore.LayoutOf(client.Dialect(), string(path))
	found, err := look.Children(ctx, client, at.Leases.Dir)
	if err != nil {
		return at.Leases.Dir, nil, nil, err
	}
	holders = at.Order(found)
	found, err = look.Children(ctx, client, at.Queue.Dir)
	return at.Leases.Dir, holders[:min(*t.slots, len(holders))], look.LineOf(found), err
}

// look says how many have come, or are in the round that is under way.
func (p *place) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	b, err := doublebarrier.New(client, string(p.verb.Path), p.verb.N)
	if err != nil {
		return look.Situation{}, err
	}
	status, err := b.Status(ctx)
	if err != nil {
		return look.Situation{}, err
	}
	there, came := status.Waiting, len(status.Waiting)
	if len(own) > 0 && !slices.ContainsFunc(there, func(node string) bool { return own[path.Base(node)] }) {
		came++ // this one did, and has left
	}
	text := fmt.Sprintf("%d of %d have come", came, status.Size)
	if status.Open && len(status.Inside) > 0 {
		there, came = status.Inside, len(status.Inside)
		text = fmt.Sprintf("round %d is under way: %d of its %d members are there", status.Round, came, status.Size)
	}
	var those []coord.Contender
	for _, node := range there {
		those = append(those, look.LineOf([]string{path.Base(node)})...)
	}
	first, err := look.RoundOf(status).Read(ctx, client, string(p.verb.Path), those)
	if len(first) > 0 {
		text += ", first " + first[0].Who()
	}
	return look.Situation{Text: text, Key: text, Fields: map[string]any{
		"there": first, "came": came, "members": status.Size, "round": status.Round,
	}}, err
}

// look says what is in the queue, who has items of it, and the place in the
// line of the idle.
func (d *delivery) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	q, err := queue.New(client, string(d.verb.Path))
	if err != nil {
		return look.Situation{}, err
	}
	items, taken, err := q.Items(ctx)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return look.Situation{}, err
	}
	idle, err := look.Children(ctx, client, queue.LayoutOf(client.Dialect(), string(d.verb.Path)).Waiting.Dir)
	if err != nil {
		return look.Situation{}, err
	}
	first, err := look.Workers(ctx, q, taken[:min(look.MostNamed, len(taken))])
	s := look.Situation{
		Text:   fmt.Sprintf("%s, %d in hand", term.Plural(len(items), "item", "items"), len(taken)),
		Fields: map[string]any{"items": len(items), "in_hand": len(taken), "holders": first},
	}
	if len(first) > 0 {
		s.Text += ", " + look.HeldBy(first, len(taken))
	}
	if waiting := len(items) - len(taken); waiting > 0 {
		s.Text += fmt.Sprintf("; %d to be delivered again later", waiting)
	}
	s.Key = fmt.Sprint(len(items), len(taken), look.KeyOf(first))
	s.StandIn(look.LineOf(idle), 0, own)
	return s, err
}

// How often a waiter that reports its place looks: less often the longer
// nothing changes, and the longer the line is.
const (
	lookFirst   = time.Second
	lookLast    = 10 * time.Second
	lookForEach = 10 * time.Millisecond // that waits, too
)

// verbosely is an option of the verbs that run a command.
type verbosely struct {
	Verbose bool `short:"v" help:"Tell on standard error, while waiting and holding: who holds, the place in the line, outages."`
}

// narrator says how a command's wait and hold go. It never waits: it writes to
// [term.Notes].
type narrator struct {
	streams *term.Streams
	verbose bool
	paths   conn.NodePaths
	joined  chan struct{} // gets one when a node was made
	short   bool          // the trust window is
	said    map[string]bool

	mu      sync.Mutex
	own     look.Names // of the nodes that were made
	down    time.Time  // since when there is no connection; zero: there is one
	outages int
}

func newNarrator(s *term.Streams, j *job) *narrator {
	if j.said == nil {
		j.said = map[string]bool{}
	}
	return &narrator{streams: s, verbose: j.Verbose, paths: j.Paths, joined: make(chan struct{}, 1), own: look.Names{}, said: j.said}
}

// tell writes a note, with --verbose only.
func (n *narrator) tell(event string, fields map[string]any, format string, args ...any) {
	to := n.streams.Err
	if all, ok := to.(*term.Notes); ok {
		to = term.Remarks{Notes: all}
	}
	switch {
	case !n.verbose:
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

// observe hears of the session, and of our nodes.
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
		n.tell("session over", map[string]any{"session": session, "error": e.Err.Error()}, "session %s is over: %v", session, e.Err)
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
			"the servers do not confirm that %s is held: unless they do, the command must end in %s", n.paths, term.Age(until.Seconds()))
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
// is printed about the wait, not even by a look that is under way.
func (n *narrator) wait(parent context.Context) (waiting context.Context, over func()) {
	waiting, cancel := context.WithCancel(parent)
	return waiting, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		cancel()
	}
}

// accompany says what a wait is for until it ends: a person after a while, and
// with --verbose whenever it has changed.
func (n *narrator) accompany(waiting context.Context, client *coord.Client, lookAt looker) {
	if n.verbose {
		n.follow(waiting, client, lookAt)
		return
	}
	if !term.IsTerminal(n.streams.Err) {
		return
	}
	select {
	case <-time.After(lookFirst):
	case <-waiting.Done():
	}
	s, err := n.glance(waiting, client, lookAt)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && !s.Over && waiting.Err() == nil {
		n.streams.Note("waiting for %s, %v", n.paths, s)
	}
}

func (n *narrator) follow(waiting context.Context, client *coord.Client, lookAt looker) {
	told, pause := "", lookFirst
	for {
		select {
		case <-n.joined: // one's place is known from here on
		case <-time.After(pause):
		case <-waiting.Done():
			return
		}
		s, err := n.glance(waiting, client, lookAt)
		pause = min(2*pause, lookLast)
		n.mu.Lock()
		if err == nil && !s.Over && s.Key != told && waiting.Err() == nil {
			n.tell("waiting", s.Fields, "waiting for %s, %v", n.paths, s)
			told, pause = s.Key, lookFirst
		}
		n.mu.Unlock()
		pause = max(pause, time.Duration(s.Others)*lookForEach)
	}
}

// explain adds to an error that says that a wait was in vain who holds, or how
// many have come. If one look does not show it in time, it is left out.
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
