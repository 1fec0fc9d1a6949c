package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// seated are the names that the page shows in a state at a double barrier.
func seated(b tab, state string) map[string]bool {
	names := map[string]bool{}
	for _, owner := range value[[]string](b, fmt.Sprintf(`[...document.querySelectorAll("#rows .body .seat[data-state=%s]")].map((s) => s.dataset.owner)`, state)) {
		name, _, _ := strings.Cut(owner, " ")
		names[name] = true
	}
	return names
}

func TestThePageShowsWhoIsInADoubleBarrierAndWhoIsMissingSinceWhen(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(width, height),
		chromedp.Navigate(serve(t, ctx, servers, "--every", "200ms").url+"#r=1&open=/shop/batch"))
	clients := map[string]worker{}
	for _, name := range []string{"load", "match", "send"} {
		clients[name] = newWorker(t, ctx, servers, name)
	}
	enter := func(name string) <-chan *doublebarrier.Member {
		barrier, err := doublebarrier.New(clients[name].Client, "/shop/batch", 3)
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
	shows := func(want map[string][]string) {
		t.Helper()
		for state, names := range want {
			is := map[string]bool{}
			for _, name := range names {
				is[name] = true
			}
			zktest.Eventually(t, soon, func() bool { return fmt.Sprint(seated(b, state)) == fmt.Sprint(is) },
				"%s: %v, on the page %v", state, names, seated(b, state))
		}
	}
	load, match := enter("load"), enter("match")
	shows(map[string][]string{"waits": {"load", "match"}, "missing": {""}, "inside": {}})
	b.shows("#rows .body table", "2 of 3 have come, 1 missing")
	send := enter("send")
	members := []*doublebarrier.Member{<-load, <-match}
	require.NotNil(t, <-send)
	shows(map[string][]string{"waits": {}, "missing": {}, "inside": {"load", "match", "send"}})

	began := time.Now()
	require.NoError(t, clients["send"].Close(ctx))
	shows(map[string][]string{"inside": {"load", "match"}, "missing": {"send"}})
	since := value[float64](b, `Number(document.querySelector("#rows .body .seat[data-state=missing]").dataset.since)`)
	require.InDelta(t, seconds(began)+seconds(time.Now()), 2*since, seconds(time.Now())-seconds(began)+0.004, "since when")
	b.shows("#rows .body table", "was in this round")
	fits(b)

	left := make(chan error, 2)
	for _, m := range members {
		go func() { left <- m.Leave(ctx) }()
	}
	for range members {
		require.Error(t, <-left, "it is missing")
	}
	shows(map[string][]string{"inside": {}, "waits": {}})
	enter("load")
	shows(map[string][]string{"waits": {"load"}})
	require.True(t, seated(b, "missing")["send"], "it was in the last round")
	require.True(t, seated(b, "missing")["match"])
	b.shows("#rows .body table", "1 of 3 have come, 2 missing")
}
