package window

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model of an ensemble in discrete time, around the real code of the window.
// One leader keeps the session, and gives it up T after it last heard of it. A
// follower, or the next one after a reconnect, serves the client. Between
// leader and follower there are two ordered streams, between follower and
// client two more; a message stays under way in any of them for any time. So a
// silence, a backlog and the loss of messages (a silence that does not end)
// need no moves of their own, nor do pauses of the client, which stamps a
// request before it is sent and an answer after it has come.
//
// Time passes in units, and everything else happens between two of them.

const unit = time.Second

// scope bounds what is explored.
type scope struct {
	name       string
	timeout    int // T
	ping, late int // the leader pings every ping units, and up to late units late
	lag        int // what the window believes; 0 stands for ping + late
	slow       bool
	under      int // requests under way at a time
	budget
}

// budget is what there may be in one schedule, or still may be.
type budget struct{ reads, writes, reconnects, leaders, suspends int8 }

// rate is the client clock's: nearly as slow as the window allows for.
func (s scope) rate() float64 {
	if s.slow {
		return 1 - 0.99*float64(Skew(time.Second))/float64(time.Second)
	}
	return 1
}

// rule is the code under test.
type rule interface {
	Create(sent time.Time, timeout, lag time.Duration)
	Attach(sent time.Time)
	Answer(sent, came time.Time, write bool) (opened bool)
	End() time.Time
	clone() rule
	// state lists what the future depends on.
	state(add func(time.Time, bool))
}

// present is the rule of this package.
type present struct{ *Window }

func (p present) clone() rule {
	w := p.Window
	return present{&Window{
		timeout: w.timeout, lag: w.lag, base: w.base, attached: w.attached, wrote: w.wrote, answers: slices.Clone(w.answers),
	}}
}

func (p present) state(add func(time.Time, bool)) {
	add(p.base, false)
	add(later(p.base, p.attached), false)
	for _, a := range p.answers {
		if a.sent.After(p.base) { // or it moves nothing any more
			add(a.sent, a.write)
			add(a.came, a.write)
		}
	}
}

// kinds of requests, and of packets between leader and follower.
const (
	read      = 'r'
	write     = 'w'
	handshake = 'h'
	ping      = 'p'
	touched   = 't' // the answer to a ping, with the session in it
)

// Where a request is.
const (
	toServer = iota
	atServer
	toClient
)

type request struct {
	kind  byte
	sent  int
	stamp time.Time
	place int
}

// world is a state of the model. Slices are never changed in place.
type world struct {
	rule
	scope    *scope
	left     budget
	now      int
	slept    int // units for which the client's machine was suspended
	pinged   int // when the leader last pinged
	heard    int // when the leader last heard of the session
	expired  bool
	former   bool   // the client's server follows a leader that has been superseded
	table    bool   // the follower has heard of the session since its last answer
	down, up string // from the leader, to the leader
	requests []request
}

var epoch = time.Now()

func begin(s scope, code rule) []world {
	var all []world
	lag := s.lag
	if lag == 0 {
		lag = s.ping + s.late
	}
	for phase := range s.ping + s.late {
		w := world{rule: code.clone(), scope: &s, left: s.budget, pinged: -phase}
		w.Create(w.moment(), time.Duration(s.timeout)*unit, time.Duration(float64(lag)*s.rate()*float64(unit)))
		all = append(all, w)
	}
	return all
}

// moment is what the client's clock shows.
func (w *world) moment() time.Time {
	slept := time.Duration(w.slept) * unit
	c := Clock{Suspended: func() time.Duration { return slept }}
	return c.at(epoch.Add(time.Duration(float64(w.now-w.slept) * w.scope.rate() * float64(unit))))
}

// broken reports whether a hold could be acted on while its session is expired.
func (w *world) broken() bool {
	return w.expired && w.End().Add(Reaction(time.Duration(w.scope.timeout)*unit)).After(w.moment())
}

