package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// bar is what a bar of a timeline says of who held and when: each end lies
// between two times, in Unix seconds.
type bar struct{ Owner, Begin, End, How, Nobody string }

// span reads two times.
func span(t *testing.T, text string) (from, to float64) {
	t.Helper()
	_, err := fmt.Sscanf(strings.Replace(text, ",", " ", 1), "%g %g", &from, &to)
	require.NoError(t, err, text)
	return from, to
}

// held is a hold by the test's own record: the times between which it was
// granted, and between which it was given up.
type held struct {
	owner                          string
	asked, granted, freed, settled time.Time
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func TestTheBarsOfATimelineAreWhatTheTestDid(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(width, height),
		chromedp.Navigate(serve(t, ctx, servers, "--every", "100ms").url+"#r=1&open=/shop/backup"))
	clients := map[string]worker{}
	for _, name := range []string{"billing", "report"} {
		clients[name] = newWorker(t, ctx, servers, name)
	}
	var record []held
	for _, name := range []string{"billing", "report", "billing"} {
		was := held{owner: name, asked: time.Now()}
		hold := <-clients[name].acquire(ctx, "/shop/backup")
		require.NotNil(t, hold)
		was.granted = time.Now()
		b.await(`document.querySelectorAll("#rows .body .hold:not([data-end])").length === 1`)
		was.freed = time.Now()
		require.NoError(t, hold.Release(ctx))
		was.settled = time.Now()
		record = append(record, was)
		b.await(`document.querySelectorAll("#rows .body .hold[data-how=released]").length === %d`, len(record))
		b.await(`document.querySelectorAll("#rows .body .gap").length >= %d`, len(record))
	}
	last := <-clients["billing"].acquire(ctx, "/shop/backup")
	require.NotNil(t, last)
	for n := range 3 {
		clients["report"].acquire(ctx, "/shop/backup")
		b.await(`[...document.querySelectorAll("#rows .body .wait")].some((w) => w.dataset.waiting === "%d")`, n+1)
	}

	const clocks = 0.002 // milliseconds are rounded
	bars := value[[]bar](b,
		`[...document.querySelectorAll("#rows .body .hold, #rows .body .gap")].map(({ dataset: d }) => ({ Owner: d.owner, Begin: d.begin, End: d.end ?? "", How: d.how, Nobody: d.nobody ?? "" }))`)
	var holds []bar
	for _, one := range bars {
		switch {
		case one.Nobody == "" && one.End != "":
			holds = append(holds, one)
		case one.Nobody == "sure" && one.End != "":
			_, from := span(t, one.Begin)
			to, _ := span(t, one.End)
			for _, was := range record {
				require.False(t, from < to && from < seconds(was.freed)-clocks && seconds(was.granted)+clocks < to,
					"%v held it in the gap %v", was, one)
			}
		}
	}
	require.Len(t, holds, len(record))
	for i, was := range record {
		require.Contains(t, holds[i].Owner, was.owner)
		from, to := span(t, holds[i].Begin)
		require.LessOrEqual(t, from, seconds(was.granted)+clocks)
		require.GreaterOrEqual(t, to, seconds(was.asked)-clocks)
		from, to = span(t, holds[i].End)
		require.LessOrEqual(t, from, seconds(was.settled)+clocks)
		require.GreaterOrEqual(t, to, seconds(was.freed)-clocks)
	}
	require.Equal(t, len(bars),
		value[int](b,
			`[...document.querySelectorAll("#rows .body table")].find((t) => t.caption.textContent.startsWith("Who held it")).tBodies[0].rows.length`), "the table says the same")
}

