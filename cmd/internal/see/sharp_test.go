//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// lookAt has a recorder see a look at all paths.
func (r *recorder) lookAt(t *testing.T, path string) {
	t.Helper()
	began := time.Now()
	stamps := r.stamps(t.Context())
	found, err := look.Surveyed{Most: 1000, Path: path}.Look(t.Context(), r.client)
	require.NoError(t, err)
	r.see(found, stamps, look.NewAddressBook(nil), began)
}

// the calls a function while nothing is added to the history.
func (r *recorder) the(f func(h *history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.history)
}

// No look at all paths is made after the first.
func TestWhatHappensBetweenTwoLooksIsKnownByWatches(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRecorder(cmdtest.Open(t, w), time.Hour)
		at := w.Path("l")
		first := cmdtest.Must(
			cmdtest.Must(lock.New(cmdtest.Open(t, w, coord.WithIdentity("first")), at)).Acquire(t.Context()))
		r.lookAt(t, w.Path(""))
		var watching sync.WaitGroup
		watching.Go(func() { (&watcher{recorder: r, gone: map[string]bool{}}).keep(ctx) })
		defer watching.Wait()
		defer cancel()
		still := func() (then time.Time) { // the page knows that nothing has changed until then
			then = time.Now()
			zktest.Eventually(t, cmdtest.Soon, func() (is bool) {
				r.the(func(h *history.History) { is = h.Seen(at).After(then) })
				return is
			}, "it does not look")
			return then
		}
		var all []history.Interval
		remembers := func(n int) {
			t.Helper()
			zktest.Eventually(t, cmdtest.Soon, func() bool {
				all = nil
				r.the(func(h *history.History) {
					for _, i := range h.Intervals() {
						if !i.Nobody || !i.Lasts() {
							all = append(all, *i)
						}
					}
				})
				return len(all) == n && (n%2 == 1) == all[n-1].Lasts()
			}, "%d intervals: %v", n, all)
		}
		heldAt := still()
		require.NoError(t, first.Release(t.Context()))
		released := time.Now()
		still()
		freeAt := still()
		second := cmdtest.Must(
			cmdtest.Must(lock.New(cmdtest.Open(t, w, coord.WithIdentity("second")), at)).Acquire(t.Context()))
		granted := time.Now()
		remembers(3)
		require.NoError(t, second.Release(t.Context()))
		zktest.Eventually(t, cmdtest.Soon, func() (is bool) {
			r.the(func(h *history.History) {
				is = true
				for _, i := range h.Intervals() {
					is = is && (i.Nobody || !i.Lasts())
				}
			})
			return is
		}, "its end is not seen")
		require.Contains(t, all[0].Owner, "first")
		require.False(t, all[0].End.From.Before(heldAt), "its end is known from when it held last")
		require.False(t, all[0].End.To.Before(heldAt))
		require.True(t, all[1].Nobody)
		require.False(t, all[1].AtLooks, "nobody held it for sure")
		require.True(t, all[1].Begin.From.Before(released))
		require.False(t, all[1].End.From.Before(freeAt), "the gap is known to have lasted")
		require.Contains(t, all[2].Owner, "second")
		require.False(t, all[2].Begin.From.Before(freeAt))
		require.True(t, all[2].Begin.From.Before(granted))
	})
}

func TestAPageWatchesOnlyWhileThereAreLooks(t *testing.T) {
	r := newRecorder(nil, time.Second)
	require.Empty(t, r.watched())
	r.looked, r.worth = time.Now(), []string{"/l"}
	require.Equal(t, []string{"/l"}, r.watched())
	r.looked = r.looked.Add(-time.Minute)
	require.Empty(t, r.watched())
}

func TestLooksAtOnePathAndAtAllAreAddedInTheirOrder(t *testing.T) {
	r, began := newRecorder(nil, time.Second), time.Now()
	holds := func(owner string) history.Path {
		return history.Path{Kind: "lock", Holders: []history.Holder{{Node: "/l/" + owner, Token: 1, Owner: owner}}}
	}
	surveyed := func(owner string) *look.Survey {
		return &look.Survey{
			Path: "/", Recipes: []look.Report{
				{
					Path: "/l", Kind: "lock", Contenders: []look.Contender{{Holds: true, Node: "/l/" + owner, Token: 1, Owner: owner}},
				},
			},
		}
	}
	r.see(surveyed("first"), nil, look.NewAddressBook(nil), began)
	require.False(t, r.sharpen("/l", holds("before"), began), "it began before that had ended")
	later := r.looked.Add(time.Millisecond)
	require.True(t, r.sharpen("/l", holds("second"), later))
	r.see(surveyed("first"), nil, look.NewAddressBook(nil), began.Add(time.Microsecond)) // it has read the path before
	var owners []string
	for _, i := range r.history.Intervals() {
		owners = append(owners, i.Owner)
	}
	require.Equal(t, []string{"first", "second"}, owners)
}
