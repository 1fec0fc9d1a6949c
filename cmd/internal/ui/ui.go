// Package ui serves one page, on which a browser shows what Config.Look sees
// again and again. It knows nothing of ZooKeeper. The page reads a node through
// Config.Node, and changes something only through Config.Acts.
//
// Other users of the machine, and the pages of other sites in the same browser,
// are kept out: see door.
package ui

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what the page shows and does, and who may see it.
type Config struct {
	Token string // the first segment of every path
	// Hosts are names by which browsers may ask for the page, besides localhost
	// and loopback addresses.
	Hosts  []string
	Remote bool                                       // browsers may ask by any IP address
	Look   func(context.Context) (any, error)         // what the page shows, as JSON
	Acts   map[string]Act                             // by their names
	Node   func(context.Context, Target) (any, error) // the data of a node, as JSON
	Every  time.Duration                              // how often to look, while a viewer asks
	Always bool                                       // look also while nobody asks
	Within time.Duration                              // bounds each look and each act
}

// Act does something to the contender that the target names, and to no other
// that came in its place.
type Act func(context.Context, Target) error

// Target is a contender as the page showed it.
type Target struct {
	Path    string `json:"path"`
	Node    string `json:"node"`
	Session string `json:"session"`
	// Made is when its node was made, in Unix seconds by the servers' clock; 0:
	// not known.
	Made float64 `json:"made,omitempty"`
}

func (t Target) isWhole() bool { return t.Path != "" && t.Node != "" && t.Session != "" }

var errTarget = errors.New("path, node and session are needed")

const (
	requestWithin = 10 * time.Second       // how long a request may take to arrive
	endWithin     = 500 * time.Millisecond // bounds the shutdown
)

// Serve answers requests until ctx ends. Requests under way then get endWithin
// to end, and Serve returns when no look is under way any more.
func Serve(ctx context.Context, listener net.Listener, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	look := newLooker(ctx, c)
	defer look.join()
	defer cancel()
	server := &http.Server{
		Handler: newHandler(c, look), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadTimeout: requestWithin, WriteTimeout: requestWithin + c.Within + patience, IdleTimeout: requestWithin + 2*c.Every,
		MaxHeaderBytes: 16 << 10,
	}
	look.start() // for the first viewer
	look.looks.Go(look.keep)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		farewell, cancel := context.WithTimeout(context.Background(), endWithin)
		defer cancel()
		if server.Shutdown(farewell) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if stop() {
		return err // it ended by an error, before ctx did
	}
	<-ended
	return nil
}

//go:embed page
var page embed.FS

// files are the parts of the page and their types, which do not depend on the
// machine's table of types.
var files = map[string]string{
	"index.html": "text/html; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	"page.js": "text/javascript; charset=utf-8", "shape.js": "text/javascript; charset=utf-8",
}

func newHandler(c Config, look *looker) http.Handler {
	mux := http.NewServeMux()
	for name, kind := range files {
		data, err := page.ReadFile("page/" + name)
		if err != nil {
			panic(err) // it is part of the program
		}
		at := "GET /" + name
		if name == "index.html" {
			at = "GET /{$}"
		}
		mux.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, kind, data) })
	}
	mux.HandleFunc("GET /look", func(w http.ResponseWriter, r *http.Request) {
		has, err := strconv.Atoi(r.FormValue("has"))
		if err != nil {
			has = -1
		}
		answerJSON(w, http.StatusOK, look.state(r.Context(), has))
	})
	mux.HandleFunc("GET /node", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), c.Within)
		defer cancel()
		target := Target{Path: r.FormValue("path"), Node: r.FormValue("node"), Session: r.FormValue("session")}
		if c.Node == nil || !target.isWhole() {
			answerJSON(w, http.StatusBadRequest, map[string]string{"error": errTarget.Error()})
			return
		}
		told, err := c.Node(ctx, target)
		if err != nil {
			answerJSON(w, http.StatusConflict, map[string]string{"error": err.Error()})
			return
		}
		answerJSON(w, http.StatusOK, told)
	})
	mux.HandleFunc("POST /act/{name}", func(w http.ResponseWriter, r *http.Request) {
		status, err := c.act(r)
		told := map[string]string{}
		if err != nil {
			told["error"] = err.Error()
		}
		look.renew()
		answerJSON(w, status, told)
	})
	return &door{token: c.Token, hosts: c.Hosts, remote: c.Remote, inside: mux}
}

// mostBody is how long the body of a request may be, in bytes.
const mostBody = 64 << 10

func (c Config) act(r *http.Request) (status int, err error) {
	act, known := c.Acts[r.PathValue("name")]
	if !known {
		return http.StatusForbidden, errors.New("this page only shows (--allow-break lets it act)")
	}
	var target Target
	body := json.NewDecoder(http.MaxBytesReader(nil, r.Body, mostBody))
	body.DisallowUnknownFields()
	if err := body.Decode(&target); err != nil {
		return http.StatusBadRequest, err
	}
	if !target.isWhole() {
		return http.StatusBadRequest, errTarget
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.Within)
	defer cancel()
	switch err := act(ctx, target); {
	case err == nil:
		return http.StatusOK, nil
	case ctx.Err() != nil:
		return http.StatusGatewayTimeout, err
	default:
		return http.StatusConflict, err
	}
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is made of strings, numbers and JSON
	}
	answer(w, status, "application/json", data)
}

func answer(w http.ResponseWriter, status int, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(data) // a browser that has gone needs no answer
}

// door lets in a browser that was given the URL. The token in the URL is the
// only credential: there is no cookie that a browser would add to the requests
// of another site's page. Another site's page cannot guess the token or learn
// it from a referrer. Nor can it read an answer, embed the page, or reach it by
// a name that the site resolves to this machine.
type door struct {
	token  string
	hosts  []string
	remote bool
	inside http.Handler
}

// policies are headers of every answer. They keep out scripts, styles and
// connections that are not the page's own, and text that would become HTML.
var policies = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cache-Control":                "no-store",
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range policies {
		w.Header().Set(name, value)
	}
	token, path, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !d.knows(r.Host):
		http.Error(w, "this page has another host name", http.StatusForbidden)
	case subtle.ConstantTimeCompare([]byte(token), []byte(d.token)) != 1:
		http.Error(w, "the URL has no token, or an old one: use the URL that was printed at the start", http.StatusForbidden)
	case !found:
		http.Redirect(w, r, "/"+d.token+"/", http.StatusMovedPermanently)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !isOwn(r):
		http.Error(w, "only the page itself may make this request", http.StatusForbidden)
	default:
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		d.inside.ServeHTTP(w, inner)
	}
}

// knows reports whether the page may be requested by this host. It does not
// know a name that another site chooses and resolves to this machine.
func (d *door) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if slices.ContainsFunc(append([]string{"localhost"}, d.hosts...), func(known string) bool {
		return strings.EqualFold(known, name)
	}) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && (d.remote || address.Unmap().IsLoopback())
}

// isOwn reports whether a request that changes something is the page's own: the
// browser says where the request comes from, and that its body is JSON, which
// no form can send.
func isOwn(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	site := r.Header.Get("Sec-Fetch-Site") // not every browser sends it
	return err == nil && kind == "application/json" && (site == "" || site == "same-origin") &&
		r.Header.Get("Origin") == "http://"+r.Host
}
