package see

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
)

// How much a page remembers. The page's choices of a period end at keepPast.
const (
	keepPast      = 2 * time.Hour
	mostIntervals = 10_000
	mostPoints    = 50_000
)

// past is what a page shows of the past.
type past struct {
	Intervals map[string]interval `json:"intervals"` // by number
	Points    map[string]points   `json:"points"`    // by number; a path's points have rising numbers
	Runs      [][2]moment         `json:"runs"`      // from when to when looks followed each other closely
	// Unseen is when the last look at a path began, if the last survey left the
	// path out.
	Unseen  map[string]moment `json:"unseen"`
	Skips   map[string][]skip `json:"skips"`   // of schedules, by path
	Dropped int               `json:"dropped"` // intervals that were dropped because there were too many
	Keep    float64           `json:"keep"`    // seconds
}

// interval is a history.Interval, as the page gets it.
type interval struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Lane string `json:"lane,omitempty"`
	// Nobody: nobody held, "sure", or "at looks" if that is known only for the
	// moments of looks.
	Nobody  string      `json:"nobody,omitempty"`
	Owner   string      `json:"owner,omitempty"`
	Session string      `json:"session,omitempty"`
	Node    string      `json:"node,omitempty"`
	Begin   [2]moment   `json:"begin"`         // between; the first is 0 if that was before the first look
	End     *[2]moment  `json:"end,omitempty"` // between; null while it lasts
	How     history.How `json:"how,omitempty"`
}

type points struct {
	Path string       `json:"path"`
	At   [][9]float64 `json:"at"` // time, holders, waiting, items, in hand, dead, when the oldest was put, put, taken
}

// skip is a history.Skip: after, until, how many, and 1 if the last slot is
// until.
type skip [4]float64

// recorder remembers what looks have shown.
type recorder struct {
	client *coord.Client

	mu      sync.Mutex
	history *history.History
	asked   time.Time // when the servers were asked for the last book

	apart     time.Duration
	looked    time.Time             // when the last look at all paths ended
	worth     []string              // the paths to watch until the next look at all paths
	sharpened map[string]sharpening // since the last look at all paths
	again     chan struct{}         // a look at all paths has ended: watch again
}

// sharpening is what a look at one path has shown.
type sharpening struct {
	history.Path
	began, ended time.Time
}

func newRecorder(client *coord.Client, every time.Duration) *recorder {
	apart := max(10*time.Second, 4*every)
	return &recorder{
		client: client, apart: apart, sharpened: map[string]sharpening{}, again: make(chan struct{}, 1),
		history: history.New(history.Limits{Keep: keepPast, Intervals: mostIntervals, Points: mostPoints, Apart: apart}),
	}
}

// see adds a survey, the stamps that were read before, and what the servers say
// about clients.
func (r *recorder) see(s *look.Survey, stamps map[string]string, book *look.AddressBook, began time.Time) past {
	paths, partial := pathsOf(s), s.Left > 0
	for at, stamp := range stamps {
		if p, found := paths[at]; found || !partial {
			p.Stamp = stamp
			paths[at] = p
		}
	}
	worth := worthWatching(s.Recipes)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, is := range r.sharpened { // this look may be newer than the survey
		if !is.began.Before(began) {
			paths[at] = is.Path
		} else if is.ended.After(began) {
			delete(paths, at)
			partial = true
		}
	}
	clear(r.sharpened)
	r.looked, r.worth = time.Now(), worth
	r.history.See(history.Look{Began: began, Ended: r.looked, Partial: partial, Paths: paths})
	select {
	case r.again <- struct{}{}:
	default:
	}
	if sessions, asked, all := book.Known(); asked.After(r.asked) {
		r.asked = asked
		told := history.Book{Asked: asked, Complete: all, Sessions: map[string]history.Heard{}}
		for name, is := range sessions {
			heard := history.Heard{Timeout: is.Timeout}
			if is.Timeout > 0 {
				heard.At = asked.Add(-is.Silent)
			}
			told.Sessions[name] = heard
		}
		r.history.Hear(told)
	}
	return r.past(began)
}

// watched are the paths that are worth watching; none if there was no look for
// a while.
func (r *recorder) watched() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) > r.apart {
		return nil
	}
	return r.worth
}

// still reports whether a path has not changed before a time, and notes it if
// so.
func (r *recorder) still(at, stamp string, then time.Time) (is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Still(at, stamp, then)
}

// sharpen adds what a look at one path has shown, unless a look at all paths
// has ended since it began.
func (r *recorder) sharpen(at string, p history.Path, began time.Time) (is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked.Before(began) {
		return false
	}
	now := time.Now()
	r.history.See(history.Look{Began: began, Ended: now, Partial: true, Paths: map[string]history.Path{at: p}})
	r.sharpened[at] = sharpening{p, began, now}
	return true
}

// breaks notes that a node is about to be deleted by force, or, if does is
// false, that the deletion failed.
func (r *recorder) breaks(node string, does bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Breaks(node, does)
}

// pathsOf is what a survey has shown of each path, except the locks of the keys
// of a ledger or shards.
func pathsOf(s *look.Survey) map[string]history.Path {
	paths := map[string]history.Path{}
	var keepers []look.Report
	for _, r := range s.Recipes {
		if within(keepers, r.Path) {
			continue
		}
		if r.Ledger != nil || r.Shards != nil {
			keepers = append(keepers, r)
		}
		paths[r.Path] = pathOf(r)
	}
	return paths
}

