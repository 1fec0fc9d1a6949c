package browser

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe-core, which judges whether everybody can use the page.
const (
	axeVersion   = "axe-core@4.10.3"
	axeIntegrity = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg==" // SHA-512
)

// axe gets it from npm's registry.
func axe(t *testing.T) (script string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is needed, which gets axe-core")
	}
	dir := t.TempDir()
	out, err := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, axeVersion).CombinedOutput()
	require.NoError(t, err, "%s", out)
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, packed, 1)
	data, err := os.ReadFile(packed[0])
	require.NoError(t, err)
	sum := sha512.Sum512(data)
	require.Equal(t, axeIntegrity, base64.StdEncoding.EncodeToString(sum[:]))
	require.NoError(t, exec.Command("tar", "-xzf", packed[0], "-C", dir, "package/axe.min.js").Run())
	data, err = os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	require.NoError(t, err)
	return string(data)
}

// emulate has the page shown in a color scheme.
func emulate(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

func TestEverybodyCanUseThePage(t *testing.T) {
	script := axe(t)
	ctx, server := startServer(t)
	p := serve(t, ctx, server.ConnectString(), "--allow-break", "--always", "--every", "500ms")
	play(t, ctx, server.ConnectString())
	b := browse(t, ctx)
	for _, scheme := range []string{"light", "dark"} {
		b.do(chromedp.EmulateViewport(width, height), emulate(scheme), chromedp.Navigate("about:blank"))
		b.do(chromedp.Navigate(
			p.url +
				"#r=1&open=/shop/backup&open=/shop/mail&open=/shop/regions&open=/shop/reports&open=/shop/licence&open=/shop/batch&open=/shop/migrations"))
		b.await(`document.querySelectorAll("#rows table").length > 6 && !document.querySelector("#circling").hidden`)
		fits(b)
		value[bool](b, `document.querySelector("#legend").open = true`)
		value[bool](b, script+`; true`)
		judge := func(what string) {
			const run = `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join("; ")))`
			found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](run, chromedp.EvalAwaitPromise))
			require.NoError(t, err)
			require.Empty(t, found, fmt.Sprintf("%s, %s", what, scheme))
		}
		judge("the page")
		value[bool](b, `document.querySelector("#rows table button").click() ?? true`)
		b.await(`document.querySelector("#node").open`)
		judge("details of a node")
		value[bool](b, `document.querySelector("#node-break button").click() ?? true`)
		b.await(`document.querySelector("#confirm").open`)
		judge("the question")
	}
}
