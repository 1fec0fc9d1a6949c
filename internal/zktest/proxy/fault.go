package proxy

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// Always as Fault.Times lets a fault fire at every match.
const Always = -1

// Fault is what shall happen to which packets.
type Fault struct {
	On    []int32           // opcodes; any if empty
	Path  string            // this node or anything below it; any if empty
	Where func(*Frame) bool // a further condition, nil for none; called on the proxy's goroutines
	Skip  int               // so many matches pass unharmed first
	Times int               // fires so often; 0 means once, Always without end
	Do    Action
}

// Action is what a fault does. An action on a reply matches by the opcode and
// paths of the request it answers.
type Action struct {
	onReply bool
	do      func(f *Frame, lastZxid int64) fate
}

// fate is what becomes of one packet.
type fate struct {
	drop     bool
	cut      bool // the connection ends immediately
	cutAfter bool // the connection ends when the packet has been forwarded
	delay    time.Duration
	hold     <-chan struct{}
	answer   []byte // goes back to the client in place of a reply
}

// Actions on requests.
var (
	// Watch does nothing but count: the packet passes.
	Watch = always(false, fate{})
	// CutAfter forwards the request and cuts the connection immediately. The
	// server will apply it, but perhaps only after the client has noticed the
	// cut.
	CutAfter = always(false, fate{cutAfter: true})
	// DropAndCut cuts the connection in place of forwarding the request.
	DropAndCut = always(false, fate{drop: true, cut: true})
	// Drop swallows the request; the connection stays.
	Drop = always(false, fate{drop: true})
)

// Actions on replies.
var (
	// CutOnReply cuts the connection in place of forwarding the reply: the
	// server has applied the request, the client will not hear of it.
	CutOnReply = always(true, fate{drop: true, cut: true})
	// WatchReply does nothing but count: the packet passes.
	WatchReply = always(true, fate{})
)

// Delay holds a request, and all later ones of its connection, for d.
func Delay(d time.Duration) Action { return always(false, fate{delay: d}) }

// DelayReply holds a reply, and all later ones of its connection, for d.
func DelayReply(d time.Duration) Action { return always(true, fate{delay: d}) }

// Hold keeps a request, and all later ones of its connection, until the channel
// is closed.
func Hold(until <-chan struct{}) Action { return always(false, fate{hold: until}) }

// Reject answers a request with an error code in the server's place, such as
// -127 (throttled).
func Reject(code int32) Action {
	return Action{do: func(f *Frame, lastZxid int64) fate {
		b := binary.BigEndian.AppendUint32(nil, uint32(f.Xid))
		b = binary.BigEndian.AppendUint64(b, uint64(lastZxid))
		return fate{drop: true, answer: binary.BigEndian.AppendUint32(b, uint32(code))}
	}}
}

// ForgetSession is for connect packets: the server takes the client for a new
// one and gives it a new session.
var ForgetSession = Action{do: func(f *Frame, _ int64) fate {
	const session, password = 16, 28 // offsets, after version, zxid, timeout; after session and length
	if len(f.Body) >= password+16 {
		clear(f.Body[session : session+8])
		clear(f.Body[password : password+16])
	}
	return fate{}
}}

func always(onReply bool, what fate) Action {
	return Action{onReply: onReply, do: func(*Frame, int64) fate { return what }}
}

// Rule is a Fault in force.
type Rule struct {
	fault Fault
	proxy *Proxy
	first chan struct{}

	mu      sync.Mutex
	matched int
	fired   int
}

// Inject puts a fault in force. The oldest rule that matches a packet and is
// not used up decides about it.
func (p *Proxy) Inject(f Fault) *Rule {
	if f.Times == 0 {
		f.Times = 1
	}
	r := &Rule{fault: f, proxy: p, first: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Fired returns how often the fault has happened.
func (r *Rule) Fired() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fired
}

// First is closed when the fault has happened for the first time.
func (r *Rule) First() <-chan struct{} { return r.first }

// Remove ends the rule. What it holds or delays at this moment stays held.
func (r *Rule) Remove() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.rules = slices.DeleteFunc(r.proxy.rules, func(other *Rule) bool { return other == r })
}

// takes reports whether the rule decides about this packet, and counts it.
func (r *Rule) takes(f *Frame) bool {
	if r.fault.Do.onReply != f.Reply || len(r.fault.On) > 0 && !slices.Contains(r.fault.On, f.Op) ||
		r.fault.Path != "" && !f.about(r.fault.Path) || r.fault.Where != nil && !r.fault.Where(f) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault.Times != Always && r.fired >= r.fault.Times {
		return false
	}
	r.matched++
	if r.matched <= r.fault.Skip {
		return false
	}
	r.fired++
	if r.fired == 1 {
		close(r.first)
	}
	return true
}

// Lost are the ways in which a request gets lost with the connection: its reply
// alone, or the request itself.
var Lost = map[string]Action{"reply": CutOnReply, "request": DropAndCut}
