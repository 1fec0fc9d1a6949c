//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/stock"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// requireNothingLeft checks that the servers have no node of the demo.
func requireNothingLeft(t *testing.T, w *zktest.World) {
	t.Helper()
	left, _, err := w.Admin().Children("/coorddemo")
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
	require.Empty(t, left)
}

// result is the last line of the demo, which ends with this status.
func result(t *testing.T, p *cmdtest.Process, status int) stockResult {
	t.Helper()
	p.Ends(status)
	return cmdtest.Parse[stockResult](t, p.Last())
}

func TestADemoWhoseOutputIsNotReadAnyMoreClearsUp(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "stock")...)
	cmd.Env = cmdtest.Environment()
	out := cmdtest.Must(cmd.StdoutPipe())
	require.NoError(t, cmd.Start())
	cmdtest.Must(bufio.NewReader(out).ReadString('\n'))
	require.NoError(t, out.Close())
	require.Error(t, cmd.Wait())
	require.Equal(t, term.ExitFailed, cmd.ProcessState.ExitCode())
	requireNothingLeft(t, w)
}

func TestTheDemoSpeaksWellOfOneProcessAndOfNoKills(t *testing.T) {
	t.Parallel()
	for _, demo := range []struct{ args, says, not []string }{
		{
			[]string{"--workers", "1", "--stock", "1", "--kill", "0"},
			[]string{"1 process sells 1 unit", "The lock is /", "Every unit was sold once."},
			[]string{"SIGKILL", "apart", "though holders"},
		},
		{
			[]string{"--workers", "2", "--stock", "40", "--kill", "1", "--unsafe"},
			[]string{"2 processes sell 40 units", "Nothing keeps them apart,\nand 1 process is killed with SIGKILL"},
			[]string{"released", "the next sale came"},
		},
	} {
		text := cmdtest.Start(t, append([]string{"demo", "stock"}, demo.args...)...).Output() + "\n"
		for _, says := range demo.says {
			require.Contains(t, text, says, strings.Join(demo.args, " "))
		}
		for _, not := range demo.not {
			require.NotContains(t, text, not, strings.Join(demo.args, " "))
		}
	}
}

func TestTheTerminalsInterruptEndsTheDemoInGoodOrder(t *testing.T) {
	w := cmdtest.World(t)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "stock", "--stock", "100000")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := cmdtest.StartAs(t, cmd)
	for !strings.Contains(p.Line(), "Nothing but the lock") {
	}
	require.NoError(t, syscall.Kill(-p.Pid(), syscall.SIGINT)) // as the key does
	r := result(t, p, term.ExitFailed)
	require.Contains(t, r.Error, "interrupt")
	require.NotContains(t, r.Error, "process")
	require.Empty(t, p.Stderr.String(), "the sellers were interrupted as well")
	requireNothingLeft(t, w)
}

func TestTheDemoHasShortSessions(t *testing.T) {
	t.Parallel()
	st := &stage{Connection: conn.Connection{ZK: "127.0.0.1:1", SessionTimeout: time.Hour}}
	_, err := st.servers()
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, st.SessionTimeout)
}

func TestAnInterruptedDemoStillCountsAndFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "2", "--stock", "100000", "--kill", "1")
	for !strings.Contains(p.Line(), "Nothing but the lock") {
	}
	p.EndsBy(syscall.SIGINT, term.ExitFailed)
	told := p.Output()
	require.Contains(t, told, `"oversold":0`)
	require.NotContains(t, told, "Every unit was sold once")
	r := cmdtest.Parse[stockResult](t, told[strings.LastIndexByte(told, '\n')+1:])
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
}

func TestTheStockDemoSellsEveryUnitOnceThoughHoldersAreKilled(t *testing.T) {
	t.Parallel()
	r := result(t, cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "300", "--kill", "3"), 0)
	require.Equal(t, stockResult{
		Demo: "stock", Seconds: r.Seconds, OK: true,
		Result: stock.Result{Sold: 300, Kills: 3, Losses: r.Losses, Growing: true}, Stock: 300, Workers: 4, MaxGap: r.MaxGap,
	}, r)
	// The killed holder's session lasted until its timeout: the kills did hit
	// holders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestWithoutTheLockTheStockDemoTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "100", "--kill", "1", "--unsafe")
	r := result(t, p, term.ExitFailed)
	require.False(t, r.OK)
	require.Positive(t, r.Oversold)
	require.Equal(t, r.Sold+r.Left, r.Stock+r.Oversold)
}

func TestTheDemoRunsOnARealServerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Real)
	text := cmdtest.On(t, w, "--json", "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "2").Gives(0)
	require.NotContains(t, text, "\n", "nothing but the result")
	for _, says := range []string{`"ok":true`, `"kills":2,`, `"sold":60,`} {
		require.Contains(t, text, says)
	}
	requireNothingLeft(t, w)
}
