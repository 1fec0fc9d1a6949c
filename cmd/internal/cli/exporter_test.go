//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"io"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheExporterTellsWhatOthersHold(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	everyRecipe(t, w)
	p := on(t, w, "exporter", "--connect-timeout", "2s", "--listen", "127.0.0.1:0", below(w), w.Path("app/jobs"))
	at := p.line()
	scrape := func() string {
		answer, err := http.Get(at)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		return string(body)
	}
	text := scrape()
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
	require.Regexp(t, `zkcoord_path_hold_age_seconds\{kind="lock",path="[^"]*"\} 0\.\d*[1-9]`, text)

	w.Embedded().Stop()
	require.Contains(t, scrape(), `zkcoord_path_up{place="`+below(w)+`"} 0`+"\n")
	w.Embedded().Resume()
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.exit())
	require.Equal(t, exitUsage, on(t, w, "exporter", "relative").exit())
}
