package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/shards"
)

// trial is an operator with questions.
type trial struct {
	tab
	url string
}

const (
	mostClicks  = 2 // for an answer
	screenshots = root + "/artefacts/trial"
)

// ask begins at the page as it opens. What click names is clicked on, and then
// the answer is there.
func (q *trial) ask(question string, answer func(click func(path string))) {
	q.t.Helper()
	clicks := 0
	q.do(chromedp.Navigate("about:blank"), chromedp.Navigate(q.url))
	q.shows("#state", "live")
	answer(func(path string) {
		clicks++
		q.await(`document.evaluate(%q, document, null, XPathResult.BOOLEAN_TYPE).booleanValue`, "boolean("+path+")")
		q.click("%s", path)
	})
	require.LessOrEqual(q.t, clicks, mostClicks, question)
	picture, err := chromedp.Run(q.ctx, chromedp.CaptureScreenshot())
	require.NoError(q.t, err)
	require.NoError(q.t,
		os.WriteFile(filepath.Join(screenshots, strings.ReplaceAll(question, " ", "-")+".png"), picture, 0o644))
}

// The parts of the page that a trial clicks on.
func row(path string) string {
	return fmt.Sprintf(`//ul[@id = "rows"]/li[.//bdi[. = %q]]//summary`, path)
}

func chip(name string) string {
	return fmt.Sprintf(`//div[@id = "chips"]/button[@data-chip = %q]`, name)
}

// shownRows are the paths that the page shows.
func (q *trial) shownRows() []string {
	return value[[]string](q.tab, `[...document.querySelectorAll("#rows > li .what bdi")].map((e) => e.textContent)`)
}

