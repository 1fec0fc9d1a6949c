package fence_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

var _ fence.Holder = (*coord.Hold)(nil)

func byPath(r *http.Request) string { return r.URL.Path }

// request makes one with the values of the token's field.
func request(path string, tokens ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPut, path, strings.NewReader("x"))
	r.Header[fence.Header] = tokens
	return r
}

func status(h http.Handler, path string, tokens ...string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(path, tokens...))
	return w.Code
}

func handler(t *testing.T, store fence.Store, next http.HandlerFunc) http.Handler {
	t.Helper()
	h, err := fence.NewHandler(store, byPath, next)
	require.NoError(t, err)
	return h
}

func TestAHandlerRefusesOlderTokensOfTheSameName(t *testing.T) {
	served := 0
	h := handler(t, fence.Memory(), func(http.ResponseWriter, *http.Request) { served++ })
	for i, step := range []struct {
		path   string
		tokens []string
		want   int
	}{
		{"/a", []string{"41"}, 200},
		{"/a", []string{"41"}, 200},
		{"/a", []string{"42"}, 200},
		{"/a", []string{"41"}, 412},
		{"/b", []string{"41"}, 200},
		{"/a", nil, 428},
		{"/a", []string{"0"}, 400},
		{"/a", []string{"-43"}, 400},
		{"/a", []string{"9223372036854775808"}, 400},
		{"/a", []string{"43x"}, 400},
		{"/a", []string{"42", "43"}, 400},
		{"/a", []string{"42"}, 200},
	} {
		before := served
		require.Equal(t, step.want, status(h, step.path, step.tokens...), "%d: %v", i, step)
		require.Equal(t, step.want == 200, served > before, "%d: %v", i, step)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request("/a", "7"))
	require.Equal(t, "42", w.Header().Get(fence.Header), "the newest")
}

// sick is a store that fails.
type sick struct{ fence.Store }

func (sick) Raise(context.Context, string, int64) error { return errors.New("disk full") }

// logged captures what is logged from level on until the test is over.
func logged(t *testing.T, level slog.Level) *bytes.Buffer {
	var text bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level})))
	return &text
}

func TestAHandlerWhoseStoreFailsLetsNothingPass(t *testing.T) {
	log := logged(t, slog.LevelError)
	h := handler(t, sick{fence.Memory()}, func(http.ResponseWriter, *http.Request) { t.Error("it passed") })
	require.Equal(t, http.StatusServiceUnavailable, status(h, "/a", "41"))
	require.Contains(t, log.String(), `error="disk full"`)

	nameless, err := fence.NewHandler(fence.Memory(), func(*http.Request) string { return "" }, h)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, status(nameless, "/a", "41"))

	_, err = fence.NewHandler(nil, byPath, h)
	require.Error(t, err)
}

// The check and the write are one step: a request that passed the check, and
// has not written yet, is over before a newer one passes.
func TestANewerRequestWaitsForTheOlderOnesThatAreServed(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var written []string
		release := make(chan struct{})
		h := handler(t, fence.Memory(), func(_ http.ResponseWriter, r *http.Request) {
			token := r.Header.Get(fence.Header)
			if token == "41" {
				<-r.Context().Done()
				require.ErrorIs(t, context.Cause(r.Context()), fence.ErrStale)
				<-release
			}
			written = append(written, token)
		})
		codes := make(chan int, 4)
		go func() { codes <- status(h, "/a", "41") }()
		synctest.Wait()
		go func() { codes <- status(h, "/a", "42") }()
		synctest.Wait()
		require.Equal(t, 412, status(h, "/a", "41"), "a newer one waits")
		go func() { codes <- status(h, "/a", "43") }() // 42 gives up its place
		synctest.Wait()
		require.Equal(t, 412, <-codes)
		require.Empty(t, codes, "43 waits, too")
		require.Equal(t, 200, status(h, "/b", "1"), "another name does not")
		close(release)
		require.Equal(t, 200, <-codes)
		require.Equal(t, 200, <-codes)
		require.Equal(t, []string{"1", "41", "43"}, written)
		require.Equal(t, 200, status(h, "/a", "43"))
		require.Equal(t, 412, status(h, "/a", "42"))
	})
}

func TestAClientThatLeavesGivesUpItsPlace(t *testing.T) {
	log := logged(t, slog.LevelError)
	virtual.Test(t, func(t *testing.T) {
		inside, release := make(chan struct{}), make(chan struct{})
		h := handler(t, fence.Memory(), func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get(fence.Header) == "41" {
				close(inside)
				<-release
			}
		})
		first := make(chan int)
		go func() { first <- status(h, "/a", "41") }()
		<-inside
		gone, leave := context.WithCancel(t.Context())
		second := httptest.NewRecorder()
		over := make(chan struct{})
		go func() {
			defer close(over)
			h.ServeHTTP(second, request("/a", "42").WithContext(gone))
		}()
		synctest.Wait()
		leave()
		<-over
		require.Equal(t, http.StatusServiceUnavailable, second.Code)
		require.Empty(t, log.String())
		close(release)
		require.Equal(t, 200, <-first)
		require.Equal(t, 200, status(h, "/a", "42"))
	})
}

// The place of a handler that panics is free for the next.
func TestAPanicOfAHandlerLeavesNobodyWaiting(t *testing.T) {
	h := handler(t, fence.Memory(), func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get(fence.Header) == "41" {
			panic(http.ErrAbortHandler)
		}
	})
	require.Panics(t, func() { status(h, "/a", "41") })
	require.Equal(t, 200, status(h, "/a", "42"))
}

// held is a hold with a token.
type held struct {
	token int64
	err   error
}

func (h held) Token() int64 { return h.token }
func (h held) Err() error   { return h.err }

// carrier is a transport that tells what it was given.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// body tells whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestATransportSendsTheTokenOfItsHold(t *testing.T) {
	var got []string
	base := carrier(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Values(fence.Header)
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	r := request("http://localhost/a", "7")
	_, err := fence.NewTransport(held{token: 42}, base).RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, []string{"42"}, got)
	require.Equal(t, "7", r.Header.Get(fence.Header), "the caller's request is as it was")
}

func TestATransportSendsNothingWithoutAHold(t *testing.T) {
	base := carrier(func(*http.Request) (*http.Response, error) {
		t.Error("it was sent")
		return nil, io.EOF
	})
	for hold, want := range map[held]string{
		{token: 42, err: coord.ErrLost}: coord.ErrLost.Error(),
		{token: 0}:                      "no fencing token",
	} {
		b := &body{Reader: strings.NewReader("x")}
		r, err := http.NewRequest(http.MethodPut, "http://localhost/a", b)
		require.NoError(t, err)
		_, err = fence.NewTransport(hold, base).RoundTrip(r)
		require.ErrorContains(t, err, want)
		require.True(t, b.closed)
	}
}
