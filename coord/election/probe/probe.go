// Package probe answers probes and load balancers about a candidate of
// [election.Election], by HTTP.
package probe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord/election"
)

// Handler answers probes and load balancers, about the process whose candidate
// e is, in JSON:
//
//   - GET /healthz: 200 if the check of [election.Health] succeeds, which is called
//     for that, and always without one; otherwise 503.
//   - GET /readyz: 200 if, in addition, the client is connected to a server: the
//     process leads, or can be elected. A standby is ready.
//   - GET /leader: 200 if this process leads, otherwise 503, which lets a load
//     balancer find the leader. The answer says who leads in either case.
//
// As Kubernetes calls them: /readyz is the readiness probe. None of the three
// is a liveness probe: a check of something that all replicas share, such as a
// database, fails for all at once, and a liveness probe would restart them all;
// a leader whose check fails resigns by itself. To have a replica restarted
// whose own process is stuck, probe something that only it answers for.
//
// The process knows without a request whether it leads, and stops saying so
// before another can lead; an answer may be old when it arrives. To find out
// who else leads costs what [election.Election.Leader] does, and ends with the
// request's context.
//
// For a handler in a larger tree use [http.StripPrefix]. The answers contain
// the leader's data: serve them only to those who may see them.
func Handler(e *election.Election) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		err := e.Healthy(r.Context())
		answer{OK: err == nil, Error: text(err)}.write(w)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := e.Ready(r.Context())
		answer{OK: err == nil, Error: text(err)}.write(w)
	})
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, r *http.Request) {
		leader, leads := e.Leading()
		var err error
		if !leads {
			leader, err = e.Leader(r.Context())
		}
		answer{leads, text(err), e.Path(), inJSON(leader)}.write(w)
	})
	return mux
}

// answer is what a probe is told.
type answer struct {
	OK     bool        `json:"ok"`
	Error  string      `json:"error,omitempty"`
	Path   string      `json:"path,omitempty"`
	Leader *leaderJSON `json:"leader,omitempty"`
}

// leaderJSON is a leader, whose data are in base 64 if they are no text.
type leaderJSON struct {
	Data    string `json:"data,omitempty"`
	Base64  []byte `json:"data_base64,omitempty"`
	Node    string `json:"node"`
	Session string `json:"session"`
	Token   int64  `json:"token"`
}

// inJSON returns nil for no leader.
func inJSON(l election.Leader) *leaderJSON {
	if l.None() {
		return nil
	}
	shown := &leaderJSON{Node: l.Node, Session: fmt.Sprintf("0x%x", uint64(l.Session)), Token: l.Token}
	if utf8.Valid(l.Data) {
		shown.Data = string(l.Data)
	} else {
		shown.Base64 = l.Data
	}
	return shown
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !a.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(a)
}
