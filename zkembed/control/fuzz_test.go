package control

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zkcoord/zkcoord/zkembed"
)

// Whatever is asked is answered in JSON, and what is refused changes nothing.
func FuzzTheControlAnswersAndWhatItRefusesChangesNothing(f *testing.F) {
	for _, path := range []string{
		"/T/faults", "/T/faults/1", "/T/sessions/0x1", "/T/sessions/0x1/connection", "/T/nodes?path_prefix=/", "//T",
		"/faults",
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			f.Add(method, path, `{"do":"lose_reply","ops":["create"],"path_prefix":"/a","times":1}`)
		}
	}
	for kind := range uses {
		f.Add(http.MethodPost, "/T/faults",
			`{"do":"`+string(kind)+`","by":"1ms","error":"NoNode","direction":"to_client","skip":1,"sessions":[1]}`)
	}
	server, err := zkembed.Start(zkembed.WithAddr(""))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	door := Handler(server, "T")
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		r, err := http.NewRequest(method, "http://127.0.0.1", strings.NewReader(body)) //nolint:noctx // it ends at once
		if err != nil {
			return nil
		}
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		before := ask(http.MethodGet, "/T/faults", "").Body.String()
		w := ask(method, path, body)
		if w == nil {
			return // no such method
		}
		if after := ask(http.MethodGet, "/T/faults", "").Body.String(); w.Code >= 400 && after != before {
			t.Errorf("%d, and the faults change from %s to %s", w.Code, before, after)
		}
		redirected := w.Code >= 300 && w.Code < 400 // a path that is not clean
		if !redirected && method != http.MethodHead && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d with %q, which is no JSON", w.Code, w.Body)
		}
		if ask(http.MethodDelete, "/T/faults", "").Code != http.StatusOK {
			t.Error("the faults do not end")
		}
		if server.TurnedAway() > 0 {
			t.Error("a client was turned away")
		}
	})
}
