package control

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/zkembed"
)

// What a server takes.
const (
	mostFaults    = 10_000
	mostFollowers = 16       // each has a tree of its own
	mostBody      = 64 << 10 // bytes of a request
)

// SessionInfo is a live session.
type SessionInfo struct {
	Session    Session        `json:"session"`
	Timeout    Duration       `json:"timeout"`
	Connected  bool           `json:"connected"`
	Remote     string         `json:"remote,omitzero"` // the client's address while connected
	Watches    int            `json:"watches"`
	Ephemerals []string       `json:"ephemerals"`
	Requests   map[string]int `json:"requests"` // by operation
}

// Watches are all clients' watches.
type Watches struct {
	Count int      `json:"count"` // one for each connection, path and kind
	Paths []string `json:"paths"`
}

// Node is a node of the tree. Its data are in Data, or in Base64 if they are no
// text.
type Node struct {
	Path    string  `json:"path"`
	Kind    string  `json:"kind"`
	Data    string  `json:"data,omitzero"`
	Base64  []byte  `json:"base64,omitzero"`
	Session Session `json:"session,omitzero"` // of an ephemeral node
	Version int32   `json:"version"`
	Czxid   int64   `json:"czxid"`
	Mzxid   int64   `json:"mzxid"`
}

// Handler answers for a server. The token is the first segment of every path.
func Handler(s *zkembed.Server, token string) http.Handler {
	h := &handler{server: s, acting: map[int]acting{}}
	mux := http.NewServeMux()
	for route, answer := range map[string]func(*http.Request) (any, error){
		"POST /faults":                     h.inject,
		"GET /faults":                      h.list,
		"GET /faults/{id}":                 h.one,
		"DELETE /faults/{id}":              h.remove,
		"DELETE /faults":                   h.removeAll,
		"GET /sessions":                    h.sessions,
		"DELETE /sessions/{id}":            h.onSession(s.ExpireSession),
		"DELETE /sessions/{id}/connection": h.onSession(s.DropConn),
		"DELETE /connections": func(*http.Request) (any, error) {
			return map[string]int{"cut": s.DropConns()}, nil
		},
		"GET /requests": func(*http.Request) (any, error) { return byName(s.Counts()), nil },
		"GET /watches":  func(*http.Request) (any, error) { return Watches{s.WatchCount(), some(s.Watched())}, nil },
		"GET /nodes":    h.nodes,
		"/":             func(*http.Request) (any, error) { return nil, errNoRoute },
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
			if err != nil {
				write(w, nil, refuse(http.StatusRequestEntityTooLarge, "the body: %w", err))
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			v, err := h.locked(answer, r)
			write(w, v, err)
		})
	}
	return entrance{token, mux}
}

// refusal is an error with its status.
type refusal struct {
	status int
	error
}

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Errorf(format, args...)}
}

var errNoRoute = refusal{
	http.StatusNotFound, errors.New("there is no such route; the package zkembed/control lists them"),
}

func write(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if known := (refusal{}); errors.As(err, &known) {
			status = known.status
		}
		v = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// entrance lets in whoever has the token. Other sites' pages cannot guess it,
// and their browsers say where a request comes from, or use a name of theirs.
type entrance struct {
	token  string
	inside http.Handler
}

func (e entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !isLocal(r.Host):
		write(w, nil, refuse(http.StatusForbidden, "the control has no name but loopback addresses and localhost"))
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		write(w, nil, refuse(http.StatusForbidden, "the control is not for browsers"))
	case e.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(e.token)) != 1:
		write(w, nil,
			refuse(http.StatusForbidden, "the URL has no token, or an old one: use the URL that was written at the start"))
	default:
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		e.inside.ServeHTTP(w, inner)
	}
}

func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	address, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// handler is what the routes share. mu is held while one answers.
type handler struct {
	server *zkembed.Server

	mu     sync.Mutex
	last   int
	states []State // Struck is looked up
	acting map[int]acting
}

func (h *handler) locked(answer func(*http.Request) (any, error), r *http.Request) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return answer(r)
}

func (h *handler) inject(r *http.Request) (any, error) {
	var f Fault
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, fmt.Errorf("the body is no fault in JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("the body is more than one fault in JSON")
	}
	if err := errors.Join(f.validate(), h.full(f)); err != nil {
		return nil, err
	}
	begun, err := f.begin(h.server)
	if err != nil {
		return nil, err
	}
	h.last++
	h.states = append(h.states, State{ID: h.last, Fault: f})
	h.acting[h.last] = begun
	return h.now(State{ID: h.last, Fault: f}), nil
}

