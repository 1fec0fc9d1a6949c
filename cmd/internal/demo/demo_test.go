//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestADemoWhoseOutputIsNotReadAnyMoreClearsUp(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "queue")...)
	cmd.Env = cmdtest.Environment()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.Error(t, cmd.Wait())
	require.Equal(t, term.ExitFailed, cmd.ProcessState.ExitCode())
	requireNoDemo(t, w, "queue")
}

// requireNoDemo looks whether the servers have anything of a demo's.
func requireNoDemo(t *testing.T, w *zktest.World, name string) {
	t.Helper()
	left, _, err := w.Admin().Children("/coorddemo")
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
	for _, path := range left {
		require.NotContains(t, path, name)
	}
}

func TestAllDemosRunInTurnAndTellTogether(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "all", "--json")
	zktest.Receive(t, 4*time.Minute, p.Exited, "the demos do not end")
	r := cmdtest.Parse[allResult](t, p.Gives(0))
	require.True(t, r.OK)
	for _, name := range demoNames {
		var outcome struct {
			Demo string
			OK   bool
		}
		require.NoError(t, json.Unmarshal(r.Demos[name], &outcome), name)
		require.Equal(t, name, outcome.Demo)
		require.True(t, outcome.OK, name)
	}
}

func TestAllDemosEndWhenTheyAreInterrupted(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "demo", "all")
	for !strings.Contains(p.Line(), "killed process") {
	}
	p.EndsBy(syscall.SIGTERM, term.ExitFailed)
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Contains(t, r.Error, "terminated")
	require.Len(t, r.Demos, 1, "it has gone on")
	requireNoDemo(t, w, "stock")
}

func TestADemoThatFailsDoesNotKeepTheOthersFromBeingShown(t *testing.T) {
	t.Parallel()
	// Three of them want a directory for a file, and there is none.
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "--session-timeout", "4s", "demo", "all")...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"TMPDIR=/no/such/directory"}
	p := cmdtest.StartAs(t, cmd)
	zktest.Receive(t, 4*time.Minute, p.Exited, "the demos do not end")
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, len(demoNames))
	for name, wants := range map[string]string{"stock": `"ok":false`, "batch": `"ok":false`, "election": `"ok":false`, "queue": `"ok":true`} {
		require.Contains(t, string(r.Demos[name]), wants, name)
		require.Contains(t, string(r.Demos[name]), `"demo":"`+name+`"`, name)
	}
}

func TestAllDemosTellInJSONThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "demo", "all")
	require.Equal(t, term.ExitUnavailable, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, 1, "the others would find no server either")
	require.Contains(t, string(r.Demos["stock"]), `"status":69`)
}

func TestTheDemosSpeakWellOfOneProcessAndOfNoKills(t *testing.T) {
	t.Parallel()
	files, _ := texts(t)
	for _, demo := range []struct {
		args []string
		says []string
		not  []string
	}{
		{
			[]string{"stock", "--workers", "1", "--stock", "1", "--kill", "0"},
			[]string{"1 process sells 1 unit", "The lock is /", "Every unit was sold once."},
			[]string{"SIGKILL", "apart", "though holders"},
		},
		{
			[]string{"stock", "--workers", "2", "--stock", "40", "--kill", "1", "--unsafe"},
			[]string{"2 processes sell 40 units", "Nothing keeps them apart,\nand 1 process is killed with SIGKILL"},
			[]string{"released", "the next sale came"},
		},
		{
			append([]string{"batch", "--members", "1", "--kill", "1"}, files...),
			[]string{"1 process counts the words of 5 files. It has the double barrier", "round 1: the one process is in"},
			[]string{"They meet", "all 1", "all were told"},
		},
		{
			[]string{"election", "--replicas", "1", "--kill", "0"},
			[]string{"1 process stands for election", "every few milliseconds.\n"},
			[]string{"SIGKILL"},
		},
		{
			[]string{"queue", "--producers", "1", "--consumers", "1", "--items", "1", "--kill", "0"},
			[]string{"1 process puts 1 item into", "1 other processes them one by one.\n", "Nothing was lost.\n"},
			[]string{"SIGKILL", "what the killed had"},
		},
	} {
		text := cmdtest.Start(t, append([]string{"demo"}, demo.args...)...).Output() + "\n"
		for _, says := range demo.says {
			require.Contains(t, text, says, strings.Join(demo.args, " "))
		}
		for _, not := range demo.not {
			require.NotContains(t, text, not, strings.Join(demo.args, " "))
		}
	}
}

