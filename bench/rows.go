package bench

import (
	"fmt"
	"slices"
	"time"
)

// row is a workload of the table.
type row struct {
	name  string // of its chart
	title string
	about string
	task  task
	sizes []int // one case each, of the task's sessions or what size sets; none: as in task
	size  func(t *task, n int)
	most  map[string]int // the largest size for whom the larger ones take too long
	who   []string
	// base is the contender that the others are compared with: over links and
	// on loopback.
	base, linkBase string
	shows          []column
	sites          []*site
}

// column is a figure that heads a row's table; the first is drawn.
type column struct {
	title  string
	figure string // see figures and sample
	scale  float64
	less   bool // is better
}

var (
	perSecond = column{title: "per second", figure: "rate", scale: 1}
	cycleTime = column{title: "median, µs", figure: "p50", scale: 1e6, less: true}
	enterTime = column{title: "enter, ms", figure: "enter", scale: 1e3, less: true}
	leaveTime = column{title: "leave, ms", figure: "leave", scale: 1e3, less: true}
	memory    = column{title: "KB each", figure: "memory", scale: 1e-3, less: true}
	fairness  = column{title: "least share", figure: "share", scale: 1}
	takeover  = column{title: "s", figure: "takeover", scale: 1, less: true}
)

// site is where rows are measured.
type site struct {
	name, title string
	servers     int
	delay       time.Duration // each way
}

var (
	one      = &site{"one", "one server, loopback", 1, 0}
	oneLink  = &site{"one-link", "one server, links of 2 ms each way", 1, 2 * time.Millisecond}
	ensemble = &site{"ensemble", "ensemble of three, loopback", 3, 0}
	ensLink  = &site{"ensemble-link", "ensemble of three, links of 2 ms each way", 3, 2 * time.Millisecond}
	sites    = []*site{one, oneLink, ensemble, ensLink}
)

// settled is how long a crowd may take to queue.
const settled = 5 * time.Second

var rows = []row{
	{
		name: "cycle", title: "Uncontended acquire and release",
		about: "One session acquires and releases a lock that nobody else wants.",
		task:  task{work: "contend", sessions: 1, each: 1, own: true},
		who:   []string{limit, pipelined, zkcoord, zkLock, curator, kazoo, etcd, redis},
		base:  zkLock, linkBase: limit, shows: []column{cycleTime}, sites: sites,
	},
	{
		name: "handoff", title: "Hand-offs among N sessions",
		about: "N sessions want one lock all the time. The limit is a chain of prepared nodes and watches.",
		task:  task{work: "contend", each: 1}, sizes: []int{2, 32},
		who:  []string{limit, zkcoord, zkLock, curator, kazoo, etcd, redis},
		base: zkLock, linkBase: limit, shows: []column{perSecond}, sites: sites,
	},
	{
		name: "goroutines", title: "2,000 goroutines of one session on one path",
		about: "Memory is what each takes in the client, with its goroutine's stack.",
		task:  task{work: "contend", sessions: 1, each: 2000, settle: settled},
		who:   []string{zkcoord, local, zkLock},
		base:  zkLock, shows: []column{perSecond, memory}, sites: []*site{one},
	},
	{
		name: "processes", title: "4 processes of 64 goroutines each on one path",
		about: "The least share is what the process with the fewest grants had, divided by a quarter.",
		task:  task{work: "contend", processes: 4, sessions: 1, each: 64},
		who:   []string{zkcoord, local, zkLock},
		base:  zkLock, shows: []column{perSecond, fairness}, sites: []*site{one},
	},
	{
		name: "again", title: "The same lock again by the same process",
		about: "As uncontended; a lock that lingers stays with the process.",
		task:  task{work: "contend", sessions: 1, each: 1, own: true},
		who:   []string{zkcoord, lingering, zkLock},
		base:  zkLock, shows: []column{perSecond}, sites: []*site{one},
	},
	{
		name: "paths", title: "64 paths over one session",
		about: "64 goroutines acquire and release a lock of their own each.",
		task:  task{work: "contend", sessions: 1, each: 64, own: true},
		who:   []string{limit, zkcoord, zkLock, curator, kazoo, etcd},
		base:  zkLock, shows: []column{perSecond}, sites: []*site{one},
	},
	{
		name: "held", title: "Locks held at once by one session",
		about: "What each of 5,000 held locks takes in the client.",
		task:  task{work: "hold", sessions: 1, each: 5000},
		who:   []string{zkcoord, zkLock},
		base:  zkLock, shows: []column{memory}, sites: []*site{one},
	},
	{
		name: "barrier", title: "Double barrier of N members",
		about: "All N come at once, and leave at once when the last of them is in: the time until the last is through, and the cost of one member's enter and leave.",
		task:  task{work: "barrier"}, sizes: []int{32},
		who:  []string{limit, zkcoord, curator, kazoo, etcd},
		base: limit, shows: []column{enterTime, leaveTime}, sites: sites,
	},
	{
		name: "queue", title: "Queue: producers and consumers",
		about: "Half of the sessions put items of 100 bytes and are at most 100 items ahead, half receive and acknowledge them. The limit and etcd take an item with no acknowledgement: what a consumer that crashes had taken is lost.",
		task:  task{work: "queue"}, sizes: []int{2, 8},
		who:  []string{limit, acknowledged, zkcoord, curator, kazoo, etcd},
		base: limit, shows: []column{perSecond}, sites: []*site{one},
	},
	{
		name: "queue-batch", title: "Queue: batches of 16",
		about: "The limit of batches claims and acknowledges 16 items by one transaction each. Its consumers often want the same items.",
		task:  task{work: "queue"}, sizes: []int{2, 8},
		who:  []string{limit, bareBatches, batches},
		base: limit, shows: []column{perSecond}, sites: []*site{one},
	},
	{
		name: "takeover", title: "The next holder after kill -9",
		about: "The session timeout is 1 s, the server's tick 0.5 s.",
		task:  task{work: "wait", sessions: 1, timeout: time.Second},
		who:   []string{zkcoord, zkLock, curator, kazoo, etcd},
		base:  zkLock, shows: []column{takeover}, sites: []*site{one},
	},
}

