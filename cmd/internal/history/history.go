package history

import (
	"maps"
	"slices"
	"time"
)

// Look is what one look has shown. Each path was read at some moment between
// Began and Ended.
type Look struct {
	Began, Ended time.Time
	Partial      bool            // paths that are not among Paths were not looked at; otherwise nobody is there
	Paths        map[string]Path // by path
}

// Path is what a look has shown of one path.
type Path struct {
	Kind string
	// Lanes are parts with holders of their own, such as the keys of shards.
	// nil: the path itself has holders; empty: nothing has.
	Lanes   []string
	Holders []Holder
	Others  []string // the sessions of those who wait
	Waiting int
	// Stamp was read before the path: as long as it stays the same, nobody has
	// come and nobody has gone; "": not known.
	Stamp    string
	Queue    *Queue    // of a queue
	Schedule *Schedule // of a schedule
}

// Holder is who holds a path, or a lane of it.
type Holder struct {
	Lane, Node     string
	Token          int64 // identifies the hold, together with Node
	Owner, Session string
	Made           time.Time // when its node was made, no later than the grant; zero: not known
}

// Span is the time within which something happened. If From is zero, it may
// have been before the first look.
type Span struct{ From, To time.Time }

// Interval says who held a path, or that nobody did, without a break from
// Begin.To to End.From. Begin and End are spans: the moment within each is not
// known.
type Interval struct {
	ID      int64
	Path    string
	Kind    string
	Nobody  bool // held the path
	AtLooks bool // with Nobody: somebody may have held it between two looks
	Holder
	Begin, End Span // End is zero while it lasts
	How        How  // how it ended
}

// Lasts reports whether the interval had not ended at the last look.
func (i *Interval) Lasts() bool { return i.End.To.IsZero() }

// Limits bound what is remembered.
type Limits struct {
	Keep      time.Duration // for how long
	Intervals int
	Points    int
	Apart     time.Duration // looks that are farther apart belong to different runs
}

// History is what is remembered. It is not safe for concurrent use.
type History struct {
	limits  Limits
	paths   map[string]*track
	ended   []*Interval // in the order in which their ends were seen
	runs    []Span      // of looks, each soon after the one before
	last    int64       // ID
	dropped int

	skips []Skip // in the order in which looks have shown them

	points   int
	chunks   []*Chunk // in the order in which they were begun
	sessions map[string]*session
	pending  []*Interval // ended; how is not known yet
	broken   map[string]bool
}

// track is what is remembered of a path.
type track struct {
	kind     string
	plain    bool      // it has holders, and no lanes
	seen     Span      // the last look at it
	found    time.Time // when the last look began that found a recipe there
	stamp    string
	lanes    map[string]*lane
	chunk    *Chunk // the last
	schedule *Schedule
}

// lane has the present holders of a path, or of a part of it.
type lane struct {
	held  map[holderID]*Interval
	free  *Interval // nobody holds
	fresh bool      // only one look has shown free so far
}

type holderID struct {
	node  string
	token int64
}

// New makes an empty history.
func New(limits Limits) *History {
	return &History{limits: limits, paths: map[string]*track{}, sessions: map[string]*session{}, broken: map[string]bool{}}
}

// Paths are the paths that are remembered. A look should say of each whether
// anything has changed.
func (h *History) Paths() []string { return slices.Sorted(maps.Keys(h.paths)) }

// See adds what a look has shown.
func (h *History) See(l Look) {
	again := h.run(l)
	for path, p := range l.Paths {
		t := h.paths[path]
		if t == nil {
			t = &track{lanes: map[string]*lane{}}
			h.paths[path] = t
		}
		h.path(l, path, t, p, again)
	}
	for path, t := range h.paths {
		if _, seen := l.Paths[path]; !seen && !l.Partial {
			h.path(l, path, t, Path{}, again)
		}
	}
	h.meet(l)
	h.forget(l.Ended)
}

