package history

import (
	"slices"
	"time"
)

// How a hold has ended, as far as it is known.
type How string

const (
	Released How = "released" // by its session, which could not have ended by then, or lived on; or by a program that broke it
	Broken   How = "broken"   // by who told History.Breaks
	Lost     How = "lost"     // its session ended: its client was connected, and silent
	Crashed  How = "crashed"  // its session ended: its client was not connected any more
)

// Heard is what the servers say of the session of a client that is connected.
type Heard struct {
	At      time.Time     // that a request came; zero: they do not say it
	Timeout time.Duration // 0: they do not say it
}

// Book is which clients were connected.
type Book struct {
	Asked    time.Time
	Complete bool // all servers have answered
	Sessions map[string]Heard
}

// session is what is known of one that holds something.
type session struct {
	Heard
	listed  time.Time // in the last book that has it
	missing time.Time // in the last book that has all but it; zero: it was listed since
	gone    bool      // and it still held then
}

// The part of a session's timeout after which it may have ended, and after
// which its client is silent. The clocks of servers are not precise.
const (
	mayEnd   = 2. / 3
	isSilent = 1. / 2
)

// Breaks notes that a node is about to be deleted by force, or that this came
// to nothing.
func (h *History) Breaks(node string, does bool) {
	if does {
		h.broken[node] = true
	} else {
		delete(h.broken, node)
	}
}

// Hear adds what the servers say about connected clients.
func (h *History) Hear(b Book) {
	h.pending = slices.DeleteFunc(h.pending, func(i *Interval) bool {
		if b.Asked.Before(i.End.To) {
			return false
		}
		_, lives := b.Sessions[i.Session]
		switch {
		case lives:
			i.How = Released
		case b.Complete:
			i.How = h.sessions[i.Session].fate(i.End.To)
		}
		return lives || b.Complete
	})
	h.prune()
	for name, s := range h.sessions {
		heard, listed := b.Sessions[name]
		switch {
		case listed:
			*s = session{Heard: heard, listed: b.Asked}
		case b.Complete:
			s.missing = b.Asked
		}
	}
}

// fate is how a session's hold has ended by then, if the session has ended too.
func (s *session) fate(then time.Time) How {
	switch {
	case s == nil:
		return ""
	case s.outlives(then):
		return Released
	case s.gone:
		return Crashed
	case s.Timeout > 0 && s.listed.Sub(s.At) > s.part(isSilent) && !then.Before(s.At.Add(s.Timeout)):
		return Lost
	}
	return ""
}

// outlives reports whether the session cannot have ended by then.
func (s *session) outlives(then time.Time) bool {
	return s != nil && s.Timeout > 0 && then.Before(s.At.Add(s.part(mayEnd)))
}

func (s *session) part(of float64) time.Duration { return time.Duration(float64(s.Timeout) * of) }

// conclude finds out how a hold has ended, or leaves that for later.
func (h *History) conclude(i *Interval) {
	switch {
	case h.broken[i.Node]:
		i.How = Broken
		delete(h.broken, i.Node)
	case h.sessions[i.Session].outlives(i.End.To):
		i.How = Released
	default:
		h.pending = append(h.pending, i)
	}
}

// meet notes which sessions a look has met. A session that was there after the
// end of its hold has released it.
func (h *History) meet(l Look) {
	there := map[string]bool{}
	for _, p := range l.Paths {
		for _, holder := range p.Holders {
			there[holder.Session] = true
			s := h.sessions[holder.Session]
			if s == nil {
				s = &session{}
				h.sessions[holder.Session] = s
			}
			s.gone = s.gone || !s.missing.IsZero() && l.Began.After(s.missing)
		}
		for _, name := range p.Others {
			there[name] = true
		}
	}
	h.pending = slices.DeleteFunc(h.pending, func(i *Interval) bool {
		if !there[i.Session] || !l.Began.After(i.End.To) {
			return l.Ended.Sub(i.End.To) > h.limits.Keep
		}
		i.How = Released
		return true
	})
}

// prune forgets the sessions that hold nothing any more.
func (h *History) prune() {
	needed := map[string]bool{}
	for _, i := range h.pending {
		needed[i.Session] = true
	}
	for _, t := range h.paths {
		for _, at := range t.lanes {
			for _, i := range at.held {
				needed[i.Session] = true
			}
		}
	}
	for name := range h.sessions {
		if !needed[name] {
			delete(h.sessions, name)
		}
	}
}