func within(keepers []look.Report, path string) bool {
	for _, keeper := range keepers {
		if keeper.HasKey(path) {
			return true
		}
	}
	return false
}

func pathOf(r look.Report) history.Path {
	p := history.Path{Kind: r.Kind, Waiting: r.Waiting()}
	for _, c := range r.Contenders {
		if !c.Holds {
			p.Others = append(p.Others, c.Session)
			continue
		}
		p.Holders = append(p.Holders,
			history.Holder{Node: c.Node, Token: c.Token, Owner: c.Owner, Session: c.Session, Made: c.Made})
	}
	switch {
	case r.Queue != nil:
		p.Queue = &history.Queue{
			Items: r.Queue.Items, InHand: r.Queue.InHand, Dead: r.Queue.Dead, Oldest: r.Queue.OldestPut, Put: r.Queue.Put,
			Taken: r.Queue.Taken,
		}
		p.Lanes, p.Holders = []string{}, nil
	case r.Shards != nil:
		p.Lanes = []string{}
		for _, k := range r.Shards.Status[:min(len(r.Shards.Status), mostKeys)] {
			p.Lanes = append(p.Lanes, k.Key)
			if k.Owner.Token != 0 {
				p.Holders = append(p.Holders,
					history.Holder{
						Lane: k.Key, Node: k.Owner.Node, Token: k.Owner.Token, Owner: k.Owner.Member.ID, Made: k.Owner.Since,
					})
			}
		}
	case r.Ledger != nil, r.Closed != nil:
		p.Lanes, p.Holders = []string{}, nil
	}
	if r.Schedule != nil {
		p.Schedule = &history.Schedule{
			Through: r.Schedule.Through, Chosen: r.HasSlot(r.Schedule.Through), LeftOut: r.Schedule.LeftOut,
		}
	}
	return p
}

// stamps reads the stamps of the paths that are remembered.
func (r *recorder) stamps(ctx context.Context) map[string]string {
	r.mu.Lock()
	known := r.history.Paths()
	r.mu.Unlock()
	read := make([]string, len(known))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(look.Surveyors)
	for i, at := range known {
		group.Go(func() error {
			read[i] = r.stampOf(ctx, at)
			return nil
		})
	}
	_ = group.Wait()
	stamps := map[string]string{}
	for i, at := range known {
		stamps[at] = read[i]
	}
	return stamps
}

// stampOf stays the same as long as neither the directory at a path nor
// anything in it was made or deleted. It is read from that directory, or the
// nearest ancestor that exists, and is "" if it is not known.
func (r *recorder) stampOf(ctx context.Context, at string) string {
	for ; ; at = path.Dir(at) {
		stat, there, err := r.client.Exists(ctx, at)
		switch {
		case err != nil:
			return ""
		case there:
			return stampAt(at, stat)
		case at == "/":
			return ""
		}
	}
}

func stampAt(at string, stat coord.Stat) string {
	return fmt.Sprintf("%s %x %x", at, stat.Czxid, stat.Pzxid)
}

func (r *recorder) past(began time.Time) past {
	told := past{
		Intervals: map[string]interval{}, Points: map[string]points{}, Runs: [][2]moment{}, Unseen: map[string]moment{},
		Skips:   map[string][]skip{},
		Dropped: r.history.Dropped(), Keep: keepPast.Seconds(),
	}
	for _, i := range r.history.Intervals() {
		told.Intervals[strconv.FormatInt(i.ID, 10)] = intervalOf(i)
	}
	for _, c := range r.history.Chunks() {
		told.Points[strconv.FormatInt(c.ID, 10)] = pointsOf(c)
	}
	for _, s := range r.history.Runs() {
		told.Runs = append(told.Runs, spanOf(s))
	}
	for _, s := range r.history.Skips() {
		one := skip{float64(momentOf(s.After)), float64(momentOf(s.Until)), float64(s.Slots), 0}
		if s.AtUntil {
			one[3] = 1
		}
		told.Skips[s.Path] = append(told.Skips[s.Path], one)
	}
	for _, at := range r.history.Paths() {
		if seen := r.history.Seen(at); seen.Before(began) {
			told.Unseen[at] = momentOf(seen)
		}
	}
	return told
}

func spanOf(s history.Span) [2]moment { return [2]moment{momentOf(s.From), momentOf(s.To)} }

func intervalOf(i *history.Interval) interval {
	one := interval{
		Path: i.Path, Kind: i.Kind, Lane: i.Lane, Owner: i.Owner, Session: i.Session, Node: i.Node, Begin: spanOf(i.Begin),
		How: i.How,
	}
	if i.Nobody {
		one.Nobody = "sure"
		if i.AtLooks {
			one.Nobody = "at looks"
		}
	}
	if !i.Lasts() {
		end := spanOf(i.End)
		one.End = &end
	}
	return one
}

func pointsOf(c *history.Chunk) points {
	all := points{c.Path, [][9]float64{}}
	for _, p := range c.Points {
		all.At = append(all.At, [9]float64{
			float64(momentOf(p.At)), float64(p.Holders), float64(p.Waiting), float64(p.Items), float64(p.InHand),
			float64(p.Dead),
			float64(momentOf(p.Oldest)), float64(p.Put), float64(p.Taken),
		})
	}
	return all
}
