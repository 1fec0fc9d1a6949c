// Package promtest has a real Prometheus scrape programs and evaluate alert
// rules, on loopback, with each minute of the rules shortened to a second.
package promtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Prometheus is a server that runs until the end of the test.
type Prometheus struct {
	t  testing.TB
	at string
}

const (
	evaluated = "200ms"
	// scraped is the time between two scrapes, and the most that one may take:
	// a scrape that fails ends what its samples had been so for, and on a
	// machine under load a look at everything takes a second.
	scraped = "2s"
	within  = 2 * time.Minute // for something to be seen on such a machine
)

// Tool returns the path of a program of Debian's package prometheus. It skips
// the test where the servers are to be embedded ones only.
func Tool(t testing.TB, name string) string {
	t.Helper()
	zktest.Require(t, zktest.Real)
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	found := filepath.Join(cache, "zkcoord", name)
	require.FileExists(t, found, "make deps fetches it")
	return found
}

// Start runs Prometheus with the rules in a file. It scrapes the targets,
// HOST:PORT/PATH each.
func Start(t testing.TB, rules string, targets ...string) *Prometheus {
	t.Helper()
	program, dir := Tool(t, "prometheus"), t.TempDir()
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/rules.yml", []byte(Shortened(string(text))), 0o600))
	var config strings.Builder
	fmt.Fprintf(&config,
		"global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[2]s}\nrule_files: [rules.yml]\nscrape_configs:\n", scraped, evaluated)
	for i, target := range targets {
		address, path, _ := strings.Cut(target, "/")
		fmt.Fprintf(&config, "  - {job_name: program%d, metrics_path: /%s, static_configs: [{targets: [%q]}]}\n", i,
			path, address)
	}
	require.NoError(t, os.WriteFile(dir+"/prometheus.yml", []byte(config.String()), 0o600))

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Prometheus{t, free.Addr().String()}
	require.NoError(t, free.Close())
	log, err := os.Create(dir + "/log")
	require.NoError(t, err)
	server := exec.Command(program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+p.at, "--log.level=warn")
	server.Stdout, server.Stderr = log, log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("prometheus: %s", said)
		}
	})
	return p
}

var (
	span      = regexp.MustCompile(`(for: |\[|offset )(\d+)([smh])`)
	threshold = regexp.MustCompile(`(_seconds(?:\{[^}]*\})? > )(\d+)`)
)

// Shortened makes each minute of rules a second, also in thresholds for ages.
func Shortened(rules string) string {
	rules = threshold.ReplaceAllStringFunc(rules, func(found string) string {
		part := threshold.FindStringSubmatch(found)
		seconds, _ := strconv.Atoi(part[2]) // what the expression finds is a number
		return part[1] + strconv.FormatFloat(float64(seconds)/60, 'f', -1, 64)
	})
	return span.ReplaceAllStringFunc(rules, func(found string) string {
		part := span.FindStringSubmatch(found)
		d, _ := time.ParseDuration(part[2] + part[3]) // what the expression finds is one
		return fmt.Sprintf("%s%dms", part[1], (d / 60).Milliseconds())
	})
}

// Query returns the labels and values of what an expression yields now; ok is
// false as long as Prometheus does not answer.
func (p *Prometheus) Query(expr string) (found []Sample, ok bool) {
	answer, err := http.Get("http://" + p.at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, false
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusServiceUnavailable { // it starts
		return nil, false
	}
	var told struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	require.NoError(p.t, json.Unmarshal(body, &told), string(body))
	require.Equal(p.t, "success", told.Status, told.Error)
	for _, r := range told.Data.Result {
		found = append(found, Sample{r.Metric, fmt.Sprint(r.Value[1])})
	}
	return found, true
}

// Sample is a value and its labels.
type Sample struct {
	Labels map[string]string
	Value  string
}

// Awaits waits until an expression yields something.
func (p *Prometheus) Awaits(expr string) (found []Sample) {
	p.t.Helper()
	zktest.Eventually(p.t, within, func() bool {
		found, _ = p.Query(expr)
		return len(found) > 0
	}, "Prometheus does not see %s", expr)
	return found
}

// Fires waits until an alert fires.
func (p *Prometheus) Fires(alert string) []Sample {
	p.t.Helper()
	return p.Awaits(fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, alert))
}

// Firing are the names of the alerts that fire now.
func (p *Prometheus) Firing() (names []string) {
	p.t.Helper()
	found, ok := p.Query(`count by (alertname) (ALERTS{alertstate="firing"})`)
	require.True(p.t, ok, "Prometheus does not answer")
	for _, s := range found {
		names = append(names, s.Labels["alertname"])
	}
	return names
}
