package browser

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "take the picture in the documents anew")

const (
	picture     = root + "/docs/ui.png"
	mostPicture = 150 << 10 // bytes
)

func TestThePictureInTheDocumentsIsSmall(t *testing.T) {
	if *update {
		takePicture(t)
	}
	info, err := os.Stat(picture)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(mostPicture))
}

// takePicture takes one of two locks in a circle and of another that is waited
// for.
func takePicture(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	servers := startServer(t).ConnectString()
	p := serve(t, servers, "--allow-break", "--every", "200ms")
	job, report := newWorker(t, ctx, servers, "job"), newWorker(t, ctx, servers, "report")
	under := map[string]context.Context{}
	for path, holder := range map[string]worker{"/locks/a": job, "/locks/b": report, "/backup": job} {
		under[path] = (<-holder.acquire(ctx, path)).Context(ctx)
	}
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(960, 740), chromedp.Navigate(p.url))
	job.acquire(under["/locks/a"], "/locks/b")
	b.shows("#waits", "job ")
	report.acquire(under["/locks/b"], "/locks/a")
	b.shows("#circles", "report")
	newWorker(t, ctx, servers, "cron").acquire(ctx, "/backup")
	b.shows("#waits", "cron ")
	require.Equal(t, 5, value[int](b, `document.querySelectorAll("#waits .row").length`), "each wait once: three below a hold of the circle, and one below another")
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(picture, data, 0o644))
}
