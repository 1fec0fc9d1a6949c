//go:build linux || darwin || freebsd || openbsd

package see

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/exposition"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	jobs "github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/promtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A path that may not be listed is reported, and is no reason to fail.
func TestTheExporterTellsWhatOthersHoldAndWhatItMustNotList(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.EveryRecipe(t, w)
	cmdtest.Must(w.Admin().Create(w.Path("app/lock/secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	p := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w), w.Path("app/jobs"), cmdtest.Below(w))
	text := scrape(t, p.Line())
	for metric, value := range map[string]string{
		`up{place="` + cmdtest.Below(w) + `"}`:                                  "1",
		`holders{kind="lock",path="` + w.Path("app/lock") + `"}`:                "1",
		`waiting{kind="lock",path="` + w.Path("app/lock") + `"}`:                "1",
		`holders{kind="rwlock",path="` + w.Path("app/shared") + `"}`:            "2",
		`holders{kind="semaphore",path="` + w.Path("app/licence") + `"}`:        "2",
		`queue_items{kind="queue",path="` + w.Path("app/jobs") + `"}`:           "2",
		`round_open{kind="doublebarrier",path="` + w.Path("app/round") + `"}`:   "0",
		`oddities{kind="election",path="` + w.Path("app/deep/er/leader") + `"}`: "0",
		`left_out_nodes{place="` + w.Path("app/jobs") + `"}`:                    "0",
		`hidden_nodes{place="` + cmdtest.Below(w) + `"}`:                        "1",
	} {
		require.Contains(t, text, "zkcoord_path_"+metric+" "+value+"\n")
	}
	require.Regexp(t, `zkcoord_path_holder_there_seconds\{kind="lock",path="[^"]*"\} \d*\.?\d*[1-9]`, text)

	p.EndsBy(syscall.SIGTERM, 0)
	require.Equal(t, term.ExitUsage, cmdtest.On(t, w, "exporter", "relative").Exit())
}

// A scrape of a ledger with many keys has as many series as one with a few.
func TestTheNumberOfSeriesDoesNotGrowWithTheKeysOfALedger(t *testing.T) {
	w := cmdtest.World(t)
	c := cmdtest.Open(t, w)
	ledger := cmdtest.Must(jobs.New(c, w.Path("jobs")))
	at := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w)).Line()
	scraped := []string{}
	for i := range 6 {
		_, _, err := ledger.Begin(t.Context(), fmt.Sprint("job", i))
		require.NoError(t, err)
		scraped = append(scraped, scrape(t, at))
	}
	require.Equal(t, strings.Count(scraped[1], "\n"), strings.Count(scraped[5], "\n"))
	require.Contains(t, scraped[5], `zkcoord_path_holders{kind="once",path="`+w.Path("jobs")+`"} 6`)
	require.Contains(t, scraped[5], `zkcoord_path_once_running{kind="once",path="`+w.Path("jobs")+`"} 6`)
	require.NotContains(t, scraped[5], "job1")
}

// Each rule about paths is tried on the metrics of recipes with something
// wrong. A minute of the rules is a second here.
func TestF96TheExportersMetricsRaiseTheAlerts(t *testing.T) {
	promtest.Tool(t, "prometheus")
	w := cmdtest.World(t)
	p := &plights{t, w, cmdtest.Open(t, w)}
	for name, plight := range allPlights {
		if name != "silent-holder" {
			plight.make(p, w.Path("odd/"+name))
		}
	}
	q := cmdtest.Must(queue.New(p.c, w.Path("odd/jobs")))
	w.Embedded().ShiftClock(-time.Hour)
	require.NoError(t, q.Put(t.Context(), []byte("old")))
	w.Embedded().ShiftClock(0)
	for range 6 {
		require.NoError(t, q.PutBatch(t.Context(), slices.Repeat([][]byte{[]byte("item")}, 1000)))
	}
	cmdtest.Waits(t, w, w.Path("odd/round"), 2, cmdtest.Must(doublebarrier.New(p.c, w.Path("odd/round"), 2)).Enter)
	at := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", w.Path("odd")).Line()
	prom := promtest.Start(t, "../../../contrib/prom/alerts.yml", strings.TrimPrefix(at, "http://"))
	for name := range allPlights {
		if name != "silent-holder" {
			prom.Awaits(
				`ALERTS{alertname="ZkcoordOddity", alertstate="firing", odd="` + name + `", path="` + w.Path("odd/"+name) + `"}`)
		}
	}
	for _, alert := range []string{
		"ZkcoordKeysUnowned", "ZkcoordDeadLetters", "ZkcoordQueueGrows", "ZkcoordQueueStands", "ZkcoordScheduleFails",
		"ZkcoordScheduleUnserved",
	} {
		prom.Fires(alert)
	}
	letters := cmdtest.Must(queue.New(p.c, w.Path("odd/dead-letters")))
	for _, l := range cmdtest.Must(letters.DeadLetters(t.Context())) {
		require.Equal(t, 1, cmdtest.Must(letters.Acknowledge(t.Context(), l.Name)))
	}
	prom.Awaits(`absent(ALERTS{path="` + w.Path("odd/dead-letters") + `"})`)
	for _, path := range []string{"kept-slot", "round", "deadlock"} {
		prom.Awaits(`ALERTS{alertname="ZkcoordLongWait", alertstate="firing", path="` + w.Path("odd/"+path) + `"}`)
	}
	w.Embedded().Stop()
	prom.Fires("ZkcoordExporterBlind")
	w.Embedded().Resume()
}

// A node's age includes its wait: a lock that was granted a moment ago must not
// count as held for as long as its holder waited.
func TestALockIsHeldSinceItsGrant(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo holds; "+cmdtest.UntilEOF)...).Begun()
	waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo holds; "+cmdtest.UntilEOF)...).InLine(w, w.Path("l"), 2)
	at := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w)).Line()
	require.NotContains(t, scrape(t, at), "zkcoord_path_held_seconds", "nobody saw the grant")
	text := cmdtest.On(t, w, "ls", cmdtest.Below(w)).Output()
	require.Regexp(t, w.Path("l")+` .* there for \S+ `, text)
	require.NoError(t, holder.In.Close())
	waiter.Line()
	text = scrape(t, at)
	var held, there float64
	for name, value := range map[string]*float64{"held_seconds": &held, "holder_there_seconds": &there} {
		found := regexp.MustCompile(`zkcoord_path_` + name + `\{.*\} (\S+)`).FindStringSubmatch(text)
		require.NotNil(t, found, text)
		*value = cmdtest.Must(strconv.ParseFloat(found[1], 64))
	}
	require.Less(t, held, there)
	holder.Exit()
	require.NoError(t, waiter.In.Close())
	waiter.Exit()
}

