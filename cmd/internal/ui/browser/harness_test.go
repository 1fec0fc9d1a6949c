package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const root = "../../../.."

// soon bounds waits for what should happen at once, and patience a whole test.
// They are patience with a busy machine, no promises.
const (
	soon     = 30 * time.Second
	patience = 2 * time.Minute
)

// program is a running "zkcoord ui".
type program struct {
	url    string
	cmd    *exec.Cmd
	exited chan error
}

// binary is the command, as people get it.
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
	build.Dir, build.Stderr, build.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0") // as scripts/dist.sh has it
	if err := build.Run(); err != nil {
		panic(err)
	}
	return run()
}

// serve starts the verb ui.
func serve(t *testing.T, servers string, args ...string) *program {
	t.Helper()
	p := &program{exited: make(chan error, 1)}
	p.cmd = exec.Command(binary, append([]string{"--json", "--zk", servers, "--connect-timeout", "5s", "ui"}, args...)...)
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var told struct{ URL string }
	require.NoError(t, json.Unmarshal(line, &told))
	p.url = told.URL
	go func() { p.exited <- p.cmd.Wait() }()
	return p
}

// end interrupts the program, which succeeds.
func (p *program) end(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.exited:
		require.NoError(t, err)
	case <-time.After(soon):
		require.FailNow(t, "zkcoord does not end")
	}
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience))
	// It has no sandbox for root, nor for a user who may have no namespace.
	if os.Geteuid() == 0 || exec.Command("unshare", "-U", "true").Run() != nil {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := tab{t, ctx}
	b.do(chromedp.Navigate("about:blank")) // which starts it, for as long as ctx lasts
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
			require.FailNow(b.t, "it does not come true", "%s\non the page:\n%s", expression, value[string](b, `document.body.textContent`))
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
