//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
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
	"github.com/zkcoord/zkcoord/cmd/internal/demo/batch"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/market"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/stock"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/succession"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestADemoWhoseOutputIsNotReadAnyMoreClearsUp(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "queue")...)
	cmd.Env = cmdtest.Environment()
	out := cmdtest.Must(cmd.StdoutPipe())
	require.NoError(t, cmd.Start())
	cmdtest.Must(bufio.NewReader(out).ReadString('\n'))
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

// result is the last line of a demo, which ends with this status.
func result[R any](t *testing.T, p *cmdtest.Process, status int) R {
	t.Helper()
	p.Ends(status)
	return cmdtest.Parse[R](t, p.Last())
}

func TestAllDemosRunInTurnAndTellTogether(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "all", "--json")
	zktest.Receive(t, 4*time.Minute, p.Exited, "the demos do not end")
	r := result[allResult](t, p, 0)
	require.True(t, r.OK)
	require.Len(t, r.Demos, 4)
	for name := range r.Demos {
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
	p.Signal(syscall.SIGTERM)
	r := result[allResult](t, p, term.ExitFailed)
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
	r := result[allResult](t, p, term.ExitFailed)
	require.False(t, r.OK)
	require.Len(t, r.Demos, 4)
	for name, wants := range map[string]string{"stock": `"ok":false`, "batch": `"ok":false`, "election": `"ok":false`, "queue": `"ok":true`} {
		require.Contains(t, string(r.Demos[name]), wants, name)
		require.Contains(t, string(r.Demos[name]), `"demo":"`+name+`"`, name)
	}
}

func TestAllDemosTellInJSONThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "demo", "all")
	r := result[allResult](t, p, term.ExitUnavailable)
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

func TestTheTerminalsInterruptEndsADemoInGoodOrder(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "election")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := cmdtest.StartAs(t, cmd)
	for !strings.Contains(p.Line(), "leads") {
	}
	require.NoError(t, syscall.Kill(-p.Pid(), syscall.SIGINT)) // as the key does
	r := result[electionResult](t, p, term.ExitFailed)
	require.Contains(t, r.Error, "interrupt")
	require.NotContains(t, r.Error, "process")
	require.Empty(t, p.Stderr.String(), "the replicas were interrupted as well")
	requireNoDemo(t, w, "election")
}

func TestDemosHaveShortSessions(t *testing.T) {
	t.Parallel()
	st := &stage{Connection: conn.Connection{ZK: "127.0.0.1:1", SessionTimeout: time.Hour}}
	_, err := st.servers()
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, st.SessionTimeout)
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

func TestAnInterruptedDemoStillCountsAndFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ demo, after, says, never string }{
		{"stock --workers 2 --stock 100000 --kill 1", "Nothing but the lock", `"oversold":0`, "Every unit was sold once"},
		{"batch --members 2", "killed process", `"demo":"batch"`, "Nobody added up"},
		{"election", "", `"demo":"election"`, "0s without a leader"}, // nothing was measured
	} {
		p := cmdtest.Start(t, strings.Fields("demo "+c.demo)...)
		for !strings.Contains(p.Line(), c.after) {
		}
		p.EndsBy(syscall.SIGINT, term.ExitFailed)
		told := p.Output()
		require.Contains(t, told, c.says)
		require.NotContains(t, told, c.never)
		r := cmdtest.Parse[ending](t, told[strings.LastIndexByte(told, '\n')+1:])
		require.False(t, r.OK)
		require.NotEmpty(t, r.Error)
	}
}

func TestAnInterruptedQueueDemoLeavesNothing(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "demo", "queue", "--items", "5000")
		for !strings.Contains(p.Line(), "killed process") {
		}
		p.Signal(syscall.SIGTERM)
		r := result[queueResult](t, p, term.ExitFailed)
		require.False(t, r.OK)
		require.Zero(t, r.Lost, "%+v", r)
		require.Positive(t, r.Left)
		require.Contains(t, r.Error, "terminated")
		requireNoDemo(t, w, "queue")
	})
}

func TestTheQueueDemoLosesNothingThoughConsumersAreKilled(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		r := result[queueResult](t, cmdtest.On(t, w, "--json", "demo", "queue", "--items", "80"), 0)
		require.GreaterOrEqual(t, r.Redelivered, 2)
		require.Less(t, r.Seconds, time.Minute.Seconds())
		require.Equal(t, queueResult{
			ending: ending{Demo: "queue", Seconds: r.Seconds, OK: true},
			Result: market.Result{Put: 80, Acked: 80, Redelivered: r.Redelivered, Kills: 2}, Items: 80,
		}, r)
	})
}

