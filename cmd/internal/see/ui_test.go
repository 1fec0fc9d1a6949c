//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// toldAt is what the server sends the page at a URL.
func toldAt(t *testing.T, at string) (told struct {
	Seen  *sight
	Old   bool
	Error string
	Acts  []string
},
) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(scrape(t, at+"look")), &told))
	return told
}

// sightAt waits until something has been seen.
func sightAt(t *testing.T, at string) (seen sight) {
	t.Helper()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		told := toldAt(t, at)
		if told.Seen != nil {
			seen = *told.Seen
		}
		return told.Seen != nil
	}, "the page sees nothing")
	return seen
}

// act asks for an act as the page does, and returns the error that it shows.
func act(t *testing.T, at, name, path, node, session string) (status int, told string) {
	t.Helper()
	body := cmdtest.Must(json.Marshal(map[string]string{"path": path, "node": node, "session": session}))
	order := cmdtest.Must(http.NewRequest(http.MethodPost, at+"act/"+name, strings.NewReader(string(body))))
	u := cmdtest.Must(url.Parse(at))
	order.Header.Set("Origin", u.Scheme+"://"+u.Host)
	order.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(order)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, cmdtest.Parse[map[string]string](t, string(text))["error"]
}

func TestThePageIsToldWhatLsInspectAndGraphTell(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.EveryRecipe(t, w)
	scene(t, w)
	told := cmdtest.Parse[map[string]string](t, cmdtest.On(t, w, "--json", "ui", cmdtest.Below(w)).Line())
	require.Len(t, told, 1)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/$`, told["url"])
	seen := sightAt(t, told["url"])
	l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Line())
	require.Len(t, seen.Recipes, len(l.Recipes))
	for _, r := range l.Recipes {
		s := seen.Recipes[r.Path]
		require.Equal(t, []any{r.Path, r.Kind, r.Waiting, r.Odd},
			[]any{s.Path, s.Kind, s.Waiting, append([]string{}, s.Odd...)})
	}
	g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Line())
	require.Len(t, seen.Waits, len(g.Waits))
	require.Empty(t, seen.Circles)
	require.Len(t, seen.Possible, 1)
	require.Len(t, seen.Possible[0], 2)
	require.Equal(t, []string{}, toldAt(t, told["url"]).Acts, "a list, for the page")
	status, _ := act(t, told["url"], "break", w.Path("billing"), seen.Possible[0][0].Path, seen.Possible[0][0].For)
	require.Equal(t, http.StatusForbidden, status)

	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		other := cmdtest.On(t, w, "ui")
		require.Regexp(t, `^http://`, other.Line())
		other.EndsBy(sig, 0)
		require.Empty(t, other.Stderr.String())
	}
}

func TestThePageIsToldOfServersThatCannotBeReached(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"})
	at := cmdtest.On(t, w, "--connect-timeout", "5s", "ui", "--every", "100ms", cmdtest.Below(w)).Line()
	require.Len(t, sightAt(t, at).Recipes, 1)
	w.Embedded().Stop()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		told := toldAt(t, at)
		return told.Old && told.Error != "" && len(told.Seen.Recipes) == 1
	}, "the page shows what it has seen, and says that it is old")
	w.Embedded().Resume()
	zktest.Eventually(t, cmdtest.Soon, func() bool { return !toldAt(t, at).Old }, "the page does not come back")
}

func TestThePageRevokesAndBreaksWhatItShowedAndNothingElse(t *testing.T) {
	w := cmdtest.World(t)
	client := cmdtest.Open(t, w, coord.WithIdentity("holder"))
	other := cmdtest.Open(t, w, coord.WithIdentity("other"))
	hold := cmdtest.Must(cmdtest.Must(lock.New(client, w.Path("here/l"))).Acquire(t.Context()))
	elsewhere := cmdtest.Must(cmdtest.Must(lock.New(client, w.Path("elsewhere"))).Acquire(t.Context()))
	jobs := cmdtest.Must(queue.New(client, w.Path("here/jobs")))
	require.NoError(t, jobs.Put(t.Context(), []byte("one")))
	item := cmdtest.Must(jobs.Receive(t.Context()))
	at := cmdtest.On(t, w, "ui", "--allow-break", w.Path("here")).Line()
	seen := sightAt(t, at)
	require.ElementsMatch(t, []string{"break", "revoke"}, toldAt(t, at).Acts)
	session, another := look.SessionName(client.Info().SessionID), look.SessionName(other.Info().SessionID)

	for what, x := range map[string][]string{
		"another session":             {w.Path("here/l"), hold.Node(), another},
		"no such node":                {w.Path("here/l"), hold.Node() + "1", session},
		"another path":                {w.Path("elsewhere"), elsewhere.Node(), session},
		"a path that isn't":           {w.Path("here") + "/../elsewhere", elsewhere.Node(), session},
		"another session of the item": {w.Path("here/jobs"), seen.Recipes[w.Path("here/jobs")].Queue.First[0].Name, another},
	} {
		for _, name := range []string{"revoke", "break"} {
			status, told := act(t, at, name, x[0], x[1], x[2])
			require.Equal(t, http.StatusConflict, status, what)
			require.NotEmpty(t, told, what)
		}
	}
	require.NoError(t, elsewhere.Err())
	require.NoError(t, hold.Err())

	status, told := act(t, at, "revoke", w.Path("here/l"), hold.Node(), session)
	require.Equal(t, http.StatusOK, status, told)
	zktest.Receive(t, cmdtest.Soon, hold.Revoked(), "it is asked for")
	status, told = act(t, at, "break", w.Path("here/l"), hold.Node(), session)
	require.Equal(t, http.StatusOK, status, told)
	zktest.Receive(t, cmdtest.Soon, hold.Done(), "it is broken")
	status, told = act(t, at, "revoke", w.Path("here/jobs"),
		seen.Recipes[w.Path("here/jobs")].Queue.First[0].Name, session)
	require.Equal(t, http.StatusOK, status, told)
	zktest.Receive(t, cmdtest.Soon, item.Revoked(), "it is asked for")
	require.NoError(t, item.Nack(t.Context(), 0))
}

