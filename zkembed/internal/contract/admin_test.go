package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// administered is a server with its admin server.
type administered struct{ addr, admin string }

// ask returns what a command answers.
func (a administered) ask(t *testing.T, command string) (answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.admin+"/commands/"+command, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode, command)
	require.Equal(t, "application/json", response.Header.Get("Content-Type"), command)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer), command)
	return answer
}

// use leaves a node, and a watch of it.
func (a administered) use(t *testing.T) {
	t.Helper()
	c := connect(t, a.addr)
	c.must(t, opCreate, create("/e", nil, open, ephemeral))
	c.must(t, opGetData, watched("/e", true))
}

// within requires that all that ours tells is in theirs, and of the same type.
func within(t *testing.T, at string, ours, theirs any) {
	t.Helper()
	require.IsType(t, theirs, ours, at)
	switch own := ours.(type) {
	case map[string]any:
		for name, value := range own {
			require.Contains(t, theirs, name, at)
			within(t, at+"."+name, value, theirs.(map[string]any)[name])
		}
	case []any:
		require.Len(t, theirs, len(own), at)
		for i, value := range own {
			within(t, fmt.Sprint(at, i), value, theirs.([]any)[i])
		}
	}
}

func TestTheAdminServerTellsWhatARealOneDoes(t *testing.T) {
	zktest.Require(t, zktest.Embedded)
	zktest.Require(t, zktest.Real)
	embedded, err := zkembed.Start()
	require.NoError(t, err)
	defer func() { _ = embedded.Close() }()
	handler := httptest.NewServer(embedded.AdminHandler())
	defer handler.Close()
	port := freePort(t)
	server := zktest.RequireReal(t, zktest.WithConfig("admin.enableServer", "true"),
		zktest.WithConfig("admin.serverAddress", "127.0.0.1"), zktest.WithConfig("admin.serverPort", port))
	ours, theirs := administered{embedded.Addr(), handler.URL}, administered{server.Addr(), "http://127.0.0.1:" + port}
	ours.use(t)
	theirs.use(t)
	for command, figures := range map[string][]string{
		"ruok": nil, "isro": {"read_only"}, "is_read_only": nil, "stat": {"node_count"}, "stats": nil,
		"srvr":         {"node_count", "read_only"},
		"server_stats": nil, "cons": nil, "connections": nil, "mntr": {
			"znode_count", "ephemerals_count", "watch_count", "server_state",
		},
		"monitor": nil, "conf": nil, "config": nil, "configuration": nil, "env": nil, "envi": nil, "environment": nil,
		"wchs": {"num_connections", "num_paths", "num_total_watches"}, "watch_summary": nil, "nope": nil,
	} {
		own, other := ours.ask(t, command), theirs.ask(t, command)
		within(t, command, own, other)
		for _, name := range append(figures, "command", "error") {
			require.Equal(t, other[name], own[name], "%s of %s", name, command)
		}
	}
	embedded.Stop()
	require.Equal(t, "This ZooKeeper instance is not currently serving requests", ours.ask(t, "ruok")["error"])
}
