package ui

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// door lets in a browser that was given the URL. The token in it is the only
// credential: there is no cookie that a browser would add to the requests of
// another site's page. That page can neither guess the token nor learn it from
// a referrer, nor read an answer, embed the page, or reach it by a name of its
// own that it has resolve to this machine.
type door struct {
	token  string
	hosts  []string
	remote bool
	inside http.Handler
}

// policies are headers of every answer. The page has no script, style or
// connection but its own, and can make no HTML of text.
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
		http.Error(w, "this page does not go by that name", http.StatusForbidden)
	case subtle.ConstantTimeCompare([]byte(token), []byte(d.token)) != 1:
		http.Error(w, "the URL has no token, or an old one: use the URL that was written at the start", http.StatusForbidden)
	case !found:
		http.Redirect(w, r, "/"+d.token+"/", http.StatusMovedPermanently)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !isOwn(r):
		http.Error(w, "only the page itself may ask for that", http.StatusForbidden)
	default:
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		d.inside.ServeHTTP(w, inner)
	}
}

// knows reports whether the page may be asked for by a name. Names that others
// choose, and have resolve to this machine, are not known.
func (d *door) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if slices.ContainsFunc(append([]string{"localhost"}, d.hosts...), func(known string) bool { return strings.EqualFold(known, name) }) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && (d.remote || address.Unmap().IsLoopback())
}

// isOwn reports whether the page itself makes a request that changes something:
// the browser says where it comes from, and that it is JSON, which no form can
// send.
func isOwn(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	site := r.Header.Get("Sec-Fetch-Site") // not every browser says it
	return err == nil && kind == "application/json" && (site == "" || site == "same-origin") &&
		r.Header.Get("Origin") == "http://"+r.Host
}
