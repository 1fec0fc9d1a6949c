package zkembed

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is what a [Match] sees of a request: its session, operation and
// paths. A multi has the paths and the operations of all its parts.
type Request struct {
	Session int64
	Op      Op
	Xid     int32
	Paths   []string
	Parts   []Op
}

// Match says which requests a fault strikes. Each field that is set must
// agree; the zero Match is every request but pings.
type Match struct {
	// Ops are the operations to strike. For [DelayEvents] they do not count.
	Ops []Op
	// PathPrefix is how one of the request's paths must begin. Sequential
	// creates come without their number.
	PathPrefix string
	// Session is the session that must have sent the request.
	Session int64
	// Func, if set, has the last word. It must be quick and must not call the
	// server.
	Func func(Request) bool
	// Skip lets so many matching requests pass before the fault strikes.
	Skip int
	// Times is how often the fault strikes; zero is every time.
	Times int
}

type actKind uint8

const (
	actNone actKind = iota
	actDrop
	actHang
	actLoseReply
	actDelay
	actLate
	actDelayReply
	actReplyError
	actDelayEvents
)

// Action is what a fault does to a request.
type Action struct {
	kind  actKind
	delay time.Duration
	code  Code
}

// Drop cuts the connection instead of carrying the request out: it is never
// applied, and the client cannot know that.
func Drop() Action { return Action{kind: actDrop} }

// Hang leaves the request and everything behind it on that connection without
// an answer, pings included; nothing of it is applied. The connection stays
// open until the client or the session's end closes it.
func Hang() Action { return Action{kind: actHang} }

// LoseReply carries the request out and then cuts the connection without a
// reply: the client cannot know that the request was applied.
func LoseReply() Action { return Action{kind: actLoseReply} }

// Delay carries the request out later. What the client sent behind it waits
// too, since a server answers a client in order.
func Delay(d time.Duration) Action { return Action{kind: actDelay, delay: d} }

// CarryOutLate cuts the connection, and carries the request out later, if the
// session lasts that long, even if it has done other things over other
// connections by then; the session counts as moved ([Server.MoveSession]). A
// follower of a real ensemble that was cut off from its leader does so when it
// is back, if the client has tried to return to it meanwhile: it passes on what
// it held, and the attempt right behind it, and the leader checks which server
// has the session only after both. Requests that write nothing are dropped, and
// so are requests that fall due while the server is stopped.
func CarryOutLate(d time.Duration) Action { return Action{kind: actLate, delay: d} }

// DelayReply carries the request out immediately and replies later. What goes
// to the client behind the reply waits too.
func DelayReply(d time.Duration) Action { return Action{kind: actDelayReply, delay: d} }

// ReplyError answers with an error instead of carrying the request out.
func ReplyError(code Code) Action { return Action{kind: actReplyError, code: code} }

// DelayEvents delivers watch events later. What goes to the client behind an
// event waits too: ZooKeeper never shows a change before the event that reports
// it. For late events with prompt replies see [Server.AddFollower].
func DelayEvents(d time.Duration) Action { return Action{kind: actDelayEvents, delay: d} }

// Fault is a fault that waits for its requests.
type Fault struct {
	s     *Server
	match Match
	act   Action
	first chan struct{}

	mu    sync.Mutex
	seen  int
	fired int
}

// Inject makes requests fail. Of several faults that match a request, the one
// injected first strikes.
func (s *Server) Inject(m Match, a Action) *Fault {
	f := &Fault{s: s, match: m, act: a, first: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	return f
}

// Fired returns how often the fault has struck.
func (f *Fault) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Struck is closed when the fault strikes for the first time: for [Delay] at
// the beginning of the delay, otherwise before the client can notice.
func (f *Fault) Struck() <-chan struct{} { return f.first }

// Remove ends the fault; requests that it holds stay held.
func (f *Fault) Remove() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.faults = slices.DeleteFunc(f.s.faults, func(g *Fault) bool { return g == f })
}

// strikes counts the request and reports whether the fault strikes it.
func (f *Fault) strikes(r Request) bool {
	m := f.match
	if m.Session != 0 && m.Session != r.Session || len(m.Ops) == 0 && r.Op == OpPing ||
		len(m.Ops) > 0 && r.Op != OpNotify && !slices.Contains(m.Ops, r.Op) {
		return false
	}
	if m.PathPrefix != "" &&
		!slices.ContainsFunc(r.Paths, func(p string) bool { return strings.HasPrefix(p, m.PathPrefix) }) {
		return false
	}
	if m.Func != nil && !m.Func(r) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen <= m.Skip || m.Times > 0 && f.fired >= m.Times {
		return false
	}
	f.fired++
	if f.fired == 1 {
		close(f.first)
	}
	return true
}

// faultFor finds what is to happen to a request. mu is held.
func (s *Server) faultFor(c *conn, r request) Action {
	if len(s.faults) == 0 {
		return Action{}
	}
	seen := describe(c, r)
	for _, f := range s.faults {
		if f.act.kind != actDelayEvents && f.strikes(seen) {
			return f.act
		}
	}
	return Action{}
}

// eventDue returns when an event may go to a client. mu is held.
func (s *Server) eventDue(c *conn, path string) time.Time {
	for _, f := range s.faults {
		if f.act.kind == actDelayEvents && f.strikes(Request{Session: c.session.id, Op: OpNotify, Paths: []string{path}}) {
			return time.Now().Add(f.act.delay)
		}
	}
	return time.Time{}
}

func describe(c *conn, r request) Request {
	out := Request{Session: c.session.id, Op: r.op, Xid: r.xid}
	d := decode(r.body)
	switch r.op {
	case OpMulti, OpMultiRead:
		ops := d.multi
		if r.op == OpMultiRead {
			ops = d.multiRead
		}
		for _, o := range ops() {
			out.Parts, out.Paths = append(out.Parts, o.op), append(out.Paths, o.path)
		}
	case OpPing, OpCloseSession, OpAuth, OpSASL, OpSetWatches, OpSetWatches2, OpWhoAmI:
	default:
		if p := d.String(); d.Err == nil {
			out.Paths = []string{p}
		}
	}
	return out
}

// before applies the part of a fault that comes before the request. It returns
// false when the request is not to be carried out.
func (c *conn) before(r request, a Action) bool {
	switch a.kind {
	case actDrop:
		return false
	case actHang:
		for hangs := true; hangs && !c.finished(); { // until the client closes, which shows behind all that it has sent
			_, hangs = c.in.pop(c.quit)
		}
		return false
	case actDelay:
		return c.sleep(a.delay, c.quit)
	case actLate:
		if r.op.write() {
			c.s.wg.Go(func() { c.carryOutLate(r, a.delay) })
		}
		return false
	}
	return true
}

// carryOutLate carries the request out after the connection was cut.
func (c *conn) carryOutLate(r request, after time.Duration) {
	s := c.s
	if !c.sleep(after, s.done) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopped || c.session.ended {
		return
	}
	s.write(c, r)
	c.session.moved = true
}