func TestTheExporterOutlastsTheServers(t *testing.T) {
	w := cmdtest.World(t)
	args := []string{"exporter", "--connect-timeout", "1s", "--listen", "127.0.0.1:0", cmdtest.Below(w)}
	for i := range 9 {
		args = append(args, w.Path(fmt.Sprint(i)))
	}
	at := cmdtest.On(t, w, args...).Line()
	w.Embedded().Stop()
	begun := time.Now()
	require.Contains(t, scrape(t, at), `zkcoord_path_up{place="`+cmdtest.Below(w)+`"} 0`+"\n")
	require.Less(t, time.Since(begun), 5*time.Second, "all places together")
	w.Embedded().Resume()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return strings.Contains(scrape(t, at), `zkcoord_path_up{place="`+cmdtest.Below(w)+`"} 1`+"\n")
	}, "the exporter does not come back")
}

// SIGPIPE comes also when a scraper or a server closes a connection to which
// this process writes.
func TestAConnectionThatBreaksDoesNotEndTheExporter(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w))
	at := p.Line()
	for range 20 {
		p.Signal(syscall.SIGPIPE)
		require.Contains(t, scrape(t, at), "zkcoord_path_up")
	}
	p.EndsBy(syscall.SIGTERM, 0)
}

func TestTheRootOfTheExporterLeadsToTheMetrics(t *testing.T) {
	w := cmdtest.World(t)
	at := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w)).Line()
	root := strings.TrimSuffix(at, "metrics")
	require.Contains(t, scrape(t, root), `href="metrics"`)
	answer, err := http.Get(root + "other")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}

func TestScrapesShareALookAndThereIsALimit(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"), nil)
	at := cmdtest.On(t, w, "exporter", "--connect-timeout", "20s", "--listen", "127.0.0.1:0", w.Path("l")).Line()
	asked := func() *zkembed.Fault {
		return w.Embedded().Inject(zkembed.Match{PathPrefix: w.Path("l")}, zkembed.Delay(0))
	}
	one := asked()
	scrape(t, at)
	one.Remove()

	hung := w.Embedded().Inject(zkembed.Match{PathPrefix: w.Path("l")}, zkembed.Hang())
	statuses := make(chan int, mostScrapes+1)
	for range mostScrapes + 1 {
		go func() {
			answer, err := http.Get(at)
			if err != nil {
				statuses <- 0
				return
			}
			_ = answer.Body.Close()
			statuses <- answer.StatusCode
		}()
	}
	require.Equal(t, http.StatusServiceUnavailable,
		zktest.Receive(t, cmdtest.Soon, statuses, "the answer to one too many"))
	hung.Remove()
	all := asked()
	for range mostScrapes {
		require.Equal(t, http.StatusOK, zktest.Receive(t, cmdtest.Soon, statuses, "an answer"))
	}
	require.Equal(t, one.Fired(), all.Fired(), "the requests of one look")
}

func TestTheDashboardShowsTheExportersMetrics(t *testing.T) {
	t.Parallel()
	shown := string(cmdtest.Must(os.ReadFile("../../../contrib/prom/dashboard.json")))
	source := string(cmdtest.Must(os.ReadFile("exporter.go")))
	for _, match := range regexp.MustCompile(`(?:metric|sample|known|gauge)\("([a-z_]+)"`).FindAllStringSubmatch(source, -1) {
		require.Regexp(t, `zkcoord_path_`+match[1]+`\b`, shown)
	}
}

func scrape(t *testing.T, at string) string {
	t.Helper()
	answer, err := http.Get(at)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	return string(body)
}

// The samples of a metric form one group, as Prometheus requires, and no path
// breaks the format.
func TestAScrapeIsInPrometheusFormat(t *testing.T) {
	t.Parallel()
	up, held := gauge("up", "Whether.", "place"), gauge("held_seconds", "How long.", "kind", "path")
	e := exposition.New()
	e.Sample(up, 1, "/a")
	e.Sample(held, 1.5e9, "lock", "/a")
	e.Sample(up, 0, "/b\"\\\n\xff")
	require.Equal(t, `# HELP zkcoord_path_up Whether.
# TYPE zkcoord_path_up gauge
zkcoord_path_up{place="/a"} 1
zkcoord_path_up{place="/b\"\\\n`+"\ufffd"+`"} 0
# HELP zkcoord_path_held_seconds How long.
# TYPE zkcoord_path_held_seconds gauge
zkcoord_path_held_seconds{kind="lock",path="/a"} 1.5e+09
`, e.String())
}
