//go:build !fuzz

package control_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
	"github.com/zkcoord/zkcoord/zkembed/control"
)

// lasting is a session timeout that no test reaches.
const lasting = 40 * time.Second

const token = "TOKEN"

// stage is a server with its control, and two clients: faults are meant for the
// first, and must not touch the other.
type stage struct {
	*control.Client
	server       *zkembed.Server
	handler      http.Handler
	url          string
	meant, other *zk.Conn
}

func newStage(t *testing.T) stage {
	t.Helper()
	server, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	handler := control.Handler(server, token)
	controls := httptest.NewServer(handler)
	t.Cleanup(controls.Close)
	url := controls.URL + "/" + token
	return stage{
		control.NewClient(url), server, handler, url,
		zktest.Connect(t, server.ConnectString(), lasting), zktest.Connect(t, server.ConnectString(), lasting),
	}
}

func id(c *zk.Conn) control.Session { return control.Session(c.SessionID()) }

func create(c *zk.Conn, path string) error {
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// request is one in plain HTTP, as of curl.
func request(t *testing.T, method, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestEveryFaultStrikesTheSessionItNamesIsCountedAndEnds(t *testing.T) {
	const soon = control.Duration(50 * time.Millisecond)
	for _, f := range []control.Fault{
		{Do: control.Drop},
		{Do: control.Hang, Times: 1},
		{Do: control.LoseReply, Ops: []string{"exists"}},
		{Do: control.Delay, By: soon, PathPrefix: "/w"},
		{Do: control.DelayReply, By: soon, Skip: 1},
		{Do: control.CarryOutLate, By: soon},
		{Do: control.ReplyError, Error: "NoAuth"},
		{Do: control.DelayEvents, By: soon},
		{Do: control.Cut},
		{Do: control.Cut, Direction: "to_server"},
		{Do: control.Cut, Direction: "to_client"},
		{Do: control.Lag, By: soon},
		{Do: control.Isolate},
		{Do: control.Isolate, Direction: "to_leader"},
	} {
		t.Run(string(f.Do)+f.Direction, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			f.Sessions = []control.Session{id(s.meant)}
			begun, err := s.Inject(t.Context(), f)
			require.NoError(t, err)
			require.Zero(t, begun.Struck)
			all, err := s.Faults(t.Context())
			require.NoError(t, err)
			require.Equal(t, f, all[0].Fault)

			// The client library has a data race where it connects again and
			// watches something.
			ask := func(path string) { _, _, _ = s.meant.Exists(path) }
			if f.Do == control.DelayEvents {
				ask = func(path string) { _, _, _, _ = s.meant.ExistsW(path) }
			}
			enough, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for i := 0; ; i++ {
					select {
					case <-enough:
						return
					default:
						ask(fmt.Sprintf("/w%d", i))
					}
				}
			}()
			for i, struck := 0, 0; struck == 0; i++ {
				require.NoError(t, create(s.other, fmt.Sprintf("/w%d", i)), "it is not meant")
				now, err := s.Fault(t.Context(), begun.ID)
				require.NoError(t, err)
				struck = now.Struck
			}
			last, err := s.Remove(t.Context(), begun.ID)
			require.NoError(t, err)
			require.Positive(t, last.Struck)
			_, err = s.Fault(t.Context(), begun.ID)
			require.ErrorContains(t, err, "no fault")
			if f.Do != control.DelayEvents {
				require.NoError(t, s.DropConn(t.Context(), id(s.meant))) // a request that hangs does so until then
			}
			close(enough)
			zktest.Receive(t, lasting/2, ended, "the client is served again")
		})
	}
}

func TestAStoppedServerTurnsClientsAwayUntilItIsStarted(t *testing.T) {
	s := newStage(t)
	before := id(s.meant)
	down, err := s.Inject(t.Context(), control.Fault{Do: control.Stop})
	require.NoError(t, err)
	_, err = s.Inject(t.Context(), control.Fault{Do: control.Stop})
	require.ErrorContains(t, err, "stopped already, by fault 1")
	zktest.Eventually(t, lasting/2, func() bool {
		now, err := s.Fault(t.Context(), down.ID)
		require.NoError(t, err)
		return now.Struck > 0
	}, "a client is turned away")
	_, err = s.RemoveAll(t.Context())
	require.NoError(t, err)
	zktest.Eventually(t, lasting/2, func() bool { return s.meant.State() == zk.StateHasSession }, "the client is back")
	require.Equal(t, before, id(s.meant))
}

