package see

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// What a page shows at most.
const (
	mostSeen       = 1000 // recipes, and waits
	mostContenders = 50   // of a recipe
	mostListed     = 60   // jobs or slots of a ledger or schedule
	mostKeys       = 2000 // of shards
)

// sight is what the page shows: what ls, inspect and graph print, and the past.
// Times are Unix seconds, of nodes by the servers' clock, and otherwise by this
// process's. So a thing that does not change is the same from look to look, and
// is not sent again.
type sight struct {
	Path        string              `json:"path"`
	Recipes     map[string]*sighted `json:"recipes"`      // by path
	MoreRecipes int                 `json:"more_recipes"` // recipes that are not among them
	Circles     [][]sightedWait     `json:"circles"`
	Possible    [][]sightedWait     `json:"possible_circles"`
	Waits       []sightedWait       `json:"waits"`
	MoreWaits   int                 `json:"more_waits"`
	look.Extent

	// Silent is, by session, since when it has been silent, and its timeout in
	// seconds, if it has been silent for longer than is normal.
	Silent map[string][2]moment `json:"silent"`
	past
}

// sighted is a recipe with the first of its contenders.
type sighted struct {
	Path       string        `json:"path"`
	Kind       string        `json:"kind"`
	Dialect    string        `json:"dialect"`
	Of         string        `json:"of,omitempty"` // the shards or the ledger with the key that this lock is for
	Limit      int           `json:"limit,omitempty"`
	Odd        []string      `json:"odd,omitempty"`
	Waiting    int           `json:"waiting"`
	Contenders []standing    `json:"contenders"`
	More       int           `json:"more,omitempty"`  // contenders
	Keeps      string        `json:"keeps,omitempty"` // what a ledger or shards keep below the path, in a few words
	Round      *sightedRound `json:"round,omitempty"`
	Queue      *sightedQueue `json:"queue,omitempty"`
	Jobs       []sightedJob  `json:"jobs,omitempty"` // of a ledger or schedule, the newest first
	Schedule   *schedule     `json:"schedule,omitempty"`
	Keys       []sightedKey  `json:"keys,omitempty"`
	Members    []string      `json:"members,omitempty"` // of shards, by ID
	Numbers    *numbers      `json:"slots,omitempty"`
	Closed     *closing      `json:"closed,omitempty"`
}

// moment is a time in Unix seconds, to the millisecond.
type moment float64

// momentOf is 0 if t is not known.
func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(float64(t.UnixMilli()) / 1000)
}

type standing struct {
	Node    string `json:"node"`
	Owner   string `json:"owner"`
	Session string `json:"session"`
	Address string `json:"address,omitempty"`
	State   string `json:"state"`
	Kind    string `json:"kind"`
	Holds   bool   `json:"holds"`
	Revoked bool   `json:"revoked,omitempty"`
	Orphan  bool   `json:"orphan,omitempty"`
	Made    moment `json:"made"` // 0: not known
	Number  *int   `json:"slot,omitempty"`
}

type sightedRound struct {
	Number   int64 `json:"number"`
	Open     bool  `json:"open"`
	Members  int   `json:"members"`
	Inside   int   `json:"inside"`
	Finished int   `json:"finished"`
	Waiting  int   `json:"waiting"`
}

type sightedQueue struct {
	Items     int           `json:"items"`
	InHand    int           `json:"in_hand"`
	Consumers int           `json:"consumers"`
	Dead      int           `json:"dead"`
	Oldest    moment        `json:"oldest"` // when the oldest item that nobody has was put; 0: there is none
	First     []sightedItem `json:"first"`
}

type sightedItem struct {
	Name       string `json:"name"`
	Data       string `json:"data"`
	Size       int    `json:"size"`
	Priority   int    `json:"priority"`
	Deliveries int    `json:"deliveries"`
	Put        moment `json:"put"`
	InHand     bool   `json:"in_hand"`
	Since      moment `json:"since"` // when it was taken
	Owner      string `json:"owner"`
	Session    string `json:"session"`
	Revoked    bool   `json:"revoked"`
	Orphan     bool   `json:"orphan"`
}

type sightedJob struct {
	Key     string  `json:"key"`
	State   string  `json:"state"`
	By      string  `json:"by"`
	Attempt int     `json:"attempt"`
	Due     moment  `json:"due,omitempty"` // of a schedule's slot
	Begun   moment  `json:"begun"`
	Took    float64 `json:"took"` // seconds
	Error   string  `json:"error,omitempty"`
}

