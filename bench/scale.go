package bench

import "time"

// scaleRows say how the cost grows. Their report is docs/scaling.md.
var scaleRows = []row{
	{
		name: "waiters", title: "Waiters in one process",
		about: "N goroutines of one session queue for one path, and queue again when they have had it. From 17 on, most do not list the line. With the local queue they stand in one node's place.",
		task:  task{work: "contend", sessions: 1, lined: true}, sizes: []int{1, 10, 100, 1000, 10_000},
		size: func(t *task, n int) { t.each = n },
		who:  []string{zkcoord, local, zkLock}, most: map[string]int{zkLock: 1000},
		shows: []column{queued, perSecond, requests, received, clientCPU, serverCPU, memory, routines}, sites: []*site{one},
	},
	{
		name: "crowds", title: "Waiters in many processes",
		about: "The same from 8 processes with up to 1,000 sessions; the 8,000 are 100 in each of 80 sessions. Each session lists for itself. The requests of 1,000 sessions include their probes.",
		task:  task{work: "contend", processes: 8, each: 1, lined: true}, sizes: []int{8, 80, 1000, 8000},
		size: func(t *task, n int) {
			if n > 1000 {
				t.each = 100
			}
			t.sessions = n / t.each / t.processes
		},
		who: []string{zkcoord, zkLock}, most: map[string]int{zkLock: 1000},
		shows: []column{queued, perSecond, requests, received, clientCPU, serverCPU}, sites: []*site{one},
	},
	{
		name: "idle", title: "Clients that hold a lock and do nothing",
		about: "N sessions of T = 10 s hold a lock each. What the server sees in a second are the pings and the probes, the writes of the trust window.",
		task:  task{work: "idle", each: 1, during: 10 * time.Second}, sizes: []int{1, 10, 100, 1000},
		who:   []string{zkcoord, zkLock},
		shows: []column{allRequests, writes, serverLoad, clientLoad, memory, routines}, sites: []*site{one},
	},
	{
		name: "busy", title: "Clients that acquire and release",
		about: "N sessions acquire and release a lock of their own each, as fast as they can.",
		task:  task{work: "contend", each: 1, own: true, settle: 2 * time.Second}, sizes: []int{1, 10, 100, 1000},
		who:   []string{limit, zkcoord, zkLock},
		shows: []column{perSecond, requests, clientCPU, serverCPU}, sites: []*site{one, ensemble},
	},
	{
		name: "writes", title: "What the servers can do",
		about: "64 sessions send probes as fast as they are answered, N at a time each: the least that a write can cost.",
		task:  task{work: "probe", sessions: 64}, sizes: []int{1, 4, 16},
		size:  func(t *task, n int) { t.each = n },
		who:   []string{limit},
		shows: []column{perSecond, clientCPU, serverCPU}, sites: []*site{one, ensemble},
	},
	{
		name: "members", title: "Members of a double barrier",
		about: "N members of up to 100 sessions come at once, and leave at once when the last of them is in.",
		task:  task{work: "barrier"}, sizes: []int{1, 10, 100, 1000, 4000},
		size: func(t *task, n int) {
			t.sessions = min(n, 100)
			t.each = n / t.sessions
		},
		who:   []string{zkcoord},
		shows: []column{enterTime, leaveTime, requests, received, clientCPU, serverCPU}, sites: []*site{one},
	},
	{
		name: "items", title: "Items in a queue",
		about: "One session receives and acknowledges items of 100 bytes, and another puts one for each, so that N are there. The first Receive lists them all.",
		task:  task{work: "backlog", sessions: 2}, sizes: []int{1, 100, 1000, 10_000, 100_000},
		size:  func(t *task, n int) { t.count = n },
		who:   []string{zkcoord},
		shows: []column{firstItem, perSecond, requests, received, clientCPU, serverCPU}, sites: []*site{one},
	},
	{
		name: "timeouts", title: "Acquires that come to nothing",
		about: "N attempts at a lock that another holds, one after the other: an Acquire that is given up after 25 ms, and a TryAcquire. The watches are the server's, of all attempts together and not of each.",
		task:  task{work: "attempt", sessions: 2}, sizes: []int{1, 100},
		size:  func(t *task, n int) { t.count = n },
		who:   []string{zkcoord, tries},
		shows: []column{requests, received, watchesLeft, nodesLeft}, sites: []*site{one},
	},
	{
		name: "locks", title: "Locks held by one client",
		about: "One session acquires N locks, 64 at a time, each at a path that is not there yet, and holds them. Then its connection is cut; it has recovered when it has sent the last of the requests that follow. At last it closes.",
		task:  task{work: "hold", sessions: 1, cut: true}, sizes: []int{1, 10, 100, 1000, 10_000, 100_000},
		size:  func(t *task, n int) { t.each = n },
		who:   []string{zkcoord},
		shows: []column{acquiring, memory, routines, recovery, recoveryRequests, closing}, sites: []*site{one},
	},
}

// tries is the contender that does not wait.
const tries = "zkcoord, TryAcquire"

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
	watchesLeft      = column{title: "watches left, in all", figure: "watches", scale: 1}
	nodesLeft        = column{title: "nodes left, in all", figure: "nodes", scale: 1}
)