func TestSevenQuestionsOfAnOperatorAreAnsweredInTwoClicks(t *testing.T) {
	require.NoError(t, os.MkdirAll(screenshots, 0o755))
	ctx, server := startServer(t)
	servers := server.ConnectString()
	p := serve(t, ctx, servers, "--always", "--every", "500ms")
	playing, stop := context.WithCancel(ctx)
	s := &scene{t: t, ctx: playing, servers: servers}
	t.Cleanup(func() { stop(); s.players.Wait() })
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(1100, 900), chromedp.Navigate(p.url))

	frozen := exec.CommandContext(ctx, binary, "--zk", servers, "--session-timeout", "60s", "lock", "/shop/import", "--",
		"sleep", "1000")
	require.NoError(t, frozen.Start())
	t.Cleanup(func() {
		_ = frozen.Process.Signal(syscall.SIGCONT)
		_ = frozen.Process.Signal(syscall.SIGTERM)
		_ = frozen.Wait()
	})
	b.shows("#rows", "/shop/import")
	require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))
	s.circle()
	s.queues()

	r := &roster{owner: map[string]string{}, draining: map[string]bool{}}
	for i, name := range []string{"node-a", "node-b"} {
		member := must(
			shards.New(s.client(name), "/shop/regions", shards.ID(name), shards.Keys("east", "north", "south"),
				shards.DrainTimeout(patience)))
		s.players.Go(func() { _ = member.Run(playing, r.work(name, nil)) })
		if i == 0 {
			b.await(`document.querySelectorAll("#rows .picture .key[data-state=owned]").length === 3`)
		}
	}
	var slots []time.Time
	busy := make(chan struct{})
	c := must(cron.New(s.client("scheduler"), "/shop/reports", often{}))
	second := make(chan struct{})
	s.players.Go(func() {
		_ = c.Run(playing, func(ctx context.Context, slot *cron.Slot) ([]byte, error) {
			n := 0
			r.note(func() { slots = append(slots, slot.At); n = len(slots) })
			switch n {
			case 1:
				close(busy)
				s.pause(time.Until(slot.At.Add(9 * time.Second)).Seconds()) // two more are due by then
			case 2:
				close(second)
			}
			return nil, nil
		})
	})
	<-busy

	type turn struct {
		owner          string
		granted, freed time.Time
	}
	var turns []turn
	for _, name := range []string{"billing", "report", "audit"} {
		hold := <-newWorker(t, ctx, servers, name).acquire(ctx, "/shop/backup")
		require.NotNil(t, hold)
		turns = append(turns, turn{owner: name, granted: time.Now()})
		s.pause(3)
		turns[len(turns)-1].freed = time.Now()
		require.NoError(t, hold.Release(ctx))
		s.pause(2)
	}
	select {
	case <-second:
	case <-ctx.Done():
	}
	b.await(`[...document.querySelectorAll("#chips button")].some((c) => c.dataset.chip === "silent")`)

	q := &trial{tab: b, url: p.url}
	q.ask("who is silent", func(click func(string)) {
		click(chip("silent"))
		click(row("/shop/import"))
		q.await(
			`[...document.querySelectorAll("#rows .body tr")].some((l) => l.textContent.startsWith("holdssleep") && l.textContent.includes("silent ") && l.querySelector(".silence"))`)
		require.Equal(t, []string{"/shop/import"}, q.shownRows())
	})
	q.ask("who held it at a given time", func(click func(string)) {
		click(row("/shop/backup"))
		at := turns[1].granted.Add(turns[1].freed.Sub(turns[1].granted) / 2)
		q.await(`document.querySelectorAll("#rows .body .hold[data-end]").length === 3`)
		require.Contains(t, value[string](q.tab, fmt.Sprintf(`(() => {
			const holds = [...document.querySelectorAll("#rows .body .hold")].filter(({ dataset: d }) => d.begin.split(",")[1] <= %[1]f && (d.end ?? "Infinity").split(",")[0] >= %[1]f);
			return holds.map((h) => h.querySelector("title").textContent).join("; ");
		})()`, seconds(at))), turns[1].owner)
	})
	q.ask("how long did nobody hold it", func(click func(string)) {
		click(row("/shop/backup"))
		q.await(`document.querySelectorAll("#rows .body .gap[data-nobody=sure]").length >= 2`)
		var gaps []bar
		for _, one := range value[[]bar](q.tab, `[...document.querySelectorAll("#rows .body .gap")].map(({ dataset: d }) => ({ Begin: d.begin, End: d.end ?? "", Nobody: d.nobody }))`) {
			_, from := span(t, one.Begin)
			if one.End != "" && from >= seconds(turns[0].freed) {
				gaps = append(gaps, one)
			}
		}
		require.NotEmpty(t, gaps)
		begin, _ := span(t, gaps[0].Begin)
		_, end := span(t, gaps[0].End)
		was := turns[1].granted.Sub(turns[0].freed).Seconds()
		require.GreaterOrEqual(t, end-begin, was-0.1, "it may have been so long, and not much longer")
		_, least := span(t, gaps[0].Begin)
		most, _ := span(t, gaps[0].End)
		require.LessOrEqual(t, most-least, was+0.002, "it was at least so long")
		require.Positive(t, most-least)
	})
	q.ask("which queue grows", func(click func(string)) {
		click(chip("growing"))
		q.await(`document.querySelectorAll("#rows > li").length === 1`)
		require.Equal(t, []string{"/shop/mail"}, q.shownRows())
	})
	q.ask("who is in the circle", func(func(string)) {
		q.await(`!document.querySelector("#circling").hidden`)
		names := value[[]string](q.tab,
			`[...document.querySelectorAll("#circles g[data-session] text")].map((e) => e.textContent.split(" ")[0]).sort()`)
		require.Equal(t, []string{"jobs", "stock"}, names)
	})
	q.ask("which key moves", func(click func(string)) {
		click(chip("moving"))
		click(row("/shop/regions"))
		q.await(`document.querySelectorAll("#rows .body .big .key[data-state=moving]").length > 0`)
		require.Equal(t, r.of("node-a", true), cells(q.tab, "node-a", "moving"))
	})
	q.ask("which slot was left out", func(click func(string)) {
		click(row("/shop/reports"))
		q.await(`document.querySelectorAll("#rows .body .left-out").length > 0`)
		var missed []time.Time
		r.note(func() { missed = slotsBetween(slots[0], slots[1]) })
		require.NotEmpty(t, missed)
		marks := value[[]leftOut](q.tab, leftOutMarks)
		for _, at := range missed {
			require.True(t,
				slices.ContainsFunc(marks, func(m leftOut) bool { return m.After < seconds(at) && seconds(at) < m.Until }),
				"%v: %v", at, marks)
		}
	})
}