type schedule struct {
	LeftOut int      `json:"left_out"`
	Failing int      `json:"failing"`
	Members int      `json:"members"`
	Jobs    []string `json:"jobs"`
	Next    moment   `json:"next"` // 0: not known, or there is none
}

type sightedKey struct {
	Key     string `json:"key"`
	Owner   string `json:"owner"`   // a member's ID; "": nobody
	Desired string `json:"desired"` // the owner by the plan, a member's ID
	Session string `json:"session"` // of the owner, if it is known
	Since   moment `json:"since"`
	State   string `json:"state"`
	Moving  bool   `json:"moving,omitempty"`
	Error   string `json:"error,omitempty"`
}

type numbers struct {
	Counts []int        `json:"counts"`
	Free   *int         `json:"free"`
	Kept   []keptNumber `json:"kept"`
}

type keptNumber struct {
	Number int    `json:"slot"`
	Owner  string `json:"owner"`
	Until  moment `json:"until"` // at least
}

type closing struct {
	By string `json:"by"`
	At moment `json:"at"`
}

// sightedWait is a wait without its age.
type sightedWait struct {
	waitFor
	Age  *float64 `json:"age,omitempty"`
	Made moment   `json:"made"`
}

func sightOf(s *look.Survey, at time.Time) sight {
	g := graphOf(s)
	found := sight{
		Path: s.Path, Recipes: map[string]*sighted{}, MoreRecipes: max(0, len(s.Recipes)-mostSeen),
		Circles: g.shown(g.certain), Possible: g.shown(g.perhaps),
		Waits: sightedWaits(g.Waits[:min(len(g.Waits), mostSeen)]), MoreWaits: max(0, len(g.Waits)-mostSeen),
		Extent: s.Extent,
		Silent: map[string][2]moment{},
	}
	sessions := map[string]string{} // by node
	var keepers []look.Report
	for _, r := range s.Recipes[:min(len(s.Recipes), mostSeen)] {
		one := sightedOf(r, at)
		if i := slices.IndexFunc(keepers, func(keeper look.Report) bool { return keeper.HasKey(r.Path) }); i >= 0 {
			one.Of = keepers[i].Path
		} else if r.Ledger != nil || r.Shards != nil {
			keepers = append(keepers, r)
		}
		found.Recipes[r.Path] = one
		for _, c := range r.Contenders {
			sessions[c.Node] = c.Session
			found.hear(c.Session, c.Heard, at)
		}
		if r.Queue != nil {
			for _, item := range r.Queue.First {
				found.hear(item.Session, item.Heard, at)
			}
		}
	}
	for _, keeper := range keepers {
		if keeper.Shards == nil {
			continue
		}
		for i, status := range keeper.Shards.Status[:min(len(keeper.Shards.Status), mostKeys)] {
			found.Recipes[keeper.Path].Keys[i].Session = sessions[status.Owner.Node]
		}
	}
	return found
}

// normal is the part of its session's timeout for which a healthy client may be
// silent.
const normal = 0.4

// hear notes a client that has been silent for longer than is normal.
func (s *sight) hear(session string, heard look.Heard, at time.Time) {
	if heard.SilentFor != nil && *heard.SilentFor > *heard.Timeout*normal {
		since := momentOf(at.Add(-time.Duration(*heard.SilentFor * float64(time.Second))))
		s.Silent[session] = [2]moment{since, moment(*heard.Timeout)}
	}
}