// full refuses what cannot be in force, too.
func (h *handler) full(f Fault) error {
	followers, live := 0, h.server.Sessions()
	for _, s := range h.states {
		switch {
		case s.Do == Stop && f.Do == Stop:
			return refuse(http.StatusConflict, "the server is stopped already, by fault %d", s.ID)
		case s.Do == Lag, s.Do == Isolate:
			followers++
		}
	}
	for _, id := range f.Sessions {
		if !slices.ContainsFunc(live, func(s zkembed.SessionInfo) bool { return Session(s.ID) == id }) {
			return refuse(http.StatusNotFound, "sessions: there is no session %v", id)
		}
	}
	if len(h.states) >= mostFaults || followers >= mostFollowers && (f.Do == Lag || f.Do == Isolate) {
		return refuse(http.StatusConflict, "%d faults are in force, and %d of them are followers; end some",
			len(h.states), followers)
	}
	return nil
}

// now is a fault with how often it has struck.
func (h *handler) now(s State) State {
	s.Struck = h.acting[s.ID].struck()
	return s
}

func (h *handler) find(r *http.Request) (int, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	i := slices.IndexFunc(h.states, func(s State) bool { return s.ID == id })
	if err != nil || i < 0 {
		return 0, refuse(http.StatusNotFound, "no fault %q is in force", r.PathValue("id"))
	}
	return i, nil
}

func (h *handler) one(r *http.Request) (any, error) {
	i, err := h.find(r)
	if err != nil {
		return nil, err
	}
	return h.now(h.states[i]), nil
}

func (h *handler) list(*http.Request) (any, error) {
	all := make([]State, len(h.states))
	for i, s := range h.states {
		all[i] = h.now(s)
	}
	return all, nil
}

func (h *handler) remove(r *http.Request) (any, error) {
	i, err := h.find(r)
	if err != nil {
		return nil, err
	}
	s := h.states[i]
	h.acting[s.ID].end()
	ended := h.now(s)
	delete(h.acting, s.ID)
	h.states = slices.Delete(h.states, i, i+1)
	return ended, nil
}

func (h *handler) removeAll(*http.Request) (any, error) {
	ended := make([]State, len(h.states))
	for i, s := range h.states {
		h.acting[s.ID].end()
		ended[i] = h.now(s)
	}
	h.states = nil
	clear(h.acting)
	return ended, nil
}

func (h *handler) sessions(*http.Request) (any, error) {
	all := []SessionInfo{}
	for _, s := range h.server.Sessions() {
		all = append(all, SessionInfo{
			Session: Session(s.ID), Timeout: Duration(s.Timeout), Connected: s.Connected, Remote: s.Remote,
			Watches: s.Watches, Ephemerals: some(s.Ephemerals), Requests: byName(h.server.SessionCounts(s.ID)),
		})
	}
	return all, nil
}

// onSession does something to the session that the path names.
func (h *handler) onSession(do func(id int64) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := ParseSession(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if err := do(int64(id)); err != nil {
			return nil, refusal{http.StatusNotFound, err}
		}
		return map[string]Session{"session": id}, nil
	}
}

func (h *handler) nodes(r *http.Request) (any, error) {
	all, prefix := []Node{}, r.URL.Query().Get("path_prefix")
	for _, n := range h.server.Nodes() {
		if !strings.HasPrefix(n.Path, prefix) {
			continue
		}
		found := Node{
			Path: n.Path, Kind: n.Kind.String(), Session: Session(n.Stat.EphemeralOwner), Version: n.Stat.Version,
			Czxid: n.Stat.Czxid, Mzxid: n.Stat.Mzxid,
		}
		if utf8.Valid(n.Data) {
			found.Data = string(n.Data)
		} else {
			found.Base64 = n.Data
		}
		all = append(all, found)
	}
	return all, nil
}

func byName(counts zkembed.Counts) map[string]int {
	named := map[string]int{}
	for op, n := range counts {
		named[op.String()] = n
	}
	return named
}

// some is a list that is never null.
func some(list []string) []string { return append([]string{}, list...) }