func TestThePageIsServedOnLoopbackUnlessToldOtherwise(t *testing.T) {
	w := cmdtest.World(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0"} {
		cmdtest.On(t, w, "ui", "--listen", listen).Ends(term.ExitUsage, "--allow-remote")
	}
	p := cmdtest.On(t, w, "ui", "--allow-remote", "--listen", "0.0.0.0:0")
	u := cmdtest.Must(url.Parse(p.Line()))
	sightAt(t, "http://127.0.0.1:"+u.Port()+u.Path)
	p.Signal(syscall.SIGTERM)
	p.Ends(0, "not encrypted")
	require.NotContains(t, p.Stderr.String(), u.Path[1:27], "the token goes where it is wanted")

	u = cmdtest.Must(url.Parse(cmdtest.On(t, w, "ui").Line()))
	taken := cmdtest.On(t, w, "--json", "ui", "--listen", u.Host)
	require.Equal(t, term.ExitFailed, taken.Exit())
	require.Contains(t, cmdtest.TheObject(t, taken, "ui")["error"], "--listen")
}

// The slots of one client have the same session, and each number the same name.
func TestThePageLeavesASlotThatWasTakenAgain(t *testing.T) {
	w := cmdtest.World(t)
	client, holder := cmdtest.Open(t, w), cmdtest.Open(t, w)
	numbers := cmdtest.Must(slots.New(holder, w.Path("s"), 1))
	slot := cmdtest.Must(numbers.Acquire(t.Context()))
	_, shown, err := client.Get(t.Context(), slot.Node())
	require.NoError(t, err)
	require.NoError(t, slot.Release(t.Context()))
	again := cmdtest.Must(numbers.Acquire(t.Context()))
	require.Equal(t, slot.Node(), again.Node())
	var acted []look.Contender
	act := (&UIVerb{Path: "/"}).act(client, "",
		func(_ context.Context, _ *coord.Client, _ coord.Dialect, c look.Contender) error {
			acted = append(acted, c)
			return nil
		})
	target := ui.Target{
		Path: w.Path("s"), Node: slot.Node(), Session: look.SessionName(holder.Info().SessionID),
		Made: float64(momentOf(shown.Created)),
	}
	require.ErrorContains(t, act(t.Context(), target), "made anew")
	require.Empty(t, acted)
	_, shown, err = client.Get(t.Context(), again.Node())
	require.NoError(t, err)
	target.Made = float64(momentOf(shown.Created))
	require.NoError(t, act(t.Context(), target))
	require.Equal(t, again.Token(), acted[0].Token)
	before := acted[0]
	before.Token = slot.Token()
	require.NoError(t, breaking(newRecorder(nil, 0))(t.Context(), client, "", before))
	require.NoError(t, again.Err())
	_, _, err = client.Get(t.Context(), again.Node())
	require.NoError(t, err, "broken though it was taken later")
	require.NoError(t, again.Release(t.Context()))
}

// The claims on an item have the same name, whichever consumer has it.
func TestThePageLeavesAnItemThatHasChangedHands(t *testing.T) {
	w := cmdtest.World(t)
	client := cmdtest.Open(t, w)
	first, second := cmdtest.Open(t, w), cmdtest.Open(t, w)
	theirs, others := cmdtest.Must(queue.New(first, w.Path("q"))), cmdtest.Must(queue.New(second, w.Path("q")))
	for _, data := range []string{"one", "two"} {
		require.NoError(t, theirs.Put(t.Context(), []byte(data)))
	}
	items := []*queue.Item{cmdtest.Must(theirs.Receive(t.Context())), cmdtest.Must(theirs.Receive(t.Context()))}
	acted := []string{}
	act := (&UIVerb{Path: "/"}).act(client, "",
		func(ctx context.Context, _ *coord.Client, _ coord.Dialect, c look.Contender) error {
			acted = append(acted, c.Node)
			for _, item := range items {
				if item.Node() != c.Node {
					require.NoError(t, item.Nack(ctx, 0))
					items = append(items, cmdtest.Must(others.Receive(ctx)))
				}
			}
			return nil
		})
	err := act(t.Context(), ui.Target{Path: w.Path("q"), Session: look.SessionName(first.Info().SessionID)})
	require.ErrorContains(t, err, "another session")
	require.Len(t, acted, 1)
}