// key is the same for two states with the same future.
func (w *world) key() [sha256.Size224]byte {
	b := make([]byte, 0, 128)
	bit := func(v bool) {
		b = append(b, '0')
		if v {
			b[len(b)-1] = '1'
		}
	}
	b = append(b, byte(w.left.reads), byte(w.left.writes), byte(w.left.reconnects), byte(w.left.leaders),
		byte(w.left.suspends))
	if !w.expired {
		b = append(b, byte(w.now-w.pinged), byte(w.now-w.heard))
	}
	bit(w.expired)
	bit(w.former)
	bit(w.table)
	b = append(b, w.down...)
	b = append(b, '|')
	b = append(b, w.up...)
	b = append(b, '|')
	now, far := w.moment(), time.Duration(w.scope.timeout)*unit
	ago := func(t time.Time) {
		age := min(now.Sub(t), far) * 100 / unit
		b = append(b, byte(age), byte(age>>8))
	}
	for _, r := range w.requests {
		b = append(b, r.kind, byte(r.place))
		bit(r.sent == w.now)
		ago(r.stamp)
	}
	b = append(b, '|')
	w.state(func(t time.Time, mark bool) {
		ago(t)
		bit(mark)
	})
	return sha256.Sum224(b)
}

// moves calls yield with each state that may come next, and what led to it.
func (w world) moves(yield func(world, string)) {
	w.time(yield)
	w.client(yield)
	w.servers(yield)
	if w.left.leaders > 0 && !w.former && !w.expired {
		next := w
		next.left.leaders--
		next.former, next.heard = true, w.now
		yield(next, "another leader takes over")
	}
}

// time lets a unit pass. The leader may ping, and must if it is late.
func (w world) time(yield func(world, string)) {
	tick := func(w world, what string) {
		w.now++
		if w.now-w.heard >= w.scope.timeout && !w.expired {
			w.expired = true
			// From now on nothing but commits on their way back matters.
			w.down = strings.Map(onlyWrites, w.down)
			w.up, w.table = "", false
		}
		if w.expired || w.former {
			w.pinged = w.now
			yield(w, what)
			return
		}
		since := w.now - w.pinged
		if since < w.scope.ping+w.scope.late {
			yield(w, what)
		}
		if since >= w.scope.ping {
			w.pinged, w.down = w.now, w.down+string(rune(ping))
			yield(w, pings[what])
		}
	}
	tick(w, passes)
	if w.left.suspends > 0 {
		w.left.suspends--
		w.slept++
		tick(w, suspended)
	}
}

const (
	passes    = "time passes"
	suspended = "time passes while the client's machine is suspended"
)

var pings = map[string]string{passes: passes + ", the leader pings", suspended: suspended + ", the leader pings"}

func onlyWrites(r rune) rune {
	if r == write {
		return r
	}
	return -1
}

// client sends, receives, and connects again.
func (w world) client(yield func(world, string)) {
	send := func(kind byte, left budget) {
		connecting := len(w.requests) > 0 && w.requests[0].kind == handshake
		if !connecting && !w.expired && len(w.requests) < w.scope.under {
			next := w
			next.left = left
			next.requests = append(slices.Clip(w.requests), request{kind, w.now, w.moment(), toServer})
			yield(next, "the client sends "+names[kind])
		}
	}
	if left := w.left; left.reads > 0 {
		left.reads--
		send(read, left)
	}
	if left := w.left; left.writes > 0 {
		left.writes--
		send(write, left)
	}
	if len(w.requests) > 0 && w.requests[0].place == toClient && !w.ambiguous() {
		r, next := w.requests[0], w
		next.requests, next.rule = w.requests[1:], w.rule.clone()
		if r.kind == handshake {
			next.Attach(r.stamp)
		} else {
			next.Answer(r.stamp, w.moment(), r.kind == write)
		}
		yield(next, "the client receives the answer to "+names[r.kind])
	}
	if w.left.reconnects > 0 && !w.expired {
		next := w
		next.left.reconnects--
		next.requests = []request{{handshake, w.now, w.moment(), toServer}}
		next.down, next.up, next.table = "", "", false
		yield(next, "the client connects to another server")
		if w.former {
			next.former = false
			for phase := range w.scope.ping + w.scope.late {
				next.pinged = w.now - phase
				yield(next, "the client connects to a server of the new leader")
			}
		}
	}
}

