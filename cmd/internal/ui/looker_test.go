package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
)

func stateOf(t *testing.T, s site) (told state) {
	t.Helper()
	answer := s.ask(get("/" + token + "/look"))
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&told))
	require.True(t, told.Whole, "a viewer that has nothing")
	told.Whole, told.Version, told.Now = false, 0, 0
	return told
}

func TestViewersShareOneLookAtATimeWhileOneAsks(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		looks, under := 0, 0
		s := open(t, Config{Every: 2 * time.Second, Look: func(context.Context) (any, error) {
			mu.Lock()
			looks++
			under++
			if under > 1 {
				t.Error("two looks at a time")
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			under--
			return looks, nil
		}})
		var viewers sync.WaitGroup
		for i := range 20 {
			viewers.Go(func() {
				time.Sleep(time.Duration(i) * 37 * time.Millisecond)
				for range 60 {
					require.NotEqual(t, "null", string(stateOf(t, s).Seen))
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		began := time.Now()
		viewers.Wait()
		most := int(time.Since(began)/(3*time.Second)) + 1 // a look takes a second, and the next begins 2 s later
		require.LessOrEqual(t, looks, most)
		require.GreaterOrEqual(t, looks, most-2)

		synctest.Wait()
		before := looks
		time.Sleep(time.Hour)
		require.Equal(t, before, looks, "nobody asks")
		stateOf(t, s)
		require.Equal(t, before+1, looks)
	})
}

func TestOldDataAreToldToBeOld(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var fails error
		var hangs atomic.Bool
		s := open(t, Config{Every: time.Second, Look: func(ctx context.Context) (any, error) {
			if hangs.Load() {
				return hang(ctx)
			}
			return "seen", fails
		}})
		told := stateOf(t, s)
		require.Equal(t, state{Seen: json.RawMessage(`"seen"`), Every: 1, Acts: []string{}}, told)

		time.Sleep(3 * time.Second)
		fails = errors.New("no server answers")
		told = stateOf(t, s)
		require.Equal(t,
			state{
				Seen: json.RawMessage(`"seen"`), Age: 3, Old: true, Error: "no server answers", Every: 1, Acts: []string{},
			}, told)

		time.Sleep(time.Second)
		fails = nil
		require.False(t, stateOf(t, s).Old)

		hangs.Store(true)
		time.Sleep(time.Second)
		began := time.Now()
		told = stateOf(t, s)
		require.Equal(t, patience, time.Since(began), "a viewer is answered while the look hangs")
		require.False(t, told.Old)
		told = stateOf(t, s)
		require.True(t, told.Old, "it takes too long")
		require.Empty(t, told.Error)
		require.JSONEq(t, `"seen"`, string(told.Seen))
		time.Sleep(10 * time.Second)
		hangs.Store(false)
		told = stateOf(t, s)
		require.False(t, told.Old, "it was given up, and another has begun")
		require.Zero(t, told.Age)
	})
}

func TestAViewerThatHasNothingIsShownAtOnceWhatWasSeenAMomentAgo(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		s := open(t, Config{Every: time.Second, Look: func(ctx context.Context) (any, error) {
			if hangs.Load() {
				return hang(ctx)
			}
			return "seen", nil
		}})
		stateOf(t, s)
		hangs.Store(true)
		time.Sleep(3 * time.Second)
		began := time.Now()
		var told state
		require.NoError(t, json.NewDecoder(s.ask(get("/"+token+"/look?has=0")).Body).Decode(&told))
		require.Zero(t, time.Since(began))
		require.JSONEq(t, `"seen"`, string(told.Seen))
		require.EqualValues(t, 3, told.Age, "how old it is is said")
		s.ask(get("/" + token + "/look?has=1"))
		require.Equal(t, patience, time.Since(began), "who has that waits for what is new")
	})
}

// hang is a look at servers that do not answer.
func hang(ctx context.Context) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNothingSeenYetIsTold(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		s := open(t, Config{Look: hang})
		told := stateOf(t, s)
		require.Equal(t, "null", string(told.Seen))
		time.Sleep(10 * time.Second)
		require.Equal(t, "null", string(stateOf(t, s).Seen))
	})
}

func TestWhatAnActHasChangedIsSeenNext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		looks := 0
		s := open(t, Config{
			Every: time.Hour, Look: func(context.Context) (any, error) { looks++; return looks, nil },
			Acts: map[string]Act{"break": func(context.Context, Target) error { return nil }},
		})
		require.Equal(t, "1", string(stateOf(t, s).Seen))
		require.Equal(t, "1", string(stateOf(t, s).Seen))
		require.Equal(t, http.StatusOK, s.ask(order("break", target)).StatusCode)
		require.Equal(t, "2", string(stateOf(t, s).Seen))
	})
}

