package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
)

// Header is the field of a request that has the token, in decimal. In a reply
// with status 412 it has the newest token of the name, if that can be read.
const Header = "Fencing-Token"

// Holder has a token while it holds, as a coord.Hold does.
type Holder interface {
	Token() int64
	Err() error // nil while the hold can be trusted
}

// NewTransport returns a transport that adds the token of the hold to each
// request. It sends nothing, and fails with the hold's error, when the hold has
// ended. A nil base is [http.DefaultTransport].
func NewTransport(hold Holder, base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{hold, base}
}

type transport struct {
	hold Holder
	base http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token := t.hold.Token()
	if err := errors.Join(t.hold.Err(), validToken(token)); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every transport does; nothing was read
		}
		return nil, fmt.Errorf("fence: %s %s was not sent: %w", r.Method, r.URL.Redacted(), err)
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, strconv.FormatInt(token, 10))
	return t.base.RoundTrip(r)
}

// NewHandler returns a handler that lets requests pass to next only with a
// token that is not older than the resource's newest one. The function returns
// the resource's name: the server decides what a request writes to, not the
// client. The store keeps the newest tokens.
//
// All requests must have a token: route requests that only read past the
// handler. Others are answered
//
//	412 Precondition Failed    the token is older than the newest one
//	428 Precondition Required  there is no token
//	400 Bad Request            the token is not one positive number
//	503 Service Unavailable    the store has failed, or the name is not valid
//
// Within this handler, writes of a name take effect in the order of their
// tokens: when a request with a newer token comes, the contexts of those that
// are being served end (with [ErrStale] as the cause), and it waits until they
// have returned. It does not wait for what next leaves running. Make one
// handler for all requests that write a resource. Processes that share a store
// refuse older tokens, too, but do not wait for requests that another process
// serves: there, write to a database under [SQL.Guard].
func NewHandler(store Store, name func(*http.Request) string, next http.Handler) (http.Handler, error) {
	if store == nil || name == nil || next == nil {
		return nil, errors.New("fence: a handler needs a store, a function that names the resource, and a next handler")
	}
	return &handler{store: store, name: name, next: next, gate: gate{newest: map[string]*party{}}}, nil
}

type handler struct {
	store Store
	name  func(*http.Request) string
	next  http.Handler
	gate  gate
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := r.Header.Values(Header)
	if len(fields) == 0 {
		http.Error(w, "the request needs a "+Header, http.StatusPreconditionRequired)
		return
	}
	token, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || len(fields) > 1 || validToken(token) != nil {
		http.Error(w, Header+" is not one positive number", http.StatusBadRequest)
		return
	}
	h.serve(w, r, h.name(r), token)
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, name string, token int64) {
	p, err := h.gate.enter(name, token)
	if err != nil {
		h.refuse(w, r, name, err)
		return
	}
	defer h.gate.leave(name, p)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(p.over, func() { cancel(context.Cause(p.over)) })()
	select {
	case <-p.alone:
		err = h.store.Raise(ctx, name, token)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.refuse(w, r, name, err)
		return
	}
	h.next.ServeHTTP(w, r.WithContext(ctx))
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, name string, err error) {
	if !errors.Is(err, ErrStale) {
		level := slog.LevelError
		if errors.Is(r.Context().Err(), context.Canceled) { // its client has hung up
			level = slog.LevelInfo
		}
		slog.Log(r.Context(), level, "a request cannot be fenced", "name", name, "error", err)
		http.Error(w, "the fencing token cannot be checked", http.StatusServiceUnavailable)
		return
	}
	if newest, err := h.store.Newest(r.Context(), name); err == nil {
		w.Header().Set(Header, strconv.FormatInt(newest, 10))
	}
	http.Error(w, ErrStale.Error(), http.StatusPreconditionFailed)
}
