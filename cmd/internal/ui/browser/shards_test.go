package browser

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// roster records who works on which key, as the functions report it.
type roster struct {
	mu       sync.Mutex
	owner    map[string]string
	draining map[string]bool // asked to end
}

// work keeps a key until drained is closed, though it is asked to end.
func (r *roster) work(name string, drained <-chan struct{}) shards.Func {
	return func(ctx context.Context, key string, _ coord.Held) error {
		r.note(func() { r.owner[key] = name })
		select {
		case <-shards.Draining(ctx):
		case <-ctx.Done():
		}
		r.note(func() { r.draining[key] = true })
		select {
		case <-drained:
		case <-ctx.Done():
		}
		r.note(func() { delete(r.owner, key); delete(r.draining, key) })
		return nil
	}
}

func (r *roster) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// of are a member's keys that it was asked to give up, or that it was not.
func (r *roster) of(name string, draining bool) []string {
	keys := []string{}
	r.note(func() {
		for key, owner := range r.owner {
			if owner == name && r.draining[key] == draining {
				keys = append(keys, key)
			}
		}
	})
	slices.Sort(keys)
	return keys
}

// cells are the keys in a column that are in a state.
func cells(b tab, member, state string) []string {
	return value[[]string](b, fmt.Sprintf(`(() => {
		const all = [...document.querySelectorAll("#rows .body .member, #rows .body .big .key")];
		const from = all.findIndex((e) => e.dataset.member === %q);
		if (from < 0) return [];
		const rest = all.slice(from + 1), to = rest.findIndex((e) => e.matches(".member"));
		return rest.slice(0, to < 0 ? rest.length : to).filter((e) => e.dataset.state === %q).map((e) => e.dataset.key).sort();
	})()`, member, state))
}

// silence has the page believe that a session is silent, or is no longer.
func silence(b tab, session string, is bool) {
	value[bool](b, fmt.Sprintf(`{
		const ask = Response.prototype.json;
		Response.prototype.json = async function () {
			const answer = await ask.call(this);
			answer.seen.silent = { %q: %t ? [answer.now - 7, 10] : null };
			return answer;
		};
		true
	}`, session, is))
}

func TestTheColumnsOfShardsShowWhoHasWhichKeyAndWhichOnesMove(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	r := &roster{owner: map[string]string{}, draining: map[string]bool{}}
	drained := make(chan struct{})
	join := func(name string) (worker, func()) {
		w := newWorker(t, ctx, servers, name)
		s, err := shards.New(w.Client, "/shop/regions", shards.ID(name), shards.Keys("east", "north", "south", "west"),
			shards.DrainTimeout(patience))
		require.NoError(t, err)
		working, leave := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { _ = s.Run(working, r.work(name, drained)) })
		t.Cleanup(func() { leave(); running.Wait() })
		return w, func() { leave(); running.Wait() }
	}
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(width, height),
		chromedp.Navigate(serve(t, ctx, servers, "--every", "200ms").url+"#r=1&open=/shop/regions"))
	shows := func(member, state string, want func() []string, n int) {
		t.Helper()
		zktest.Eventually(t, soon, func() bool { return len(want()) == n && slices.Equal(cells(b, member, state), want()) },
			"%s: %s", member, state)
	}
	first, leaveFirst := join("node-a")
	shows("node-a", "owned", func() []string { return r.of("node-a", false) }, 4)
	_, leaveSecond := join("node-b")
	moves := func() []string { return r.of("node-a", true) }
	shows("node-a", "moving", moves, 2)
	shows("node-b", "coming", moves, 2)
	shows("node-a", "owned", func() []string { return r.of("node-a", false) }, 2)
	fits(b)

	silence(b, fmt.Sprintf("%#x", first.Info().SessionID), true)
	shows("node-a", "silent", func() []string { return []string{"east", "north", "south", "west"} }, 4)
	silence(b, fmt.Sprintf("%#x", first.Info().SessionID), false)
	close(drained)
	shows("node-b", "owned", func() []string { return r.of("node-b", false) }, 2)
	require.Equal(t, []string{"node-a", "node-a"},
		value[[]string](b, `[...document.querySelectorAll("#rows .body .big .key[data-from]")].map((e) => e.dataset.from)`),
		"where they came from")
	leaveFirst()
	leaveSecond()
	shows("", "unowned", func() []string { return []string{"east", "north", "south", "west"} }, 4)
	require.Equal(t, 4, value[int](b, `document.querySelectorAll("#rows .picture .key[data-state=unowned]").length`),
		"the strip says the same")
}
