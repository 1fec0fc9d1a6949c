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
	for path, holder := range map[string]worker{"/locks/a": job, "/locks/b": report, "/backup": job} {
		require.NotNil(t, <-holder.acquire(ctx, path))
	}
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(960, 740), chromedp.Navigate(p.url))
	job.acquire(ctx, "/locks/b")
	b.shows("#waits", "job ")
	report.acquire(ctx, "/locks/a")
	b.shows("#circles", "report")
	newWorker(t, ctx, servers, "cron").acquire(ctx, "/backup")
	b.shows("#waits", "cron ")
	require.Equal(t, 4, value[int](b, `document.querySelectorAll("#waits .row").length`), "each wait once, below a session of the circle")
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(picture, data, 0o644))
}
