//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheStockDemoSellsEveryUnitOnceThoughHoldersAreKilled(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "3")
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.True(t, r.OK)
	require.Equal(t, "stock", r.Demo)
	require.Equal(t, 60, r.Stock)
	require.Equal(t, 4, r.Workers)
	require.Equal(t, 60, r.Sold)
	require.Zero(t, r.Left)
	require.Zero(t, r.Oversold)
	require.Equal(t, 3, r.Kills)
	require.True(t, r.Growing)
	// The killed holder's session lasted until its time-out: the kills did hit
	// holders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestTheStockDemoRunsOnRealServers(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Real)
	text := cmdtest.On(t, w, "--json", "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "2").Gives(0)
	require.NotContains(t, text, "\n", "nothing but the result")
	r := cmdtest.Parse[stockResult](t, text)
	require.True(t, r.OK)
	require.Equal(t, 60, r.Sold)
	require.Equal(t, 2, r.Kills)
}

func TestWithoutTheLockTheStockDemoTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "100", "--kill", "1", "--unsafe")
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.False(t, r.OK)
	require.Positive(t, r.Oversold)
	require.Equal(t, r.Sold+r.Left, r.Stock+r.Oversold)
}

func TestAnInterruptedDemoStillCountsAndFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "2", "--stock", "100000", "--kill", "1").Begun()
	for !strings.Contains(p.Line(), "Nothing but the lock") {
	}
	p.EndsBy(syscall.SIGINT, term.ExitFailed)
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
	require.Zero(t, r.Oversold)
}

func TestDemosHaveShortSessions(t *testing.T) {
	t.Parallel()
	st := &stage{Connection: conn.Connection{ZK: "127.0.0.1:1", SessionTimeout: time.Hour}}
	_, err := st.servers()
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, st.SessionTimeout)
}

func TestTheStockDemoRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--workers", "0"}, {"--stock", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--workers", "many"}} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, append([]string{"demo", "stock"}, args...)...).Exit(), "%q", args)
	}
}

func TestTheStockDemoSaysWhenNoServerAnswers(t *testing.T) {
	t.Parallel()
	cmdtest.InTime(t, 1500*time.Millisecond, func() time.Duration {
		begin := time.Now()
		require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "demo", "stock").Exit())
		return time.Since(begin)
	})
}

// texts makes files with known numbers of words, and returns their sum.
func texts(t *testing.T) (files []string, words int) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range []string{"one", "", "one two\nthree\tfour\n", "ünï cödé — 42", strings.Repeat("a b ", 1000)} {
		file := filepath.Join(dir, "file "+strconv.Itoa(i))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		files = append(files, file)
	}
	return files, 1 + 0 + 4 + 4 + 2000
}

func TestTheBatchDemoCountsAsASingleProcessDoesThoughOneIsKilled(t *testing.T) {
	t.Parallel()
	files, words := texts(t)
	p := cmdtest.Start(t, append([]string{"demo", "batch"}, files...)...)
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[batchResult](t, p.Last())
	require.True(t, r.OK)
	require.Equal(t, "batch", r.Demo)
	require.Equal(t, 4, r.Members)
	require.Equal(t, 5, r.Files)
	require.Equal(t, words, r.Words)
	require.Equal(t, words, r.Expected)
	require.Equal(t, 1, r.Kills)
	require.Equal(t, 2, r.Rounds)
}

func TestTheBatchDemoRunsOnRealServersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Real)
	files, words := texts(t)
	text := cmdtest.On(t, w, append([]string{"--json", "demo", "batch", "--members", "3", "--kill", "2"}, files...)...).Gives(0)
	require.NotContains(t, text, "\n", "nothing but the result")
	r := cmdtest.Parse[batchResult](t, text)
	require.True(t, r.OK)
	require.Equal(t, words, r.Words)
	require.Equal(t, 2, r.Kills)
	left, _, err := w.Admin().Children("/coorddemo")
	if err == nil {
		for _, name := range left {
			require.NotContains(t, name, "batch")
		}
	}
}

func TestWithoutFilesTheBatchDemoTakesThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "batch", "--kill", "0", "--members", "2")
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[batchResult](t, p.Last())
	require.True(t, r.OK)
	require.Greater(t, r.Files, 50)
	require.Greater(t, r.Words, 10_000)
}

func TestAnInterruptedBatchDemoFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "batch", "--members", "2")
	for !strings.Contains(p.Line(), "killed process") {
	}
	p.EndsBy(syscall.SIGINT, term.ExitFailed)
	r := cmdtest.Parse[batchResult](t, p.Last())
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
}

func TestTheBatchDemoRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--members", "0"}, {"--members", "51"}, {"--kill", "-1"}, {"--kill", "1000"}, {"/no/such/file"}, {os.TempDir()}} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, append([]string{"demo", "batch"}, args...)...).Exit(), "%q", args)
	}
}

func TestWithoutAnyTextsTheBatchDemoHasOneOfItsOwn(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(cmdtest.Coorddemo(t), "demo", "batch", "--kill", "0", "--members", "2")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	p := cmdtest.StartAs(t, cmd)
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[batchResult](t, p.Last())
	require.True(t, r.OK)
	require.Equal(t, 10, r.Files)
	require.Greater(t, r.Words, 200)
	left, err := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="))
	require.NoError(t, err)
	require.Empty(t, left, "its text is removed")
}