func TestTheFiltersAndTheSearchAreInTheAddress(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	billing, report := newWorker(t, ctx, servers, "billing"), newWorker(t, ctx, servers, "report")
	for _, path := range []string{"/locks/a", "/locks/b", "/locks/c"} {
		require.NotNil(t, <-billing.acquire(ctx, path))
	}
	require.NotNil(t, <-report.acquire(ctx, "/locks/d"))
	report.acquire(ctx, "/locks/b")
	b := browse(t, ctx)
	p := serve(t, ctx, servers, "--every", "200ms")
	b.do(chromedp.Navigate(p.url))
	b.shows("#chips", "4 held")
	b.shows("#chips", "1 waited for")
	b.click(`//div[@id = "chips"]/button[@data-chip = "waited"]`)
	rows := `[...document.querySelectorAll("#rows > li .what bdi")].map((e) => e.textContent).join()`
	b.await(rows + ` === "/locks/b"`)
	b.do(chromedp.Reload())
	b.await(rows + ` === "/locks/b"`)
	b.do(chromedp.KeyEvent("\u001b"))
	b.await(rows + ` === "/locks/b,/locks/a,/locks/c,/locks/d"`)
	b.do(chromedp.KeyEvent("/"))
	b.await(`document.activeElement.id === "search"`)
	value[bool](b, fmt.Sprintf(`{
		const search = document.querySelector("#search");
		search.value = "%#x";
		search.dispatchEvent(new Event("input"))
	}`, report.Info().SessionID))
	b.await(rows + ` === "/locks/b,/locks/d"`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+"#q=locks/c&open=/locks/c"))
	b.await(rows + ` === "/locks/c"`)
	b.shows("#rows .body", "Who is there")
}

func TestAThousandPathsAreDrawnAndARefreshSendsLittle(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	w := newWorker(t, ctx, servers, "many")
	const paths, contenders = 1000, 10
	for n := range paths {
		dir := fmt.Sprintf("/many/l%03d", n)
		require.NoError(t, w.EnsureDir(ctx, dir))
		for i := range contenders {
			require.NoError(t,
				w.Create(ctx, fmt.Sprintf("%s/_c_00000000-0000-4000-8000-%012d-lock-%010d", dir, i, i),
					[]byte(fmt.Sprintf("owner %d", i))))
		}
	}
	b := browse(t, ctx)
	p := serve(t, ctx, servers, "--every", "1s", "--always", "--most", "100000", "--connect-timeout", "60s")
	b.do(chromedp.Navigate(p.url))
	b.await(`document.querySelectorAll("#rows > li").length === %d`, paths)
	b.do(chromedp.Navigate("about:blank"), chromedp.Func(countProcessorTime), chromedp.Navigate(p.url))
	b.await(`performance.getEntriesByName("first picture").length === 1`)
	processor, err := chromedp.Run(b.ctx, processorTime)
	require.NoError(t, err)
	b.await(`document.querySelectorAll("#rows > li").length === %d`, paths)
	b.await(
		`performance.getEntriesByType("resource").filter((e) => e.name.includes("look?has=") && !e.name.endsWith("has=0")).length > 2`)
	sizes := value[[]int](b,
		`performance.getEntriesByType("resource").filter((e) => e.name.includes("look?has=")).map((e) => e.decodedBodySize)`)
	require.Equal(t, 1,
		value[int](b, `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("has=0")).length`),
		"the page takes what it has asked for while it loads")
	shares := value[map[string]float64](b, `(() => {
		const [look] = performance.getEntriesByType("resource").filter((e) => e.name.endsWith("has=0"));
		const first = performance.getEntriesByName("first picture")[0].startTime, [drawing] = performance.getEntriesByName("drawing");
		return { first, "until asked": look.requestStart, server: look.responseStart - look.requestStart, transfer: look.responseEnd - look.responseStart,
			parsing: drawing.startTime - look.responseEnd, drawing: drawing.duration };
	})()`)
	t.Logf("first picture: milliseconds %v; the page's processor milliseconds %v; sent %v bytes", shares, processor, sizes)
	require.Less(t, sizes[len(sizes)-1], sizes[0]/20, "a refresh sends what has changed")
}

// countProcessorTime has the browser count processor time from now on.
func countProcessorTime(ctx context.Context, target *chromedp.Target) error {
	if _, err := cdp.Call(ctx, target, performance.Disable, cdp.Empty{}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, target, performance.Enable,
		performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	return err
}

// processorTime is how many milliseconds of processor time the page has used so
// far, by purpose.
func processorTime(ctx context.Context, target *chromedp.Target) (map[string]float64, error) {
	told, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
	used := map[string]float64{}
	if err == nil {
		for _, m := range told.Metrics {
			if what, is := strings.CutSuffix(m.Name, "Duration"); is && m.Value > 0 {
				used[what] = m.Value * 1000
			}
		}
	}
	return used, err
}