func TestSessionsExpireAndLoseConnectionsWhileTheServerTellsWhatItHas(t *testing.T) {
	s := newStage(t)
	_, err := s.meant.Create("/e", []byte("mine"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = s.other.Create("/binary", []byte{0xff}, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.NoError(t, s.DropConn(t.Context(), id(s.other)))
	var gone <-chan zk.Event
	zktest.Eventually(t, lasting/2, func() bool {
		_, _, gone, err = s.other.ExistsW("/e")
		return err == nil
	}, "it comes back")

	sessions, err := s.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	require.Equal(t, []string{"/e"}, sessions[0].Ephemerals)
	require.Equal(t, 1, sessions[0].Requests["create"])
	require.Equal(t, 1, sessions[1].Watches)
	watches, err := s.Watches(t.Context())
	require.NoError(t, err)
	require.Equal(t, control.Watches{Count: 1, Paths: []string{"/e"}}, watches)
	nodes, err := s.Nodes(t.Context(), "/e")
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	require.Equal(t, "mine", nodes[0].Data)
	require.Equal(t, id(s.meant), nodes[0].Session)
	nodes, err = s.Nodes(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []byte{0xff}, nodes[0].Base64)
	requests, err := s.Requests(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, requests["create"])

	require.NoError(t, s.ExpireSession(t.Context(), id(s.meant)))
	require.Equal(t, zk.EventNodeDeleted, zktest.Receive(t, lasting/2, gone, "the event").Type)
	require.ErrorContains(t, s.ExpireSession(t.Context(), 1), "no session 0x1")
	cut, err := s.DropConns(t.Context())
	require.NoError(t, err)
	require.Positive(t, cut)
}

// refused are bodies of POST /faults, and what is said of them. No client is
// meant.
var refused = map[string]string{
	``: "no fault in JSON", `{`: "no fault in JSON", `[]`: "no fault in JSON", `null`: "do",
	`{"do":1}`:                                   "no fault in JSON",
	`{"do":"drop"} {"do":"drop"}`:                "more than one",
	`{"do":"drop","op":["create"]}`:              "unknown field",
	`{"do":"explode"}`:                           `no fault is called "explode"`,
	`{"do":"drop","ops":["creat"]}`:              `no operation is called "creat"`,
	`{"do":"drop","ops":[]}`:                     "empty",
	`{"do":"drop","sessions":[]}`:                "empty",
	`{"do":"drop","sessions":["x"]}`:             "want 0x1",
	`{"do":"drop","sessions":["0x1"]}`:           "no session 0x1",
	`{"do":"drop","sessions":[1]}`:               "no session 0x1",
	`{"do":"drop","by":"1s"}`:                    "by: a fault",
	`{"do":"drop","times":-1}`:                   "negative",
	`{"do":"drop","skip":1e99}`:                  "no fault in JSON",
	`{"do":"delay"}`:                             "needs it",
	`{"do":"delay","by":5}`:                      "no fault in JSON",
	`{"do":"delay","by":"-5s"}`:                  "negative",
	`{"do":"delay","by":"5"}`:                    "unit",
	`{"do":"error"}`:                             "needs it",
	`{"do":"error","error":"Nope"}`:              `no error is called "Nope"`,
	`{"do":"cut","direction":"up"}`:              `has no "up"`,
	`{"do":"cut","ops":["create"]}`:              "ops: a fault",
	`{"do":"cut","new_connections":"explode"}`:   "none of hang",
	`{"do":"lag"}`:                               "needs it",
	`{"do":"isolate","direction":"to_server"}`:   `has no "to_server"`,
	`{"do":"stop","sessions":["0x1"]}`:           "sessions: a fault",
	strings.Repeat(`{"do":`, 20_000):             "too large",
	`{"do":"` + strings.Repeat("x", 1000) + `"}`: "no fault is called",
}

func TestAFaultThatCannotBeIsRefusedWithTheReason(t *testing.T) {
	s := newStage(t)
	for body, says := range refused {
		status, answer := request(t, http.MethodPost, s.url+"/faults", body)
		require.GreaterOrEqual(t, status, 400, body)
		require.Contains(t, strings.ReplaceAll(answer, `\"`, `"`), says, body)
	}
	all, err := s.Faults(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestOnlyWhoHasTheTokenIsLetInAndNoBrowser(t *testing.T) {
	s := newStage(t)
	root := strings.TrimSuffix(s.url, "/"+token)
	const stop = `{"do":"stop"}`
	for name, ask := range map[string]func() (int, string){
		"no token":      func() (int, string) { return request(t, http.MethodPost, root+"/faults", stop) },
		"another token": func() (int, string) { return request(t, http.MethodPost, root+"/tOKEN/faults", stop) },
		"an empty one":  func() (int, string) { return request(t, http.MethodPost, root+"//faults", stop) },
		"a part of it":  func() (int, string) { return request(t, http.MethodDelete, root+"/TOKE/connections", "") },
		"another name": func() (int, string) {
			return request(t, http.MethodPost, s.url+"/faults", stop, "Host", "evil.example")
		},
		"a page": func() (int, string) {
			return request(t, http.MethodPost, s.url+"/faults", stop, "Origin", "http://evil.example")
		},
		"a link": func() (int, string) {
			return request(t, http.MethodGet, s.url+"/nodes", "", "Sec-Fetch-Site", "cross-site")
		},
	} {
		status, answer := ask()
		require.Equal(t, http.StatusForbidden, status, name)
		require.Contains(t, answer, `"error"`, name)
		require.NotContains(t, answer, token, name)
	}
	none := httptest.NewServer(control.Handler(s.server, ""))
	defer none.Close()
	status, _ := request(t, http.MethodPost, none.URL+"//faults", stop)
	require.Equal(t, http.StatusForbidden, status, "an empty token lets nobody in")
	require.NoError(t, create(s.other, "/served"))
}

func TestTheErrorsOfTheClientDoNotTellTheToken(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL + "/" + token
	_, err := control.NewClient(url).Faults(t.Context())
	require.ErrorContains(t, err, "404")
	server.Close()
	_, err = control.NewClient(url).Faults(t.Context())
	require.ErrorContains(t, err, "refused")
	require.NotContains(t, err.Error(), token)
}

func TestTenThousandFaultsDoNotTouchClientsThatAreNotMeant(t *testing.T) {
	s := newStage(t)
	kinds := []control.Fault{
		{Do: control.Drop},
		{Do: control.Hang},
		{Do: control.LoseReply},
		{Do: control.ReplyError, Error: "NoNode"},
		{Do: control.Delay, By: control.Duration(time.Hour)},
		{Do: control.DelayEvents, By: control.Duration(time.Hour)},
		{Do: control.Cut},
		{Do: control.CarryOutLate, By: control.Duration(time.Hour)},
	}
	begin := func(i int) (int, string) {
		f := kinds[i%len(kinds)]
		if f.Do == control.Cut || i%2 == 0 {
			f.Sessions = []control.Session{id(s.meant)}
		} else {
			f.PathPrefix = "/meant"
		}
		body, err := json.Marshal(f)
		require.NoError(t, err)
		r, w := httptest.NewRequest(http.MethodPost, s.url+"/faults", bytes.NewReader(body)), httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	events := 0
	for i := range 10_000 {
		status, answer := begin(i)
		require.Equal(t, http.StatusOK, status, answer)
		if i%1000 == 0 {
			path := fmt.Sprintf("/other%d", i)
			_, _, there, err := s.other.ExistsW(path)
			require.NoError(t, err)
			require.NoError(t, create(s.other, path))
			require.Equal(t, zk.EventNodeCreated, zktest.Receive(t, lasting/2, there, "the event").Type)
			events++
		}
	}
	require.Equal(t, 10, events)
	status, answer := begin(0)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, answer, "10000 faults are in force")
	ended, err := s.RemoveAll(t.Context())
	require.NoError(t, err)
	require.Len(t, ended, 10_000)
	require.NoError(t, create(s.other, "/meant"))
}

func TestFollowersAreBounded(t *testing.T) {
	s := newStage(t)
	lag := control.Fault{Do: control.Lag, By: control.Duration(time.Millisecond), Sessions: []control.Session{id(s.meant)}}
	for range 16 {
		_, err := s.Inject(t.Context(), lag)
		require.NoError(t, err)
	}
	_, err := s.Inject(t.Context(), lag)
	require.ErrorContains(t, err, "16 of them are followers")
}

func TestMain(m *testing.M) { zktest.Main(m) }
