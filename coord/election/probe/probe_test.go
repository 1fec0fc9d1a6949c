package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/election/probe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const T = coordtest.T

func candidate(t testing.TB, w *zktest.World, path string) *election.Election {
	t.Helper()
	e, err := election.New(coordtest.Open(t, w.ConnectString()), path)
	require.NoError(t, err)
	return e
}

func elected(t testing.TB, e *election.Election, data string) *election.Term {
	t.Helper()
	term, err := e.Campaign(coordtest.Limited(t), []byte(data))
	require.NoError(t, err)
	return term
}

// probed is what a probe was answered.
type probed struct {
	OK     bool
	Error  string
	Path   string
	Leader *struct {
		Data    string
		Base64  []byte `json:"data_base64"`
		Node    string
		Session string
		Token   int64
	}
}

func ask(t testing.TB, h http.Handler, target string) (status int, p probed) {
	t.Helper()
	w := httptest.NewRecorder()
	ctx, cancel := context.WithTimeout(t.Context(), coordtest.Soon)
	defer cancel()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), w.Body)
	require.Equal(t, w.Code == http.StatusOK, p.OK)
	return w.Code, p
}

func TestALoadBalancerFindsTheLeader(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		a, b := candidate(t, w, path), candidate(t, w, path)
		status, none := ask(t, probe.Handler(b), "/leader")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Nil(t, none.Leader)
		require.Equal(t, path, none.Path)
		require.Contains(t, none.Error, election.ErrNoLeader.Error())
		term := elected(t, a, "10.1.2.3:8080")
		for e, want := range map[*election.Election]int{a: http.StatusOK, b: http.StatusServiceUnavailable} {
			status, p := ask(t, probe.Handler(e), "/leader")
			require.Equal(t, want, status)
			require.Empty(t, p.Error)
			require.Equal(t, "10.1.2.3:8080", p.Leader.Data)
			require.Equal(t, term.Token(), p.Leader.Token)
			require.Equal(t, term.Node(), p.Leader.Node)
		}
		require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte{0xff}))
		for _, e := range []*election.Election{a, b} {
			_, p := ask(t, probe.Handler(e), "/leader")
			require.Equal(t, []byte{0xff}, p.Leader.Base64)
		}
		require.NoError(t, term.Resign(coordtest.Limited(t)))
		status, _ = ask(t, probe.Handler(a), "/leader")
		require.Equal(t, http.StatusServiceUnavailable, status)
	})
}

var errDisk = errors.New("the disk is full")

// A leader that is cut off stops saying so before another can lead.
func TestALeaderThatIsCutOffIsNotReady(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var sick atomic.Bool
		e, err := election.New(b.Open(), "/election", election.Health(10*time.Second, 3, func(context.Context) error {
			if sick.Load() {
				return errDisk
			}
			return nil
		}))
		require.NoError(b, err)
		term := elected(b, e, "leader")
		h := probe.Handler(e)
		for _, target := range []string{"/healthz", "/readyz", "/leader"} {
			status, _ := ask(b, h, target)
			require.Equal(b, http.StatusOK, status, target)
		}
		cut := b.Server.Partition(zkembed.Cut{})
		<-term.Done()
		status, p := ask(b, h, "/leader")
		require.Equal(b, http.StatusServiceUnavailable, status)
		require.NotEmpty(b, p.Error)
		time.Sleep(T)
		status, p = ask(b, h, "/readyz")
		require.Equal(b, http.StatusServiceUnavailable, status)
		require.Contains(b, p.Error, "not connected")
		status, _ = ask(b, h, "/healthz")
		require.Equal(b, http.StatusOK, status)
		sick.Store(true)
		for _, target := range []string{"/healthz", "/readyz"} {
			status, p = ask(b, h, target)
			require.Equal(b, http.StatusServiceUnavailable, status)
			require.Contains(b, p.Error, errDisk.Error())
		}
		cut.Heal()
	})
}
