//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// toldAt is what the page at a URL is told.
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
	zktest.Eventually(t, soon, func() bool {
		told := toldAt(t, at)
		if told.Seen != nil {
			seen = *told.Seen
		}
		return told.Seen != nil
	}, "the page sees nothing")
	return seen
}

// act asks for an act as the page does, and returns the error that it tells.
func act(t *testing.T, at, name, path, node, session string) (status int, told string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"path": path, "node": node, "session": session})
	require.NoError(t, err)
	order, err := http.NewRequest(http.MethodPost, at+"act/"+name, strings.NewReader(string(body)))
	require.NoError(t, err)
	u, err := url.Parse(at)
	require.NoError(t, err)
	order.Header.Set("Origin", u.Scheme+"://"+u.Host)
	order.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(order)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, parse[map[string]string](t, string(text))["error"]
}

func TestThePageIsToldWhatLsInspectAndGraphTell(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	everyRecipe(t, w)
	tangle(t, w)
	p := on(t, w, "--json", "ui", below(w))
	told := parse[map[string]string](t, p.line())
	require.Len(t, told, 1)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/$`, told["url"])
	seen := sightAt(t, told["url"])
	l := parse[listing](t, on(t, w, "--json", "ls", below(w)).line())
	require.Len(t, seen.Recipes, len(l.Recipes))
	for i, r := range l.Recipes {
		require.Equal(t, []any{r.Path, r.Kind, r.Waiting, r.Odd}, []any{seen.Recipes[i].Path, seen.Recipes[i].Kind, seen.Recipes[i].Waiting, seen.Recipes[i].Odd})
	}
	g := parse[waitGraph](t, on(t, w, "--json", "graph", below(w)).line())
	require.Len(t, seen.Waits, len(g.Waits))
	require.Len(t, seen.Circles, 1)
	require.Len(t, seen.Circles[0], 2)
	require.Equal(t, []string{}, toldAt(t, told["url"]).Acts, "a list, for the page")
	status, _ := act(t, told["url"], "break", w.Path("one"), seen.Circles[0][0].Path, seen.Circles[0][0].For)
	require.Equal(t, http.StatusForbidden, status)

	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		other := on(t, w, "ui")
		require.Regexp(t, `^http://`, other.line())
		other.signal(sig)
		require.Equal(t, 0, other.exit())
		require.Empty(t, other.stderr.String())
	}
}

func TestThePageIsToldOfServersThatCannotBeReached(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	contend(t, w, w.Path("l"), map[string]string{"_c_" + guid1 + "-lock-0000000001": "x"})
	at := on(t, w, "--connect-timeout", "5s", "ui", "--every", "100ms", below(w)).line()
	require.Len(t, sightAt(t, at).Recipes, 1)
	w.Embedded().Stop()
	zktest.Eventually(t, soon, func() bool {
		told := toldAt(t, at)
		return told.Old && told.Error != "" && len(told.Seen.Recipes) == 1
	}, "the page shows what it has seen, and says that it is old")
	w.Embedded().Resume()
	zktest.Eventually(t, soon, func() bool { return !toldAt(t, at).Old }, "the page does not come back")
}

func TestThePageRevokesAndBreaksWhatItShowedAndNothingElse(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	client := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("holder"))
	other := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("other"))
	hold := must(must(lock.New(client, w.Path("here/l"))).Acquire(t.Context()))
	elsewhere := must(must(lock.New(client, w.Path("elsewhere"))).Acquire(t.Context()))
	jobs := must(queue.New(client, w.Path("here/jobs")))
	require.NoError(t, jobs.Put(t.Context(), []byte("one")))
	item := must(jobs.Receive(t.Context()))
	at := on(t, w, "ui", "--allow-break", w.Path("here")).line()
	seen := sightAt(t, at)
	require.ElementsMatch(t, []string{"break", "revoke"}, toldAt(t, at).Acts)
	session, another := sessionName(client.SessionID()), sessionName(other.SessionID())

	for what, x := range map[string][]string{
		"another session":             {w.Path("here/l"), hold.Node(), another},
		"no such node":                {w.Path("here/l"), hold.Node() + "1", session},
		"another path":                {w.Path("elsewhere"), elsewhere.Node(), session},
		"a path that isn't":           {w.Path("here") + "/../elsewhere", elsewhere.Node(), session},
		"another session of the item": {w.Path("here/jobs"), seen.Recipes[0].Queue.First[0].Name, another},
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
	zktest.Receive(t, soon, hold.Revoked(), "it is asked for")
	status, told = act(t, at, "break", w.Path("here/l"), hold.Node(), session)
	require.Equal(t, http.StatusOK, status, told)
	zktest.Receive(t, soon, hold.Done(), "it is broken")
	status, told = act(t, at, "revoke", w.Path("here/jobs"), seen.Recipes[0].Queue.First[0].Name, session)
	require.Equal(t, http.StatusOK, status, told)
	zktest.Receive(t, soon, item.Revoked(), "it is asked for")
	require.NoError(t, item.Nack(t.Context(), 0))
}

func TestThePageIsServedOnLoopbackUnlessToldOtherwise(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0"} {
		p := on(t, w, "ui", "--listen", listen)
		require.Equal(t, exitUsage, p.exit(), listen)
		require.Contains(t, p.stderr.String(), "--allow-remote", listen)
	}
	p := on(t, w, "ui", "--allow-remote", "--listen", "0.0.0.0:0")
	u, err := url.Parse(p.line())
	require.NoError(t, err)
	sightAt(t, "http://127.0.0.1:"+u.Port()+u.Path)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.stderr.String(), "not encrypted")
	require.NotContains(t, p.stderr.String(), u.Path[1:27], "the token goes where it is wanted")

	first := on(t, w, "ui")
	u, err = url.Parse(first.line())
	require.NoError(t, err)
	taken := on(t, w, "--json", "ui", "--listen", u.Host)
	require.Equal(t, exitFailed, taken.exit())
	require.Contains(t, theObject(t, taken, "ui")["error"], "--listen")
}