// cases are the tasks of a row, with their names.
func (r row) cases() (tasks []task, names []string) {
	if r.sizes == nil {
		return []task{r.task}, []string{""}
	}
	for _, n := range r.sizes {
		t := r.task
		name := fmt.Sprintf("N = %d", n)
		if r.size != nil {
			r.size(&t, n)
		} else {
			t.sessions = n
		}
		if t.work == "queue" {
			t.each = n / 2 // consumers
			name = fmt.Sprintf("%d / %d", n-t.each, t.each)
		}
		tasks, names = append(tasks, t), append(names, name)
	}
	return tasks, names
}

// at leaves out contenders for which the row's size is too large.
func (r row) at(i int) row {
	if r.most != nil {
		r.who = slices.DeleteFunc(slices.Clone(r.who), func(who string) bool {
			most, ok := r.most[who]
			return ok && r.sizes[i] > most
		})
	}
	return r
}

// scaleRows say how the cost grows. Their report is docs/scaling.md.
var scaleRows = []row{
	{
		name: "waiters", title: "Waiters in one process",
		about: "N goroutines of one session queue for one path, and queue again when they have had it.",
		task:  task{work: "contend", sessions: 1, lined: true}, sizes: []int{100, 1000, 10_000},
		size: func(t *task, n int) { t.each = n },
		who:  []string{zkcoord, local, zkLock}, most: map[string]int{zkLock: 1000},
		shows: []column{queued, perSecond, requests, received, memory}, sites: []*site{one},
	},
	{
		name: "crowds", title: "Waiters in many processes",
		about: "The same from 8 processes with up to 1,000 sessions; the 8,000 are 100 in each of 80 sessions. Each session lists for itself.",
		task:  task{work: "contend", processes: 8, each: 1, lined: true}, sizes: []int{1000, 8000},
		size: func(t *task, n int) {
			if n > 1000 {
				t.each = 100
			}
			t.sessions = n / t.each / t.processes
		},
		who: []string{zkcoord, zkLock}, most: map[string]int{zkLock: 1000},
		shows: []column{queued, perSecond, requests, received}, sites: []*site{one},
	},
	{
		name: "idle", title: "Clients that hold a lock and do nothing",
		about: "N sessions of T = 10 s hold a lock each.",
		task:  task{work: "idle", each: 1, during: 10 * time.Second}, sizes: []int{1000},
		who:   []string{zkcoord, zkLock},
		shows: []column{allRequests, writes, serverLoad, clientLoad, memory}, sites: []*site{one},
	},
	{
		name: "standby", title: "Clients that stand by",
		about: "N sessions of T = 10 s wait, each for a lock of its own, which one more session holds.",
		task:  task{work: "idle", each: 2, settle: 12 * time.Second, during: 10 * time.Second}, sizes: []int{1000, 4000},
		who: []string{zkcoord, zkLock}, most: map[string]int{zkLock: 1000},
		shows: []column{allRequests, writes, serverLoad, clientLoad, memory}, sites: []*site{one},
	},
	{
		name: "busy", title: "Clients that acquire and release",
		about: "N sessions acquire and release a lock of their own each, as fast as they can.",
		task:  task{work: "contend", each: 1, own: true, settle: 2 * time.Second}, sizes: []int{100, 1000},
		who:   []string{zkcoord, zkLock},
		shows: []column{perSecond, clientCPU, serverCPU}, sites: []*site{one, ensemble},
	},
	{
		name: "writes", title: "What the servers can do",
		about: "64 sessions send empty writes as fast as they are answered, N at a time each.",
		task:  task{work: "probe", sessions: 64}, sizes: []int{16},
		size:  func(t *task, n int) { t.each = n },
		who:   []string{limit},
		shows: []column{perSecond, clientCPU, serverCPU}, sites: []*site{one, ensemble},
	},
	{
		name: "members", title: "Members of a double barrier",
		about: "N members of up to 100 sessions come at once, and leave at once when the last of them is in.",
		task:  task{work: "barrier"}, sizes: []int{10, 1000, 4000},
		size: func(t *task, n int) {
			t.sessions = min(n, 100)
			t.each = n / t.sessions
		},
		who:   []string{zkcoord},
		shows: []column{enterTime, leaveTime, requests}, sites: []*site{one},
	},
	{
		name: "items", title: "Items in a queue",
		about: "One session receives and acknowledges items of 100 bytes, and another puts one for each, so that N are there. The first Receive lists them all.",
		task:  task{work: "backlog", sessions: 2}, sizes: []int{1000, 100_000},
		size:  func(t *task, n int) { t.count = n },
		who:   []string{zkcoord},
		shows: []column{firstItem, perSecond, requests, received}, sites: []*site{one},
	},
	{
		name: "locks", title: "Locks held by one client",
		about: "One session acquires N locks, 64 at a time, each at a path that is not there yet, and holds them. Then its connection is cut; it has recovered when it has sent the last of the requests that follow.",
		task:  task{work: "hold", sessions: 1, cut: true}, sizes: []int{1000, 100_000},
		size:  func(t *task, n int) { t.each = n },
		who:   []string{zkcoord},
		shows: []column{acquiring, recovery, recoveryRequests, closing}, sites: []*site{one},
	},
}

var (
	queued           = column{title: "all queue after, s", figure: "queued", scale: 1}
	requests         = column{title: "requests each", figure: "requests", scale: 1}
	received         = column{title: "bytes received each", figure: "got", scale: 1}
	clientCPU        = column{title: "client CPU, µs", figure: "client", scale: 1e6}
	serverCPU        = column{title: "server CPU, µs", figure: "server", scale: 1e6}
	acquiring        = column{title: "acquire, ms each", figure: "acquire", scale: 1e3}
	recovery         = column{title: "recovered after, s", figure: "recovery", scale: 1}
	recoveryRequests = column{title: "requests of that", figure: "again", scale: 1}
	closing          = column{title: "close, s", figure: "close", scale: 1}
	allRequests      = column{title: "requests/s", figure: "requests", scale: 1}
	writes           = column{title: "writes/s", figure: "writes", scale: 1}
	serverLoad       = column{title: "server CPU, ms/s", figure: "server", scale: 1e3}
	clientLoad       = column{title: "client CPU, ms/s", figure: "client", scale: 1e3}
	firstItem        = column{title: "first Receive, ms", figure: "first", scale: 1e3}
)
