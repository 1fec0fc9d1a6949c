//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheExporterTellsWhatOthersHold(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	everyRecipe(t, w)
	p := on(t, w, "exporter", "--listen", "127.0.0.1:0", below(w), w.Path("app/jobs"), below(w))
	text := scrape(t, p.line())
	for metric, value := range map[string]string{
		`up{place="` + below(w) + `"}`:                                        "1",
		`holders{kind="lock",path="` + w.Path("app/lock") + `"}`:              "1",
		`waiting{kind="lock",path="` + w.Path("app/lock") + `"}`:              "1",
		`holders{kind="rwlock",path="` + w.Path("app/shared") + `"}`:          "2",
		`holders{kind="semaphore",path="` + w.Path("app/licence") + `"}`:      "2",
		`queue_items{kind="queue",path="` + w.Path("app/jobs") + `"}`:         "2",
		`round_open{kind="doublebarrier",path="` + w.Path("app/round") + `"}`: "0",
		`oddities{kind="latch",path="` + w.Path("app/deep/er/leader") + `"}`:  "0",
		`left_out_nodes{place="` + w.Path("app/jobs") + `"}`:                  "0",
	} {
		require.Contains(t, text, "zkcoord_path_"+metric+" "+value+"\n")
	}
	require.Regexp(t, `zkcoord_path_hold_age_seconds\{kind="lock",path="[^"]*"\} \d*\.?\d*[1-9]`, text)

	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.exit())
	require.Equal(t, exitUsage, on(t, w, "exporter", "relative").exit())
}

func TestTheExporterOutlastsTheServers(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "exporter", "--connect-timeout", "1s", "--listen", "127.0.0.1:0", below(w))
	at := p.line()
	w.Embedded().Stop()
	require.Contains(t, scrape(t, at), `zkcoord_path_up{place="`+below(w)+`"} 0`+"\n")
	w.Embedded().Resume()
	zktest.Eventually(t, soon, func() bool {
		return strings.Contains(scrape(t, at), `zkcoord_path_up{place="`+below(w)+`"} 1`+"\n")
	}, "the exporter does not come back")
}

// SIGPIPE comes also when a scraper, or a server, closes a connection that is
// written to.
func TestAConnectionThatBreaksDoesNotEndTheExporter(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "exporter", "--listen", "127.0.0.1:0", below(w))
	at := p.line()
	for range 20 {
		p.signal(syscall.SIGPIPE)
		require.Contains(t, scrape(t, at), "zkcoord_path_up")
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.exit())
}

// What must not be listed is told, and is no reason to fail.
func TestTheExporterTellsWhatItMustNotList(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	contend(t, w, w.Path("l"), nil)
	_, err := w.Admin().Create(w.Path("l/secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	p := on(t, w, "exporter", "--listen", "127.0.0.1:0", w.Path("l"))
	text := scrape(t, p.line())
	require.Contains(t, text, `zkcoord_path_up{place="`+w.Path("l")+`"} 1`+"\n")
	require.Contains(t, text, `zkcoord_path_hidden_nodes{place="`+w.Path("l")+`"} 1`+"\n")
}

func scrape(t *testing.T, at string) string {
	t.Helper()
	answer, err := http.Get(at)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	return string(body)
}