// Still reports whether a path's stamp at time then is that of the last look at
// it. If so, what that look has shown stayed true until then.
func (h *History) Still(path, stamp string, then time.Time) (is bool) {
	t := h.paths[path]
	if t == nil || stamp == "" || stamp != t.stamp {
		return false
	}
	if then.After(t.seen.From) {
		for name, at := range t.lanes {
			if at.free != nil {
				h.nobody(at, &Interval{Path: path, Kind: t.kind, Nobody: true, Holder: Holder{Lane: name}}, t.seen)
			}
		}
		t.seen = Span{then, latest(t.seen.To, then)}
	}
	return true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// run adds a look to the run of looks that are close together, and reports
// whether it is the first of one.
func (h *History) run(l Look) (first bool) {
	n := len(h.runs)
	if n == 0 || l.Began.Sub(h.runs[n-1].To) > h.limits.Apart {
		h.runs = append(h.runs, Span{l.Began, l.Ended})
		return true
	}
	h.runs[n-1].To = l.Ended
	return false
}

func (h *History) path(l Look, path string, t *track, p Path, again bool) {
	if p.Kind != "" {
		t.kind, t.found, t.plain = p.Kind, l.Began, p.Lanes == nil
	}
	listed := map[string]bool{}
	for _, name := range p.Lanes {
		listed[name] = true
	}
	if t.plain {
		listed[""] = true
	}
	holders := map[string][]Holder{}
	for _, holder := range p.Holders {
		holders[holder.Lane] = append(holders[holder.Lane], holder)
	}
	still := t.stamp != "" && t.stamp == p.Stamp
	between := Span{t.seen.From, l.Ended} // what has changed since the look before
	for name := range listed {
		if t.lanes[name] == nil {
			t.lanes[name] = &lane{held: map[holderID]*Interval{}}
		}
	}
	for name, at := range t.lanes {
		if listed[name] {
			h.lane(path, t.kind, at, holders[name], Holder{Lane: name}, between, t.seen, still)
			continue
		}
		for _, i := range at.all() { // it is no more
			h.end(i, between)
		}
		delete(t.lanes, name)
	}
	t.seen, t.stamp = Span{latest(t.seen.From, l.Began), l.Ended}, p.Stamp
	h.point(t, path, l.Ended, p, again)
	h.skip(path, t, p.Schedule)
}

func (h *History) lane(path, kind string, at *lane, holders []Holder, nobody Holder, between, before Span, still bool) {
	now := map[holderID]bool{}
	for _, holder := range holders {
		now[holderID{holder.Node, holder.Token}] = true
	}
	for id, i := range at.held {
		if !now[id] {
			h.end(i, between)
			delete(at.held, id)
		}
	}
	if at.free != nil && len(holders) > 0 {
		h.end(at.free, between)
		at.free = nil
	}
	for _, holder := range holders {
		id := holderID{holder.Node, holder.Token}
		if at.held[id] == nil {
			at.held[id] = h.begin(&Interval{Path: path, Kind: kind, Holder: holder, Begin: after(between, holder.Made)})
		}
	}
	if len(holders) == 0 {
		h.nobody(at, &Interval{Path: path, Kind: kind, Nobody: true, AtLooks: !still, Holder: nobody, Begin: between}, before)
	}
}

// nobody notes that a look has found no holder.
func (h *History) nobody(at *lane, idle *Interval, before Span) {
	switch {
	case at.free == nil:
		at.free, at.fresh = h.begin(idle), true
		return
	case at.fresh:
		at.free.AtLooks = idle.AtLooks
	case at.free.AtLooks != idle.AtLooks: // it is known better, or worse, since the look before
		idle.Begin = before
		h.end(at.free, before)
		at.free = h.begin(idle)
	}
	at.fresh = false
}

// all are the lane's intervals that last.
func (l *lane) all() []*Interval {
	all := slices.Collect(maps.Values(l.held))
	if l.free != nil {
		all = append(all, l.free)
	}
	return all
}

// after narrows a span to the time after made.
func after(s Span, made time.Time) Span {
	if made.After(s.From) && made.Before(s.To) {
		s.From = made
	}
	return s
}

func (h *History) begin(i *Interval) *Interval {
	h.last++
	i.ID = h.last
	return i
}

// end notes that an interval has ended.
func (h *History) end(i *Interval, between Span) {
	i.End = between
	h.ended = append(h.ended, i)
	if !i.Nobody {
		h.conclude(i)
	}
}

// forget drops what is too old, or too much.
func (h *History) forget(now time.Time) {
	old := now.Add(-h.limits.Keep)
	tooOld := 0
	for tooOld < len(h.ended) && h.ended[tooOld].End.To.Before(old) {
		tooOld++
	}
	lasting := 0
	for path, t := range h.paths {
		held := 0
		for _, at := range t.lanes {
			held += len(at.held)
		}
		if lasting += held; held == 0 && t.found.Before(old) {
			delete(h.paths, path)
		}
	}
	tooMany := max(0, len(h.ended)-tooOld+lasting-h.limits.Intervals)
	tooMany = min(tooMany, len(h.ended)-tooOld)
	h.dropped += tooMany
	h.ended = slices.Delete(h.ended, 0, tooOld+tooMany)
	h.runs = slices.DeleteFunc(h.runs, func(s Span) bool { return s.To.Before(old) })
	h.forgetPoints(old)
	h.forgetSkips(old)
}

// Dropped is how many intervals were dropped before their time, because there
// were too many.
func (h *History) Dropped() int { return h.dropped }

// Runs are the spans in which looks followed each other closely.
func (h *History) Runs() []Span { return h.runs }

// Seen is when the last look at a path began.
func (h *History) Seen(path string) time.Time {
	if t := h.paths[path]; t != nil {
		return t.seen.From
	}
	return time.Time{}
}

// Intervals are all intervals that are remembered: first the ended ones, then
// the ones that last.
func (h *History) Intervals() []*Interval {
	all := slices.Clone(h.ended)
	first := len(all)
	for _, t := range h.paths {
		for _, at := range t.lanes {
			all = append(all, at.all()...)
		}
	}
	slices.SortFunc(all[first:], func(a, b *Interval) int { return int(a.ID - b.ID) })
	return all
}
