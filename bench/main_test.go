package bench

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	update      = flag.Bool("update", false, "write the documents anew from former figures")
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
	{name: "handoff", task: task{work: "contend", sessions: 3, each: 2}, shows: []column{perSecond}},
	{name: "processes", task: task{work: "contend", processes: 2, sessions: 1, each: 2}, shows: []column{perSecond}},
	{name: "held", task: task{work: "hold", sessions: 1, each: 500}, shows: []column{memory}},
	{name: "barrier", task: task{work: "barrier"}, sizes: []int{1, 3}, shows: []column{enterTime, leaveTime}},
	{name: "queue", task: task{work: "queue"}, sizes: []int{2}, shows: []column{perSecond}},
	{
		name: "line", task: task{work: "contend", processes: 2, sessions: 1, each: 2, lined: true},
		shows: []column{queued, perSecond},
	},
	{
		name: "cut", task: task{work: "hold", sessions: 1, each: 20, cut: true},
		shows: []column{acquiring, recovery, recoveryRequests, closing},
	},
	{name: "members", task: task{work: "barrier", sessions: 2, each: 3}, shows: []column{enterTime, leaveTime}},
	{
		name: "idle", task: task{work: "idle", sessions: 2, during: 3 * time.Second},
		shows: []column{allRequests, writes, memory},
	},
	{
		name: "standby", task: task{work: "idle", sessions: 2, each: 2, settle: time.Second, during: 3 * time.Second},
		shows: []column{allRequests, writes, memory},
	},
	{name: "probe", task: task{work: "probe", sessions: 2, each: 2}, shows: []column{perSecond}},
	{name: "backlog", task: task{work: "backlog", sessions: 2, count: 30}, shows: []column{firstItem, perSecond}},
	{name: "takeover", task: task{work: "wait", sessions: 1, timeout: 4 * time.Second}, shows: []column{takeover}},
}