func TestTheElectionDemoNeverHasTwoLeadersThoughTheyAreKilled(t *testing.T) {
	t.Parallel()
	r := result[electionResult](t, cmdtest.Start(t, "demo", "election", "--replicas", "3", "--kill", "3"), 0)
	require.GreaterOrEqual(t, r.Terms, 4)
	require.Greater(t, r.Entries, r.Terms)
	require.Equal(t, electionResult{
		ending: ending{Demo: "election", Seconds: r.Seconds, OK: true},
		Result: succession.Result{Log: succession.Log{Entries: r.Entries, Terms: r.Terms}, Kills: 3}, Replicas: 3, MaxGap: r.MaxGap,
	}, r)
	// The killed leader's session lasted until its time-out: the kills did hit
	// leaders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestTheStockDemoSellsEveryUnitOnceThoughHoldersAreKilled(t *testing.T) {
	t.Parallel()
	r := result[stockResult](t, cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "3"), 0)
	require.Equal(t, stockResult{
		ending: ending{Demo: "stock", Seconds: r.Seconds, OK: true},
		Result: stock.Result{Sold: 60, Kills: 3, Losses: r.Losses, Growing: true}, Stock: 60, Workers: 4, MaxGap: r.MaxGap,
	}, r)
	// The killed holder's session lasted until its time-out: the kills did hit
	// holders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestWithoutTheLockTheStockDemoTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "100", "--kill", "1", "--unsafe")
	r := result[stockResult](t, p, term.ExitFailed)
	require.False(t, r.OK)
	require.Positive(t, r.Oversold)
	require.Equal(t, r.Sold+r.Left, r.Stock+r.Oversold)
}

func TestTheDemosRunOnRealServersAndLeaveNothing(t *testing.T) {
	t.Parallel()
	files, words := texts(t)
	for _, c := range []struct {
		demo  string
		on    zktest.Backend
		args  []string
		tells string
	}{
		{"stock", zktest.Real, []string{"--workers", "4", "--stock", "60", "--kill", "2"}, `"sold":60`},
		{"batch", zktest.Real, append([]string{"--members", "3", "--kill", "2"}, files...), fmt.Sprintf(`"words":%d`, words)},
		{"election", zktest.Real, []string{"--kill", "2"}, `"overlaps":0`},
		{"election", zktest.Ensemble, []string{"--kill", "2"}, `"overlaps":0`},
	} {
		t.Run(c.demo+" "+c.on.String(), func(t *testing.T) {
			w := zktest.New(t, c.on)
			text := cmdtest.On(t, w, append([]string{"--json", "demo", c.demo}, c.args...)...).Gives(0)
			require.NotContains(t, text, "\n", "nothing but the result")
			for _, says := range []string{`"ok":true`, `"kills":2,`, c.tells + ","} {
				require.Contains(t, text, says)
			}
			requireNoDemo(t, w, c.demo)
		})
	}
}

func TestTheBatchDemoCountsAsASingleProcessDoesThoughOneIsKilled(t *testing.T) {
	t.Parallel()
	files, words := texts(t)
	r := result[batchResult](t, cmdtest.Start(t, append([]string{"demo", "batch"}, files...)...), 0)
	require.Equal(t, batchResult{
		ending: ending{Demo: "batch", Seconds: r.Seconds, OK: true},
		Result: batch.Result{Words: words, Expected: words, Rounds: 2, Kills: 1}, Members: 4, Files: 5,
	}, r)
}

func TestWithoutFilesTheBatchDemoTakesThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	r := result[batchResult](t, cmdtest.Start(t, "demo", "batch", "--kill", "0", "--members", "2"), 0)
	require.True(t, r.OK)
	require.Greater(t, r.Files, 50)
	require.Greater(t, r.Words, 10_000)
}

func TestWithoutAnyTextsTheBatchDemoHasOneOfItsOwn(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(cmdtest.Coorddemo(t), "demo", "batch", "--kill", "0", "--members", "2")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	r := result[batchResult](t, cmdtest.StartAs(t, cmd), 0)
	require.True(t, r.OK)
	require.Equal(t, 10, r.Files)
	require.Greater(t, r.Words, 200)
	left := cmdtest.Must(os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR=")))
	require.Empty(t, left, "its text is removed")
}