func TestAnActIsBounded(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		s := open(t, Config{Acts: map[string]Act{"break": func(ctx context.Context, _ Target) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}})
		began := time.Now()
		require.Equal(t, http.StatusGatewayTimeout, s.ask(order("break", target)).StatusCode)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestServingEndsWithItsContextAlsoDuringALook(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	looking := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, listener,
			Config{Token: token, Every: time.Second, Within: time.Hour, Look: func(ctx context.Context) (any, error) {
				close(looking)
				return hang(ctx)
			}})
	}()
	go func() { // its answer does not matter
		if answer, err := http.Get("http://" + listener.Addr().String() + "/" + token + "/look"); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-looking
	cancel()
	require.NoError(t, <-served)
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestWhatAnActHasChangedDuringALookIsSeenNext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		looks := 0
		begun, on := make(chan struct{}), make(chan struct{})
		s := open(t, Config{
			Every: time.Hour, Look: func(context.Context) (any, error) {
				looks++
				n := looks
				if n == 1 {
					close(begun)
					<-on
				}
				return n, nil
			},
			Acts: map[string]Act{"break": func(context.Context, Target) error { return nil }},
		})
		first := make(chan struct{})
		go func() {
			defer close(first)
			s.ask(get("/" + token + "/look"))
		}()
		<-begun
		require.Equal(t, http.StatusOK, s.ask(order("break", target)).StatusCode)
		second := make(chan string)
		go func() { second <- string(stateOf(t, s).Seen) }()
		synctest.Wait()
		close(on)
		require.Equal(t, "2", <-second)
		<-first
		require.Equal(t, "2", string(stateOf(t, s).Seen), "once")
	})
}

const (
	token = "ABCDEFGHIJKLMNOP"
	host  = "127.0.0.1:4711"
)

// site is a page under test, without a network.
type site struct {
	t *testing.T
	http.Handler
}

func open(t *testing.T, c Config) site {
	t.Helper()
	if c.Look == nil {
		c.Look = func(context.Context) (any, error) { return map[string]string{"path": "/"}, nil }
	}
	if c.Every == 0 {
		c.Every = time.Second
	}
	c.Token, c.Within = token, 10*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	look := newLooker(ctx, c)
	t.Cleanup(func() { cancel(); look.join() })
	return site{t, newHandler(c, look)}
}

func (s site) ask(r *http.Request) *http.Response {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func get(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	return r
}

func TestOnlyTheURLWithTheTokenOpensThePage(t *testing.T) {
	s := open(t, Config{})
	require.Equal(t, http.StatusOK, s.ask(get("/"+token+"/")).StatusCode)
	for _, path := range []string{
		"/", "/look", "/index.html", "//", "//look", "/" + token[1:] + "/", "/" + token + "x/",
		"/" + strings.ToLower(token) + "/",
		"/x/" + token + "/", "/?token=" + token, "/act/break",
	} {
		for _, method := range []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodConnect,
		} {
			r := get(path)
			r.Method = method
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, r)
			require.Equal(t, http.StatusForbidden, answer.Code, path)
			require.NotContains(t, answer.Body.String(), token, path)
			require.NotContains(t, answer.Header().Get("Location"), token, path)
		}
	}
	without := s.ask(get("/" + token))
	require.Equal(t, "/"+token+"/", without.Header.Get("Location"), "the last / may be forgotten")
	require.Equal(t, http.StatusNotFound, s.ask(get("/"+token+"/page/page.js")).StatusCode)
}

func TestThePageGoesByNoNameThatOthersChoose(t *testing.T) {
	here, remote := open(t, Config{}), open(t, Config{Remote: true, Hosts: []string{"ops.example"}})
	for _, known := range []string{
		host, "127.0.0.1", "127.9.9.9:1", "localhost:8080", "LOCALHOST", "[::1]:8080", "[::1]", "[::ffff:127.0.0.1]:1",
	} {
		r := get("/" + token + "/")
		r.Host = known
		require.Equal(t, http.StatusOK, here.ask(r).StatusCode, known)
		require.Equal(t, http.StatusOK, remote.ask(r).StatusCode, known)
	}
	for _, beyond := range []string{"192.0.2.1:4711", "[2001:db8::1]:4711", "ops.example:4711"} {
		r := get("/" + token + "/")
		r.Host = beyond
		require.Equal(t, http.StatusForbidden, here.ask(r).StatusCode, beyond)
		require.Equal(t, http.StatusOK, remote.ask(r).StatusCode, beyond)
	}
	for _, rebound := range []string{"evil.example:4711", "127.0.0.1.evil.example", "localhost.evil.example:4711", ""} {
		r := get("/" + token + "/look")
		r.Host = rebound
		require.Equal(t, http.StatusForbidden, here.ask(r).StatusCode, rebound)
		require.Equal(t, http.StatusForbidden, remote.ask(r).StatusCode, rebound)
	}
}

