package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The width and height of a small phone.
const width, height = 360, 740

// hostile is a name that no client should have.
const hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe"

// startServer starts a server for a test, whose context ends after patience.
func startServer(t *testing.T) (context.Context, *zkembed.Server) {
	t.Helper()
	server, err := zkembed.Start(zkembed.WithSessionTimeouts(0, patience))
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx, server
}

// worker is a client that takes locks.
type worker struct {
	t *testing.T
	*coord.Client
}

// newWorker opens a worker, which loses no lock however busy the machine is.
func newWorker(t *testing.T, ctx context.Context, servers, name string) worker {
	t.Helper()
	client, err := coord.Open(ctx, servers, coord.WithIdentity(name), coord.WithSessionTimeout(patience))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return worker{t, client}
}

// acquire takes a lock as soon as it can.
func (w worker) acquire(ctx context.Context, path string) <-chan *coord.Hold {
	w.t.Helper()
	mutex, err := lock.New(w.Client, path)
	require.NoError(w.t, err)
	granted := make(chan *coord.Hold, 1)
	go func() {
		defer close(granted)
		if hold, err := mutex.Acquire(ctx); err == nil {
			granted <- hold
		}
	}()
	return granted
}

// happens waits until a channel is closed, but not longer than the test may
// take.
func happens(t *testing.T, ctx context.Context, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-ctx.Done():
		require.FailNow(t, "it does not happen", what)
	}
}

// grumbles collects what the page has written to the console, until the
// function that it returns is called.
func grumbles(b tab) (all func() []string) {
	ctx, stop := context.WithCancel(b.ctx)
	messages := chromedp.Console(ctx)
	var found []string
	var reader sync.WaitGroup
	reader.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			found = append(found, m.String())
		}
	})
	return func() []string {
		stop()
		reader.Wait()
		return found
	}
}

func TestThePageShowsChangesAndActsInABrowser(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	p := serve(t, ctx, servers, "--allow-break", "--every", "200ms")
	billing, report := newWorker(t, ctx, servers, "billing"), newWorker(t, ctx, servers, "report")
	evil := newWorker(t, ctx, servers, hostile)
	held := <-billing.acquire(ctx, "/locks/backup")
	require.NotNil(t, held)
	require.NotNil(t, <-evil.acquire(ctx, "/<img src=x onerror=alert(3)>"))

	b := browse(t, ctx)
	console := grumbles(b)
	b.do(chromedp.EmulateViewport(width, height, chromedp.EmulateMobile, chromedp.EmulateTouch),
		chromedp.Navigate(p.url+"#open=/locks/backup"))
	b.shows("#state", "live")
	b.shows("#rows", "/locks/backup")
	b.shows("#rows", "billing ")
	b.await(`document.querySelector("#waiting").hidden`)

	value[bool](b, `window.sameDocument = true`)
	waits := report.acquire(ctx, "/locks/backup")
	b.shows("#rows", "1 waiting")
	b.shows("#rows .body", "waitsreport ")
	b.shows("#waits", "report ")
	b.await(`!document.querySelector("#waiting").hidden`)
	require.True(t, value[bool](b, `window.sameDocument`), "the page was not loaded anew")

	b.shows("#rows", `<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}gnp.exe`)
	b.shows("#rows", `/<img src=x onerror=alert(3)>`)
	require.Zero(t, value[int](b, `document.querySelectorAll("main script, main img").length`))
	fits(b)

	const button = `//tr[contains(., %q)]//button[. = %q]`
	const inDialog = `//dialog[@id = "node"]//*[. = %q]`
	require.Equal(t, 1, value[int](b, `document.querySelectorAll("#rows .body button.revoke").length`),
		"only beside the holder")
	require.Zero(t, value[int](b, `document.querySelectorAll("#rows button.break").length`), "beside nobody")
	b.click(button, "report", "details")
	b.shows("#node", "/locks/backup/_c_")
	b.shows("#node-data", "report ")
	fits(b)
	b.click(`//dialog[@id = "node"]//button[. = "revoke"]`)
	b.shows("#confirm", "report")
	b.shows("#confirm", "/locks/backup/_c_")
	fits(b)
	b.click(`//button[@id = "cancel"]`)
	b.await(`!document.querySelector("#confirm").open`)
	b.click(button, "billing", "revoke")
	b.shows("#confirm", "billing")
	b.click(`//button[@id = "go"]`)
	happens(t, ctx, held.Revoked(), "it is asked for")
	b.shows("#rows", "asked to give up")
	require.NoError(t, held.Release(ctx))
	next := <-waits
	require.NotNil(t, next)
	select {
	case <-next.Revoked():
		require.Fail(t, "what was cancelled was carried out")
	default:
	}
	b.await(`document.querySelector("#waiting").hidden`)
	b.click(button, "report", "details")
	b.click(inDialog, "By force …")
	b.click(`//dialog[@id = "node"]//button[. = "break"]`)
	b.click(`//button[@id = "go"]`)
	happens(t, ctx, next.Done(), "it is broken")
	b.shows("#rows", "broken, by this page")
	require.Empty(t, value[string](b, `document.querySelector("#told").textContent`))
	require.Empty(t, console(), "the page has nothing to complain about")

	server.Stop()
	b.shows("#state", "The servers cannot be asked")
	b.shows("#rows", "/<img src=x onerror=alert(3)>")
	server.Resume()
	b.shows("#state", "live")
	p.end(t)
	b.shows("#state", "zkcoord does not answer")
}

