package zkembed

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// adminCommands are the commands of ZooKeeper's admin server, with the names
// that it knows them by, too. They run with mu held.
var adminCommands = map[string]struct {
	aliases []string
	run     func(*Server) map[string]any
}{
	"ruok":          {nil, func(*Server) map[string]any { return map[string]any{} }},
	"is_read_only":  {[]string{"isro"}, func(*Server) map[string]any { return map[string]any{"read_only": false} }},
	"server_stats":  {[]string{"srvr"}, (*Server).adminServerStats},
	"stats":         {[]string{"stat"}, (*Server).adminStats},
	"connections":   {[]string{"cons"}, func(s *Server) map[string]any { return s.adminConns(true) }},
	"monitor":       {[]string{"mntr"}, (*Server).adminMonitor},
	"configuration": {[]string{"conf", "config"}, (*Server).adminConfiguration},
	"environment":   {[]string{"env", "envi"}, (*Server).adminEnvironment},
	"watch_summary": {[]string{"wchs"}, (*Server).adminWatchSummary},
}

// AdminHandler answers as ZooKeeper's admin server does, at /commands and
// below, for health checks: ruok, stats, monitor and the like, in JSON. Figures
// that this server does not have are left out, and latencies are 0.
func (s *Server) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /commands", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for _, name := range slices.Sorted(maps.Keys(adminCommands)) {
			_, _ = w.Write([]byte(`<a href="/commands/` + name + `">` + name + "</a>\n<br/>\n"))
		}
	})
	mux.HandleFunc("GET /commands/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(s.admin(r.PathValue("name")))
	})
	return mux
}

// admin answers a command. A real server says by 200, too, that it cannot.
func (s *Server) admin(name string) map[string]any {
	for primary, c := range adminCommands {
		if name != primary && !slices.Contains(c.aliases, name) {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stopped || s.closed {
			return map[string]any{"command": primary, "error": "This ZooKeeper instance is not currently serving requests"}
		}
		answer := c.run(s)
		answer["command"], answer["error"] = primary, nil
		return answer
	}
	return map[string]any{"command": name, "error": "Unknown command: " + name}
}

func (s *Server) adminServerStats() map[string]any {
	received, sent, alive := s.traffic()
	return map[string]any{
		"version": version, "read_only": false, "node_count": s.nodeCount(),
		"server_stats": map[string]any{
			"packets_received": received, "packets_sent": sent, "server_state": "standalone",
			"last_processed_zxid": s.leader.tree.zxid, "outstanding_requests": 0, "num_alive_client_connections": alive,
			"avg_latency": 0.0, "max_latency": 0, "min_latency": 0, "uptime": time.Since(s.started).Milliseconds(),
		},
	}
}

func (s *Server) adminStats() map[string]any {
	answer := s.adminServerStats()
	maps.Copy(answer, s.adminConns(false))
	return answer
}

// adminConns are the connections, by TLS apart from others, with their sessions
// if these are wanted.
func (s *Server) adminConns(sessions bool) map[string]any {
	lists := map[bool][]map[string]any{false: {}, true: {}}
	for _, c := range s.sortedConns() {
		shown := map[string]any{
			"remote_socket_address": c.remote, "outstanding_requests": 0, "packets_received": c.recv, "packets_sent": c.sent,
		}
		if sessions && c.session != nil {
			shown["session_id"], shown["session_timeout"] = c.session.id, c.session.timeout.Milliseconds()
			shown["established"] = c.since.UnixMilli()
		}
		lists[c.secure()] = append(lists[c.secure()], shown)
	}
	return map[string]any{"connections": lists[false], "secure_connections": lists[true]}
}

func (s *Server) adminMonitor() map[string]any {
	answer := map[string]any{}
	for _, kv := range s.monitored() {
		answer[kv.key] = kv.value
	}
	return answer
}

func (s *Server) adminConfiguration() map[string]any {
	port, _ := strconv.Atoi(s.port())
	return map[string]any{
		"client_port": port, "tick_time": s.cfg.tick.Milliseconds(), "server_id": 0,
		"min_session_timeout": s.cfg.minTime.Milliseconds(), "max_session_timeout": s.cfg.maxTime.Milliseconds(),
	}
}

func (s *Server) adminEnvironment() map[string]any {
	host, _ := os.Hostname()
	return map[string]any{
		"zookeeper.version": version, "host.name": cmp.Or(host, "localhost"), "os.name": runtime.GOOS,
		"os.arch": runtime.GOARCH,
	}
}

func (s *Server) adminWatchSummary() map[string]any {
	watching, paths := map[*conn]struct{}{}, map[string]struct{}{}
	for _, v := range s.views() {
		for _, table := range []*watchTable{v.watches.data, v.watches.child} {
			for c := range table.conns {
				watching[c] = struct{}{}
			}
			for p := range table.paths {
				paths[p] = struct{}{}
			}
		}
	}
	return map[string]any{"num_connections": len(watching), "num_paths": len(paths), "num_total_watches": s.watchCount()}
}