func sightedOf(r look.Report, at time.Time) *sighted {
	one := &sighted{
		Path: r.Path, Kind: r.Kind, Dialect: r.Dialect, Limit: r.Limit, Odd: r.Oddities(), Waiting: r.Waiting(),
		More: max(0, len(r.Contenders)-mostContenders), Contenders: []standing{},
	}
	for _, c := range r.Contenders[:len(r.Contenders)-one.More] {
		one.Contenders = append(one.Contenders, standingOf(r, c))
	}
	if r.Round != nil {
		one.Round = &sightedRound{
			r.Round.Number, r.Round.Open, r.Round.Members, r.Round.Inside, r.Round.Finished, r.Round.Waiting,
		}
	}
	if r.Queue != nil {
		one.Queue = queueOf(r.Queue)
	}
	if r.Ledger != nil {
		one.Jobs = jobsOf(r)
		one.Keeps = r.Ledger.String()
	}
	if r.Schedule != nil {
		one.Keeps = ""
		one.Schedule = &schedule{
			r.Schedule.LeftOut, r.Schedule.Failing, r.Schedule.Members, r.Schedule.Jobs, momentOf(r.Schedule.Next),
		}
	}
	if r.Shards != nil {
		one.Keeps = r.Shards.String()
		one.keysOf(r.Shards)
	}
	if r.Numbers != nil {
		one.Numbers = &numbers{r.Numbers.Counts, r.Numbers.Free, []keptNumber{}}
		for _, k := range r.Numbers.Kept {
			until := at.Add(time.Duration(k.Left * float64(time.Second))).Round(time.Second)
			one.Numbers.Kept = append(one.Numbers.Kept, keptNumber{k.Number, k.Owner, momentOf(until)})
		}
	}
	if r.Closed != nil {
		one.Closed = &closing{r.Closed.By, momentOf(r.Closed.At)}
	}
	return one
}

func standingOf(r look.Report, c look.Contender) standing {
	s := standing{
		Node: c.Node, Owner: c.Owner, Session: c.Session, Address: c.Address, State: c.State, Kind: kindOf(c.Kind),
		Holds:   c.Holds,
		Revoked: c.Revoked, Orphan: c.Orphan, Made: momentOf(c.Made),
	}
	if r.Numbers != nil && c.Kind == slots.Kind {
		if n, err := strconv.Atoi(path.Base(c.Node)[strings.LastIndexByte(path.Base(c.Node), '-')+1:]); err == nil {
			s.Number = &n
		}
	}
	return s
}

// kindOf is the kind of a contender, for people.
func kindOf(kind string) string {
	if kind == "latch" { // as Curator calls the candidates' nodes
		return "candidate"
	}
	return kind
}

func queueOf(q *look.QueueReport) *sightedQueue {
	found := &sightedQueue{q.Items, q.InHand, q.Consumers, q.Dead, momentOf(q.OldestPut), []sightedItem{}}
	for _, i := range q.First {
		found.First = append(found.First, sightedItem{
			i.Name, i.Data, i.Size, i.Priority, i.Deliveries, momentOf(i.PutAt), i.InHand, momentOf(i.HeldSince), i.Owner,
			i.Session, i.Revoked, i.Orphan,
		})
	}
	return found
}

func jobsOf(r look.Report) (all []sightedJob) {
	for _, res := range r.Ledger.Newest(mostListed) {
		job := sightedJob{
			Key: res.Key, State: string(res.State), By: strings.ToValidUTF8(res.By, "�"), Attempt: res.Attempt,
			Begun: momentOf(res.Begun),
			Took:  res.Took.Seconds(), Error: look.Beginning([]byte(res.Err)),
		}
		if due, err := time.Parse(time.RFC3339Nano, res.Key); err == nil && r.Schedule != nil {
			job.Due = momentOf(due)
		}
		all = append(all, job)
	}
	return all
}

func (one *sighted) keysOf(s *look.ShardsReport) {
	for _, m := range s.Plan.Members {
		one.Members = append(one.Members, m.ID)
	}
	for _, k := range s.Status[:min(len(s.Status), mostKeys)] {
		one.Keys = append(one.Keys, sightedKey{
			Key: k.Key, Owner: k.Owner.Member.ID, Desired: k.Desired.ID, Since: momentOf(k.Owner.Since), State: string(k.Life),
			Moving: k.Moving,
			Error:  look.Beginning([]byte(k.Trouble.Error)),
		})
	}
}

func sightedWaits(waits []waitFor) []sightedWait {
	all := []sightedWait{}
	for _, w := range waits {
		all = append(all, sightedWait{waitFor: w, Made: momentOf(w.made)})
	}
	return all
}

// shown returns the first waits of the first circles.
func (g *WaitGraph) shown(circles []look.Circle) [][]sightedWait {
	shown := [][]sightedWait{}
	for _, c := range circles[:min(len(circles), mostContenders)] {
		waits := g.within(c)
		shown = append(shown, sightedWaits(waits[:min(len(waits), mostContenders)]))
	}
	return shown
}