// fits checks that the page does not scroll to the side.
func fits(b tab) {
	b.t.Helper()
	require.Equal(b.t, width, value[int](b, `innerWidth`))
	require.LessOrEqual(b.t, value[int](b, `document.documentElement.scrollWidth`), width)
}

func TestThePageSaysHowARoundStandsAsInspectDoes(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	p := serve(t, ctx, servers, "--every", "200ms")
	b := browse(t, ctx)
	b.do(chromedp.Navigate(p.url))
	enter := func(name string) <-chan *doublebarrier.Member {
		barrier, err := doublebarrier.New(newWorker(t, ctx, servers, name).Client, "/batch", 2)
		require.NoError(t, err)
		in := make(chan *doublebarrier.Member, 1)
		go func() {
			defer close(in)
			if m, err := barrier.Enter(ctx); err == nil {
				in <- m
			}
		}()
		return in
	}
	first := enter("first")
	b.shows("#rows", "no round yet; 1 of 2 have come")
	members := []*doublebarrier.Member{<-enter("second"), <-first}
	b.shows("#rows", "round 1 is open: 2 of 2 inside")
	var leaving sync.WaitGroup
	for _, m := range members {
		leaving.Go(func() {
			require.NoError(t, m.Leave(ctx))
		})
	}
	leaving.Wait()
	b.shows("#rows", "round 1 is over; nobody waits")
}

// The test changes the answer that the page gets: how long somebody has held,
// and has been silent.
func TestThePageTellsSinceWhenAHolderHoldsAndIsSilent(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	holder := newWorker(t, ctx, servers, "billing")
	require.NotNil(t, <-holder.acquire(ctx, "/l"))
	b := browse(t, ctx)
	b.do(chromedp.Navigate(serve(t, ctx, servers, "--every", "200ms").url + "#open=/l"))
	b.shows("#rows", ", for ")
	require.NotContains(t, value[string](b, `document.querySelector("#rows").textContent`), "1 silent")
	value[bool](b, fmt.Sprintf(`{
		const ask = Response.prototype.json;
		Response.prototype.json = async function () {
			const answer = await ask.call(this);
			const since = answer.now - 60;
			answer.seen.silent = { %q: [answer.now - 7, 10] };
			for (const i of Object.values(answer.seen.intervals ?? {})) i.begin = [since, since];
			return answer;
		};
		true
	}`, fmt.Sprintf("%#x", holder.Info().SessionID)))
	b.shows("#rows", "1 silent")
	b.shows("#rows", "silent 7.0 s of 10 s")
}

