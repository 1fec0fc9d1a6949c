package bench

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var (
	document    = flag.String("document", "", "measure, and write the report into this file")
	repetitions = flag.Int("repetitions", 3, "of each measurement")
	during      = flag.Duration("during", 500*time.Millisecond, "of each measurement")
	atSites     = flag.String("sites", "*", "pattern of the sites' names, such as one*")
	scale       = flag.Bool("scale", false, "measure how the cost grows")
	ofRows      = flag.String("rows", "*", "pattern of the rows' names, such as handoff")
)

func TestMain(m *testing.M) {
	interop.Register()
	zktest.RegisterChild(childName, childMain)
	zktest.Main(m)
}

// TestFigures is the run that make bench asks for.
func TestFigures(t *testing.T) {
	if *document == "" {
		t.Skip("left out: this measures, for minutes; see make bench")
	}
	p := plan{*repetitions, *during, *atSites, *ofRows, rows}
	if *scale {
		p.table = scaleRows
	}
	cells := run(t, p)
	if *scale {
		require.NoError(t, write(*document, "scaling.json", cells, (*report).growth))
	} else {
		require.NoError(t, write(*document, "figures.json", cells, (*report).tables))
	}
}

// small are rows with every kind of task, for a server in the test's process.
var small = []row{
	{name: "cycle", task: task{work: "contend", sessions: 1, each: 1, own: true}, shows: []column{cycleTime, perSecond}},
	{name: "handoff", task: task{work: "contend", sessions: 3, each: 2}, shows: []column{handTime, perSecond}},
	{name: "processes", task: task{work: "contend", processes: 2, sessions: 1, each: 2}, shows: []column{perSecond}},
	{name: "held", task: task{work: "hold", sessions: 1, each: 500}, shows: []column{memory}},
	{name: "barrier", task: task{work: "barrier"}, sizes: []int{1, 3}, shows: []column{enterTime, leaveTime}},
	{name: "queue", task: task{work: "queue"}, sizes: []int{2}, shows: []column{perSecond}},
	{name: "line", task: task{work: "contend", processes: 2, sessions: 1, each: 2, lined: true}, shows: []column{queued, perSecond}},
	{name: "cut", task: task{work: "hold", sessions: 1, each: 20, cut: true}, shows: []column{acquiring, recovery, recoveryRequests, closing}},
	{name: "members", task: task{work: "barrier", sessions: 2, each: 3}, shows: []column{enterTime, leaveTime}},
	{name: "idle", task: task{work: "idle", sessions: 2, during: 3 * time.Second}, shows: []column{allRequests, writes, memory}},
	{name: "standby", task: task{work: "idle", sessions: 2, each: 2, settle: time.Second, during: 3 * time.Second}, shows: []column{allRequests, writes, memory}},
	{name: "probe", task: task{work: "probe", sessions: 2, each: 2}, shows: []column{perSecond}},
	{name: "attempt", task: task{work: "attempt", sessions: 2, count: 3}, shows: []column{requests}},
	{name: "backlog", task: task{work: "backlog", sessions: 2, count: 30}, shows: []column{firstItem, perSecond}},
	{name: "takeover", task: task{work: "wait", sessions: 1, timeout: 4 * time.Second}, shows: []column{takeover}},
}

// able tells which of them each contender can do.
var able = map[string][]string{
	limit:     {"cycle", "handoff", "barrier", "queue", "probe"},
	pipelined: {"cycle"},
	zkcoord:   {"cycle", "handoff", "processes", "held", "barrier", "queue", "takeover", "line", "cut", "members", "idle", "standby", "attempt", "backlog"},
	local:     {"handoff", "processes"},
	tries:     {"attempt"},
	lingering: {"cycle"},
	zkLock:    {"cycle", "handoff", "held", "takeover"},

	acknowledged: {"queue"},
	bareBatches:  {"queue"},
	prefetching:  {"queue"},
	batches:      {"queue"},

	curator: {"cycle", "handoff", "barrier", "queue", "takeover"},
	kazoo:   {"cycle", "handoff", "barrier", "queue", "takeover"},
}

// TestEveryContenderDoesItsWork runs the whole harness on an embedded server:
// the repetition that counts, and no other.
func TestEveryContenderDoesItsWork(t *testing.T) {
	for who, does := range able {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			m := embedded(t)
			for _, r := range small {
				if r.who = []string{who}; !slices.Contains(does, r.name) {
					continue
				}
				tasks, names := r.cases()
				for i, task := range tasks {
					c := m.measure(r, task, names[i])[0]
					require.Zero(t, c.Failed, "%s %s", r.name, names[i])
					for _, column := range r.shows {
						require.Positive(t, c.Figures[column.figure], "%s %s: %s of %v", r.name, names[i], column.figure, c.Figures)
					}
					if r.name == "cycle" && who != lingering {
						require.Greater(t, c.Figures["requests"], 1.5)
						require.Greater(t, c.Figures["sent"], 50.)
					}
				}
			}
		})
	}
}

// embedded is a measurer at a site with one embedded server.
func embedded(t *testing.T) *measurer {
	w := zktest.NewEmbedded(t)
	s := &server{addr: w.ConnectString(), pid: os.Getpid()}
	s.start(t, 0)
	m := newMeasurer(t, plan{during: time.Second}, one)
	m.servers[zooKeeper] = []*server{s}
	return m
}