var names = map[byte]string{read: "a read", write: "a write", handshake: "a handshake"}

// ambiguous reports whether the oldest answer would be stamped like a request
// that was sent before it came, which only a clock of whole units does.
func (w *world) ambiguous() bool {
	return w.requests[0].kind == write && slices.ContainsFunc(w.requests[1:], func(r request) bool {
		return r.kind == write && r.sent == w.now
	})
}

// servers take what is first in one of their streams.
func (w world) servers(yield func(world, string)) {
	if i := slices.IndexFunc(w.requests, func(r request) bool { return r.place == toServer }); i >= 0 {
		next := w.placed(i, atServer)
		kind := w.requests[i].kind
		if !w.expired {
			next.table = true
			if kind != read {
				next.up += string(rune(kind))
			}
		}
		next.answer()
		if kind != handshake || !w.expired { // or the session is over, and all holds with it
			yield(next, "the server receives "+names[kind])
		}
	}
	if w.down != "" {
		next := w
		next.down = w.down[1:]
		switch kind := w.down[0]; kind {
		case ping:
			if w.table {
				next.table, next.up = false, w.up+string(rune(touched))
			}
			yield(next, "the server answers a ping")
		default:
			next.finish(kind)
			yield(next, "the server hears of the outcome of "+names[kind])
		}
	}
	if w.up != "" {
		next := w
		next.up = w.up[1:]
		kind := w.up[0]
		// A leader that was superseded hears of sessions, to no avail, and has
		// no quorum for a write.
		if kind != write && !w.former {
			next.heard = w.now
		}
		if kind == handshake || kind == write && !w.former {
			next.down += string(rune(kind))
		}
		yield(next, "the leader receives "+map[byte]string{touched: "a report"}[kind]+names[kind])
	}
}

// placed returns the state with one request moved.
func (w world) placed(i, place int) world {
	w.requests = slices.Clone(w.requests)
	w.requests[i].place = place
	return w
}

// finish lets the server answer the oldest write or handshake.
func (w *world) finish(kind byte) {
	i := slices.IndexFunc(w.requests, func(r request) bool { return r.place == atServer && r.kind == kind })
	*w = w.placed(i, toClient)
	w.answer()
}

// answer lets the server answer the reads that wait for no write before them.
func (w *world) answer() {
	for i, r := range w.requests {
		if r.place == atServer {
			if r.kind != read {
				return
			}
			*w = w.placed(i, toClient)
		}
	}
}

// outcome of an exploration.
type outcome struct {
	states   int
	longest  int      // units that a schedule takes
	schedule []string // that breaks the trust, or none
}

// explore goes through every schedule in a scope, the shortest first, until one
// breaks the trust.
func explore(s scope, code rule) outcome {
	type step struct {
		before, now int32
		what        string
	}
	var out outcome
	seen, steps := map[[sha256.Size224]byte]struct{}{}, []step{}
	var queue []world
	add := func(w world, before int, what string) bool {
		key := w.key()
		if _, known := seen[key]; known {
			return false
		}
		seen[key] = struct{}{}
		steps, queue = append(steps, step{int32(before), int32(w.now), what}), append(queue, w)
		out.longest = max(out.longest, w.now)
		return w.broken()
	}
	for _, w := range begin(s, code) {
		add(w, -1, "the session begins")
	}
	broken := -1
	for at := 0; at < len(queue) && broken < 0; at++ {
		w := queue[at]
		queue[at] = world{} // not needed any more
		w.moves(func(next world, what string) {
			if broken < 0 && add(next, at, what) {
				broken = len(steps) - 1
			}
		})
	}
	out.states = len(seen)
	for at := int32(broken); at >= 0; at = steps[at].before {
		out.schedule = append(out.schedule, fmt.Sprintf("%2d %s", steps[at].now, steps[at].what))
	}
	slices.Reverse(out.schedule)
	return out
}