func TestAnInterruptedQueueDemoLeavesNothing(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "demo", "queue", "--items", "5000")
		for !strings.Contains(p.Line(), "killed process") {
		}
		p.EndsBy(syscall.SIGTERM, term.ExitFailed)
		r := cmdtest.Parse[queueResult](t, p.Last())
		require.False(t, r.OK)
		require.Zero(t, r.Lost, "%+v", r)
		require.Positive(t, r.Left)
		require.Contains(t, r.Error, "terminated")
		requireNoDemo(t, w, "queue")
	})
}

func TestTheQueueDemoLosesNothingThoughConsumersAreKilled(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		r := cmdtest.Parse[queueResult](t, cmdtest.On(t, w, "--json", "demo", "queue", "--items", "80").Gives(0))
		require.True(t, r.OK)
		require.Equal(t, 80, r.Put)
		require.Equal(t, 80, r.Acked)
		require.Equal(t, 2, r.Kills)
		require.GreaterOrEqual(t, r.Redelivered, 2)
		require.Zero(t, r.Lost)
		require.Less(t, r.Seconds, time.Minute.Seconds())
	})
}

func TestTheElectionDemoNeverHasTwoLeadersThoughTheyAreKilled(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "election", "--replicas", "3", "--kill", "3")
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[electionResult](t, p.Last())
	require.True(t, r.OK)
	require.Equal(t, "election", r.Demo)
	require.Equal(t, 3, r.Replicas)
	require.Equal(t, 3, r.Kills)
	require.GreaterOrEqual(t, r.Terms, 4)
	require.Greater(t, r.Entries, r.Terms)
	require.Zero(t, r.Overlaps)
	// The killed leader's session lasted until its time-out: the kills did hit
	// leaders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestTheElectionDemoRunsOnRealServers(t *testing.T) {
	t.Parallel()
	for _, backend := range []zktest.Backend{zktest.Real, zktest.Ensemble} {
		t.Run(backend.String(), func(t *testing.T) {
			w := zktest.New(t, backend)
			text := cmdtest.On(t, w, "--json", "demo", "election", "--kill", "2").Gives(0)
			require.NotContains(t, text, "\n", "nothing but the result")
			r := cmdtest.Parse[electionResult](t, text)
			require.True(t, r.OK)
			require.Equal(t, 2, r.Kills)
		})
	}
}

func TestAnInterruptedElectionDemoFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "election").Begun()
	p.Signal(syscall.SIGINT)
	told := p.Gives(term.ExitFailed)
	require.NotContains(t, told, "0s without a leader", "nothing was measured")
	r := cmdtest.Parse[electionResult](t, told[strings.LastIndexByte(told, '\n')+1:])
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
}

func TestTheElectionDemoRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--replicas", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--replicas", "many"}} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, append([]string{"demo", "election"}, args...)...).Exit(), "%q", args)
	}
}

func TestTheTerminalsInterruptEndsADemoInGoodOrder(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "election")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := cmdtest.StartAs(t, cmd)
	for !strings.Contains(p.Line(), "leads") {
	}
	require.NoError(t, syscall.Kill(-p.Pid(), syscall.SIGINT)) // as the key does
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[electionResult](t, p.Last())
	require.Contains(t, r.Error, "interrupt")
	require.NotContains(t, r.Error, "process")
	require.Empty(t, p.Stderr.String(), "the replicas were interrupted as well")
	requireNoDemo(t, w, "election")
}

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