// Another site's page, in the same browser, that has learnt the whole URL.
func TestThePageOfAnotherSiteCanNeitherReadNorAct(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	p := serve(t, ctx, servers, "--allow-break")
	held := <-newWorker(t, ctx, servers, "billing").acquire(ctx, "/l")
	require.NotNil(t, held)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>another site</title>"))
	}))
	defer site.Close()
	target, err := json.Marshal(map[string]string{
		"path": "/l", "node": held.Node(), "session": fmt.Sprintf("%#x", held.Session()),
	})
	require.NoError(t, err)
	b := browse(t, ctx)
	b.do(chromedp.Navigate(site.URL))
	for _, from := range []string{
		"", strings.Replace(site.URL, "127.0.0.1", "localhost", 1),
	} { // the same site by its address; another
		if from != "" {
			b.do(chromedp.Navigate(from))
		}
		try := func(path, options string) string {
			const code = `fetch(%q, %s).then((a) => a.type === "opaque" ? "opaque" : "read", () => "refused")`
			what, err := chromedp.Run(b.ctx,
				chromedp.Evaluate[string](fmt.Sprintf(code, p.url+path, options), chromedp.EvalAwaitPromise))
			require.NoError(t, err)
			return what
		}
		body := fmt.Sprintf(`body: %q`, target)
		require.Equal(t, "refused", try("look", `{}`))
		require.Equal(t, "refused", try("look", `{mode: "no-cors"}`), "not even without reading it")
		require.Equal(t, "refused",
			try("act/break", `{method: "POST", headers: {"Content-Type": "application/json"}, `+body+`}`))
		require.Equal(t, "refused", try("act/break", `{method: "POST", mode: "no-cors", `+body+`}`))
	}
	require.NoError(t, held.Err())
}

const root = "../../../.."

// soon bounds waits for what should happen immediately, and patience a whole
// test. They are patience with a busy machine, no promises.
const (
	soon     = 2 * time.Minute
	patience = 10 * time.Minute
)

// program is a running "zkcoord ui".
type program struct {
	url string
	cmd *exec.Cmd
}

// binary is the released command.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "zkcoord")
	build := exec.Command("go", "build", "-race=false", "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/zkcoord")
	build.Dir, build.Stderr, build.Env = root, os.Stderr, append(os.Environ(),
		"CGO_ENABLED=0") // as scripts/dist.sh has it
	if err := build.Run(); err != nil {
		panic(err)
	}
	return run()
}

// serve starts the verb ui, which ends with ctx at the latest.
func serve(t *testing.T, ctx context.Context, servers string, args ...string) *program {
	t.Helper()
	p := &program{}
	p.cmd = exec.CommandContext(ctx, binary,
		append([]string{"--json", "--zk", servers, "--connect-timeout", "5s", "ui"}, args...)...)
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var told struct{ URL string }
	require.NoError(t, json.Unmarshal(line, &told))
	p.url = told.URL
	return p
}

// end interrupts the program, which succeeds.
func (p *program) end(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait())
}

// tab is a page in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// browse starts Chromium with an empty tab.
func browse(t *testing.T, ctx context.Context) tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "Chromium is needed: make deps installs it, with what else the tests need")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(patience))
	// Chromium has no sandbox for root, nor for a user who may make no
	// namespace.
	if os.Geteuid() == 0 || exec.Command("unshare", "-U", "true").Run() != nil {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := tab{t, ctx}
	b.do(chromedp.Navigate("about:blank")) // this starts Chromium, for as long as ctx lasts
	return b
}

func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// click clicks on what an XPath names.
func (b tab) click(path string, args ...any) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(path, args...)))
}

// await waits until an expression in JavaScript is true.
func (b tab) await(expression string, args ...any) {
	b.t.Helper()
	expression = fmt.Sprintf(expression, args...)
	until := time.After(soon)
	for next := time.NewTicker(20 * time.Millisecond); !value[bool](b, expression); {
		select {
		case <-next.C:
		case <-until:
			require.FailNow(b.t, "it does not come true", "%s\non the page:\n%s", expression,
				value[string](b, `document.body.textContent`))
		}
	}
}

// shows waits until the part of the page that a selector names has a text.
func (b tab) shows(selector, text string) {
	b.t.Helper()
	b.await(`document.querySelector(%q).textContent.replace(/\s+/g, " ").includes(%q)`, selector, text)
}

func value[T any](b tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}