// able lists what each contender can do.
var able = map[string][]string{
	limit:     {"cycle", "handoff", "barrier", "queue", "probe"},
	pipelined: {"cycle"},
	zkcoord: {
		"cycle", "handoff", "processes", "held", "barrier", "queue", "takeover", "line", "cut", "members", "idle", "standby",
		"backlog",
	},
	local:     {"handoff", "processes"},
	lingering: {"cycle"},
	zkLock:    {"cycle", "handoff", "held", "takeover"},

	acknowledged: {"queue"},
	bareBatches:  {"queue"},
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
				r.who = []string{who}
				if !slices.Contains(does, r.name) {
					continue
				}
				tasks, names := r.cases()
				for i, task := range tasks {
					c := m.measure(r, task, names[i])[0]
					for d := 2 * time.Second; c.Failed == 0 && slices.ContainsFunc(r.shows, c.without) && d < time.Minute; d *= 2 {
						task.during = d // on a busy machine, nothing may happen within a second
						c = m.measure(r, task, names[i])[0]
					}
					require.Zero(t, c.Failed, "%s %s", r.name, names[i])
					for _, column := range r.shows {
						require.False(t, c.without(column), "%s %s: %s of %v", r.name, names[i], column.figure, c.Figures)
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

// without reports whether a cell has nothing to show in a column.
func (c *cell) without(of column) bool { return c.Figures[of.figure] <= 0 }

// embedded is a measurer at a site with one embedded server.
func embedded(t *testing.T) *measurer {
	w := zktest.NewEmbedded(t)
	s := &server{addr: w.ConnectString(), pid: os.Getpid()}
	s.start(t, 0)
	m := newMeasurer(t, plan{during: time.Second}, one)
	m.servers[zooKeeper] = []*server{s}
	return m
}

func samples(rates ...float64) (all []figures) {
	for _, rate := range rates {
		if rate == 0 {
			all = append(all, nil)
		} else {
			all = append(all, figures{"rate": rate})
		}
	}
	return all
}

func TestAFigureIsTheMedianOfTheRepetitionsThatSucceeded(t *testing.T) {
	c := &cell{samples: samples(5, 0, 1, 9), counted: figures{"rate": 1000, "requests": 3}}
	c.sum()
	require.Equal(t, figures{"rate": 5, "requests": 3}, c.Figures)
}

func TestARatioIsTheMedianOfThoseWithinOneRepetition(t *testing.T) {
	base := &cell{Contender: "base", samples: samples(10, 100, 1000, 7)}
	mine := &cell{Contender: "mine", samples: samples(5, 100, 4000, 0)}
	mine.sum()
	mine.compare(row{base: "base", shows: []column{perSecond}}, []*cell{base, mine})
	require.Equal(t, map[string]figures{"base": {"rate": 1}}, mine.Ratios) // of 0.5, 1 and 4
}

// Also that of the one session for which the others wait: it would probe on,
// and be counted in the next repetition.
func TestAClosedTaskLeavesNoHoldBehind(t *testing.T) {
	w := zktest.NewEmbedded(t)
	standby := task{
		work: "idle", addrs: []string{w.ConnectString()}, path: "/standby", sessions: 2, each: 2,
		settle: 100 * time.Millisecond, timeout: 4 * time.Second,
	}
	var current job
	who := contenderNamed(zkcoord)
	require.Equal(t, "prepared", answer(who, &current, "prepare", strings.Fields(standby.String())))
	require.Equal(t, "closed", answer(who, &current, "close", nil))
	for _, node := range w.Embedded().Nodes() {
		require.Zero(t, node.Stat.EphemeralOwner, node.Path)
	}
}

func TestATaskArrivesAsItWasSent(t *testing.T) {
	sent := task{
		work: "contend", addrs: []string{"a:1", "b:2"}, path: "/p", sessions: 3, each: 4, own: true, count: 5,
		settle: time.Second, timeout: time.Minute, during: time.Millisecond,
	}
	require.Equal(t, sent, parseTask([]string{
		"work=contend", "addrs=a:1,b:2", "path=/p", "sessions=3", "each=4", "own=true", "count=5",
		"settle=1000", "timeout=60000", "during=1",
	}))
	require.Equal(t, sent, parseTask(strings.Fields(sent.String())))
}

func TestAReportReplacesWhatTheLastRunWroteAndShowsItsCharts(t *testing.T) {
	document := filepath.Join(t.TempDir(), "benchmarks.md")
	before, after := "# Title\n\nWhy.\n\n", "\nThe end.\n"
	require.NoError(t, os.WriteFile(document, []byte(before+generatedBegin+"old figures\n"+generatedEnd+after), 0o600))
	require.NoError(t, write(document, "figures.json", measured("cycle", 7, 7, 7, 7), (*report).tables))
	require.NoError(t, write(document, "figures.json", measured("paths", 9, 9, 9, 9), (*report).tables))
	require.NoError(t, write(document, "figures.json", measured("paths", 1000, 2000, 3000, 4000), (*report).tables))
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^`+regexp.QuoteMeta(before+generatedBegin), string(text))
	require.Regexp(t, regexp.QuoteMeta(generatedEnd+after)+`$`, string(text))
	require.NotContains(t, string(text), "old figures")
	require.Contains(t, string(text), "| **zkcoord** | 2,000 (0.67) |")
	require.Contains(t, string(text),
		"- 64 paths over one session, one server, loopback, per second: Curator, 2.00 times.")
	require.Contains(t, string(text), "## Uncontended acquire and release\n", "measured before, and not again")
	images := regexp.MustCompile(`\]\((\S+\.svg)\)`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, images, 2)
	for _, image := range images {
		require.FileExists(t, filepath.Join(filepath.Dir(document), image[1]))
	}
}

// measured is a row at one server, with these rates.
func measured(name string, rates ...float64) (cells []*cell) {
	for i, who := range []string{limit, zkcoord, zkLock, curator} {
		c := &cell{Site: one.name, Row: name, Contender: who, Run: "Once", samples: samples(rates[i])}
		c.sum()
		cells = append(cells, c)
	}
	for _, c := range cells {
		c.compare(row{base: zkLock, shows: []column{perSecond}}, cells)
	}
	return cells
}

func TestGrowthIsATableWithALineForEachSize(t *testing.T) {
	document := filepath.Join(t.TempDir(), "scaling.md")
	var cells []*cell
	for i, kase := range []string{"N = 1000", "N = 100000"} {
		cells = append(cells,
			&cell{
				Site: one.name, Row: "items", Case: kase, Contender: zkcoord, Run: "Once",
				Figures: figures{"rate": float64(i+1) * 1000},
			})
	}
	require.NoError(t, write(document, "scaling.json", cells, (*report).growth))
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Contains(t, string(text), "| 1,000 | – | 1,000 |")
	require.Contains(t, string(text), "| 100,000 | – | 2,000 |")
	require.FileExists(t, filepath.Join(filepath.Dir(document), "benchmarks", "scaling.json"))
}

func TestWhoCannotGoSoFarIsLeftOut(t *testing.T) {
	r := row{sizes: []int{10, 1000}, who: []string{zkcoord, zkLock}, most: map[string]int{zkLock: 100}}
	require.Equal(t, []string{zkcoord, zkLock}, r.at(0).who)
	require.Equal(t, []string{zkcoord}, r.at(1).who)
}

func TestADocumentWithoutMarksIsLeftAlone(t *testing.T) {
	document := filepath.Join(t.TempDir(), "other.md")
	require.NoError(t, os.WriteFile(document, []byte("mine\n"), 0o600))
	require.ErrorContains(t, write(document, "figures.json", nil, (*report).tables), "marks")
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(text))
}

func TestFiguresHaveThreeDigitsThatMeanSomething(t *testing.T) {
	for n, text := range map[float64]string{
		0: "0", 0.01234: "0.0123", 1.005: "1", 12.34: "12.3", 1234.5: "1,234", 1234567: "1,234,567",
	} {
		require.Equal(t, text, digits(n))
	}
}

// Who changes how a report looks, or leaves out a row, writes the documents
// anew from the figures that they were made of:
//
//	go test -run TheDocumentsShow . -update
func TestTheDocumentsShowTheFiguresBesideThem(t *testing.T) {
	for name, of := range map[string]struct {
		data string
		show func(r *report, folder string) (string, error)
	}{
		"benchmarks.md": {"figures.json", (*report).tables},
		"scaling.md":    {"scaling.json", (*report).growth},
	} {
		document := filepath.Join("../docs", name)
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		if !*update {
			figures, err := os.ReadFile("../docs/benchmarks/" + of.data)
			require.NoError(t, err)
			document = filepath.Join(t.TempDir(), name)
			folder := filepath.Join(filepath.Dir(document), "benchmarks")
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.WriteFile(document, text, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(folder, of.data), figures, 0o600))
		}
		require.NoError(t, write(document, of.data, nil, of.show))
		written, err := os.ReadFile(document)
		require.NoError(t, err)
		require.True(t, *update || string(text) == string(written), "go test -run TheDocumentsShow . -update writes %s", name)
	}
}