var largest = flag.String("scope", "small",
	"how far to explore the model: small, medium (make proofs) or large (make model)")

// scopes are what is explored; each size has those of the smaller ones, too.
// The least T that servers grant is two ticks, which is four pings.
var scopes = []struct {
	size   string
	scopes []scope
}{
	{"small", []scope{
		{name: "pings on time", timeout: 4, ping: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{name: "a reconnect", timeout: 4, ping: 1, under: 2, budget: budget{writes: 1, reconnects: 1}},
		{
			name: "another leader", timeout: 4, ping: 1, under: 1,
			budget: budget{reads: 1, writes: 1, reconnects: 1, leaders: 1},
		},
		{name: "suspends", timeout: 4, ping: 1, under: 1, budget: budget{reads: 1, writes: 2, suspends: 2}},
		{name: "a slow clock", timeout: 4, ping: 1, slow: true, under: 1, budget: budget{reads: 1, writes: 2}},
	}},
	{"medium", []scope{
		{name: "late pings", timeout: 5, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{
			name: "late pings and a reconnect", timeout: 4, ping: 1, late: 1, under: 2,
			budget: budget{reads: 1, writes: 1, reconnects: 1},
		},
		{
			name: "late pings and another leader", timeout: 4, ping: 1, late: 1, under: 2,
			budget: budget{writes: 2, reconnects: 1, leaders: 1},
		},
		{
			name: "late pings and suspends", timeout: 4, ping: 1, late: 1, under: 1,
			budget: budget{reads: 1, writes: 2, suspends: 2},
		},
		{
			name: "late pings and a slow clock", timeout: 5, ping: 1, late: 1, slow: true, under: 1,
			budget: budget{reads: 1, writes: 2},
		},
	}},
	{"large", []scope{
		{name: "two reads", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 2, writes: 2}},
		{name: "three writes", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 3}},
		{name: "a finer tick", timeout: 8, ping: 2, late: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{
			name: "a reconnect amid requests", timeout: 4, ping: 1, late: 1, under: 2,
			budget: budget{reads: 1, writes: 2, reconnects: 1},
		},
		{
			name: "all at once", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{
				reads: 1, writes: 2, reconnects: 1, leaders: 1, suspends: 1,
			},
		},
	}},
}

func TestProofNoScheduleBreaksTheTrust(t *testing.T) {
	for _, all := range scopes {
		for _, s := range all.scopes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				out := explore(s, present{new(Window)})
				require.Empty(t, out.schedule, strings.Join(out.schedule, "\n"))
				t.Logf("%d states, schedules of up to %d T, in %v", out.states, out.longest/s.timeout, time.Since(begun))
			})
		}
		if all.size == *largest {
			break
		}
	}
}

// former is the rule that one acknowledged write proves what was answered a lag
// before it was sent.
type former struct{ *Window }

func (f former) clone() rule { return former(present(f).clone().(present)) }

func (f former) state(add func(time.Time, bool)) { present(f).state(add) }

func (f former) Answer(sent, came time.Time, write bool) (opened bool) {
	f.keep(answer{sent, came, false})
	if write {
		f.base = later(f.base, f.attached)
		f.advance(sent.Add(-f.lag))
	}
	return false
}

func TestProofTheModelFindsWhatTheFormerRuleMissed(t *testing.T) {
	out := explore(scope{timeout: 8, ping: 2, under: 2, budget: budget{reads: 1, writes: 1}}, former{new(Window)})
	require.NotEmpty(t, out.schedule)
	t.Logf("after %d states:\n%s", out.states, strings.Join(out.schedule, "\n"))
}

func TestProofTheModelFindsALagThatIsShorterThanTheLeaderIsLate(t *testing.T) {
	out := explore(scope{timeout: 4, ping: 1, late: 1, lag: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		present{new(Window)})
	require.NotEmpty(t, out.schedule)
	t.Logf("after %d states:\n%s", out.states, strings.Join(out.schedule, "\n"))
}