const target = `{"path":"/l","node":"/l/n","session":"0x1"}`

// order is a request for an act, as the page makes it.
func order(name, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/"+token+"/act/"+name, strings.NewReader(body))
	r.Host = host
	r.Header.Set("Origin", "http://"+host)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func TestOnlyThePageItselfMayAct(t *testing.T) {
	var acted []Target
	s := open(t, Config{Acts: map[string]Act{"break": func(_ context.Context, target Target) error {
		acted = append(acted, target)
		return nil
	}}})
	require.Equal(t, http.StatusOK, s.ask(order("break", target)).StatusCode)
	older := order("break", target)
	older.Header.Del("Sec-Fetch-Site")
	require.Equal(t, http.StatusOK, s.ask(older).StatusCode, "a browser that does not say where it comes from")
	require.Equal(t,
		[]Target{{Path: "/l", Node: "/l/n", Session: "0x1"}, {Path: "/l", Node: "/l/n", Session: "0x1"}}, acted)

	for what, change := range map[string]func(*http.Request){
		"no origin":             func(r *http.Request) { r.Header.Del("Origin") },
		"another origin":        func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"an opaque origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another port":          func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:4712") },
		"another scheme":        func(r *http.Request) { r.Header.Set("Origin", "https://"+host) },
		"another site":          func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port, same IP": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"a form": func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		},
		"a form of text":           func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; application/json") },
		"no content type":          func(r *http.Request) { r.Header.Del("Content-Type") },
		"another method":           func(r *http.Request) { r.Method = http.MethodPut },
		"a method that only reads": func(r *http.Request) { r.Method = http.MethodGet },
		"what there is not":        func(r *http.Request) { r.URL.Path = "/" + token + "/act/lock" },
		"another name": func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
		},
	} {
		r := order("break", target)
		change(r)
		require.Contains(t, []int{http.StatusForbidden, http.StatusMethodNotAllowed}, s.ask(r).StatusCode, what)
	}
	for _, body := range []string{
		"", "[]", `{"path":"/l"}`, `{"path":"/l","node":"","session":"0x1"}`,
		`{"path":"/l","node":"n","session":"0x1","more":1}`,
		`{"path":"` + strings.Repeat("x", mostBody) + `","node":"n","session":"0x1"}`,
	} {
		require.Equal(t, http.StatusBadRequest, s.ask(order("break", body)).StatusCode, "%.50s", body)
	}
	require.Len(t, acted, 2, "nothing that was refused was carried out")
}

func TestWithoutActsThePageOnlyShows(t *testing.T) {
	require.Equal(t, http.StatusForbidden, open(t, Config{}).ask(order("break", target)).StatusCode)
}

func TestAnActThatFailsSaysWhy(t *testing.T) {
	s := open(t,
		Config{
			Acts: map[string]Act{"break": func(context.Context, Target) error { return errors.New("not <b>permitted</b>") }},
		})
	answer := s.ask(order("break", target))
	require.Equal(t, http.StatusConflict, answer.StatusCode)
	var told map[string]string
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&told))
	require.Equal(t, "not <b>permitted</b>", told["error"])
}

func TestEveryAnswerKeepsOtherSitesOut(t *testing.T) {
	s := open(t, Config{})
	for _, r := range []*http.Request{
		get("/" + token + "/"), get("/" + token + "/look"), get("/" + token + "/page.js"), get("/" + token + "/none"),
		get("/" + token),
		get("/"), order("break", target),
	} {
		r.Header.Set("Origin", "http://evil.example")
		h := s.ask(r).Header
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';", r.URL.Path)
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'", r.URL.Path)
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", r.URL.Path)
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), r.URL.Path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), r.URL.Path)
		require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"), r.URL.Path)
		require.Equal(t, "no-store", h.Get("Cache-Control"), r.URL.Path)
		for name := range h {
			require.False(t, strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie", name)
		}
	}
}

// Data from the servers is sent as JSON, of which nothing can be taken for
// HTML.
func TestHostileNamesAreData(t *testing.T) {
	name := "/<script>alert(1)</script>&\u202e\u2028\"'"
	s := open(t, Config{Look: func(context.Context) (any, error) { return map[string]string{"path": name}, nil }})
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, get("/"+token+"/look"))
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	require.NotContains(t, answer.Body.String(), "<")
	var told struct{ Seen struct{ Path string } }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
	require.Equal(t, name, told.Seen.Path)
}
