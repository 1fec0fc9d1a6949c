package history

import (
	"slices"
	"time"
)

// How a hold has ended; "" if that is not known.
type How string

const (
	Released How = "released" // while its session lived: by the holder, or by another program that deleted its node
	Broken   How = "broken"   // by the caller of History.Breaks
	Lost     How = "lost"     // its session ended: its client was connected, and silent
	Crashed  How = "crashed"  // its session ended: its client was not connected any more
)

// Heard is what the servers say of a connected client's session.
type Heard struct {
	At      time.Time     // when the last request came; zero: they do not say
	Timeout time.Duration // 0: they do not say
}

// Book says which clients were connected.
type Book struct {
	Asked    time.Time
	Complete bool // all servers have answered
	Sessions map[string]Heard
}

// session is what is known of a session that holds something.
type session struct {
	Heard
	listed  time.Time // when the last book with it was asked for
	missing time.Time // when the last complete book without it was asked for; zero: it was listed since
	gone    bool      // a look after missing showed that it still held
}

// The parts of its timeout after which a session may have ended, and after
// which its client counts as silent. The clocks of servers are not precise.
const (
	mayEnd   = 2. / 3
	isSilent = 1. / 2
)

// Breaks notes that a node is about to be deleted by force, or, if does is
// false, that the deletion failed.
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

// fate says how a hold of the session ended that was gone by then, given that
// the session has ended by now.
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
