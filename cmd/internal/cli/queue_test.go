//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestQueueVerbsPutTakeReceiveCountAndPeek(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := w.Path("q")
		ask := func(status int, args ...string) string {
			t.Helper()
			p := on(t, w, append([]string{"queue"}, args...)...)
			require.NoError(t, p.in.Close())
			require.Equal(t, status, p.exit(), "%q", args)
			return p.output()
		}
		ask(0, "put", q, "a", "b", "c")
		ask(0, "put", q, "urgent", "--priority", "5")
		require.Equal(t, "4", ask(0, "len", q))
		require.Equal(t, "urgent", ask(0, "peek", q))
		require.Equal(t, "urgent", ask(0, "take", q))
		require.Equal(t, "a 1", ask(0, "receive", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
		ask(3, "receive", q, "--", "sh", "-c", "exit 3")
		require.Equal(t, "b 2", ask(0, "receive", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
		ask(143, "receive", q, "--", "sh", "-c", "kill $$")
		require.Equal(t, "c", ask(0, "take", q))
		require.Equal(t, "0", ask(0, "len", q))
		ask(1, "peek", q)
		ask(exitTimeout, "take", q, "--timeout", "200ms")
		ask(exitTimeout, "receive", q, "--timeout", "200ms", "--", "true")
		ask(exitUsage, "receive", q)
		ask(exitUsage, "put", q, "x", "--priority", "1000")
		ask(exitUsage, "take", "relative")
	})
}

func TestQueuePutReadsLines(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write([]byte("first line\nsecond line\n"))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Zero(t, p.exit())
	require.Equal(t, "first line", on(t, w, "queue", "take", w.Path("q")).output())
}

func TestACommandWhoseItemIsLostIsKilled(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	put := on(t, w, "queue", "put", w.Path("q"), "item")
	require.Zero(t, put.exit())
	p := on(t, w, "queue", "receive", w.Path("q"), "--", "sh", "-c", "echo $$; exec sleep 600")
	pid := p.number()
	var claims []string
	zktest.Eventually(t, soon, func() bool {
		claims, _, _ = w.Admin().Children(w.Path("q/taken"))
		return len(claims) == 1
	}, "the item is not taken")
	require.NoError(t, w.Admin().Delete(w.Path("q/taken/"+claims[0]), -1))
	require.Equal(t, exitLost, p.exit())
	requireGone(t, pid)
}

// receive starts a process that has the first item processed by a script.
func receive(t *testing.T, w *zktest.World, script string, options ...string) *process {
	t.Helper()
	return on(t, w, append(append([]string{"queue", "receive"}, options...), w.Path("q"), "--", "sh", "-c", script)...)
}

func putItems(t *testing.T, w *zktest.World, items ...string) {
	t.Helper()
	require.Equal(t, 0, on(t, w, append([]string{"queue", "put", w.Path("q")}, items...)...).exit())
}

func TestAKilledReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		victim := receive(t, w, stubborn)
		pid := victim.number()
		next := receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		victim.signal(syscall.SIGKILL)
		require.Equal(t, 0, next.exit())
		require.Equal(t, "item", next.output())
		requireGone(t, pid)
	})
}

func TestAFrozenReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		frozen := receive(t, w, stubborn)
		pid := frozen.number()
		next := receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		frozen.signal(syscall.SIGSTOP)
		require.Equal(t, 0, next.exit())
		require.Equal(t, "item", next.output())
		frozen.signal(syscall.SIGCONT)
		require.Equal(t, exitLost, frozen.exit())
	})
}

func TestACommandGetsTheWholeItem(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	line := strings.Repeat("0123456789", 50_000) // more than a pipe holds
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write([]byte(line))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.Equal(t, "500000", strings.TrimSpace(receive(t, w, "wc -c").output()))
	require.Equal(t, 0, on(t, w, "queue", "len", w.Path("q")).exit())
}

func TestASignalEndsTheWaitForAnItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, args := range [][]string{{"take", w.Path("q")}, {"receive", w.Path("q"), "--", "true"}} {
			p := on(t, w, append([]string{"queue"}, args...)...)
			awaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
			p.signal(syscall.SIGINT)
			require.Equal(t, 128+int(syscall.SIGINT), p.exit(), "%q", args)
			require.Empty(t, p.stderr.String(), "%q", args)
		}
	})
}

func TestASignalEndsTheDelayOfAFailedItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		p := receive(t, w, "echo failed; exit 3", "--delay", "10m")
		require.Equal(t, "failed", p.line())
		require.Equal(t, exitTimeout, receive(t, w, "cat", "--timeout", "300ms").exit())
		p.signal(syscall.SIGTERM)
		require.Equal(t, 3, p.exit())
		require.Equal(t, "item", receive(t, w, "cat").output())
	})
}

func TestReceiveTellsItsStoryInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	p := receive(t, w, "exit 7", "--json")
	require.Equal(t, 7, p.exit())
	story := parse[map[string]any](t, strings.TrimSpace(p.stderr.String()))
	require.Equal(t, w.Path("q"), story["path"])
	require.EqualValues(t, 7, story["status"])
	require.EqualValues(t, 1, story["deliveries"])
	require.Equal(t, false, story["lost"])
}

func TestACommandThatCannotBeRunIsNoDelivery(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"no-such-command": 127, "/no/such/file": 127, plain: 126} {
		for range 2 {
			p := on(t, w, "--json", "queue", "receive", "--dead", "1", w.Path("q"), "--", command)
			require.Equal(t, want, p.exit())
			story := parse[map[string]any](t, strings.SplitN(p.stderr.String(), "\n", 2)[0])
			require.EqualValues(t, want, story["status"])
			require.Contains(t, story["error"], command)
		}
	}
	require.Equal(t, "item 1", receive(t, w, "echo $(cat) $COORD_DELIVERIES", "--dead", "1").output())
}

func TestItemsThatAreNoTextAreGivenInBase64(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	data := []byte("\xff\x00\xfe")
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write(append(data, "\ntext\n\n"...))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("q")).line())
	require.Equal(t, data, r.Queue.First[0].DataBase64)
	require.Equal(t, "text", r.Queue.First[1].Data)
	require.Empty(t, r.Queue.First[1].DataBase64)
	for _, verb := range []string{"peek", "take"} {
		line := on(t, w, "--json", "queue", verb, w.Path("q")).line()
		require.Equal(t, data, parse[nodeData](t, line).Base64, verb)
		require.NotContains(t, line, `"data":`)
	}
	for _, text := range []string{"text", ""} {
		line := on(t, w, "--json", "queue", "take", w.Path("q")).line()
		require.JSONEq(t, fmt.Sprintf(`{"path":%q,"data":%q}`, w.Path("q"), text), line)
	}
}

func TestAWaitInVainIsToldOfInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := on(t, w, sh(w.Path("l"), untilEOF)...)
	holder.line()
	require.Equal(t, 0, on(t, w, "barrier", "set", w.Path("b")).exit())
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{exitBusy, "held by another", sh(w.Path("l"), "echo never", "--try")},
		{exitTimeout, "no turn", sh(w.Path("l"), "echo never", "--timeout", "0.3")},
		{127, "command not found", []string{"lock", w.Path("l"), "--", "no-such-command"}},
		{exitTimeout, "no item", []string{"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "echo", "never"}},
		{exitTimeout, "no item", []string{"queue", "take", "--timeout", "0.3", w.Path("q")}},
		{exitFailed, "is empty", []string{"queue", "peek", w.Path("q")}},
		{exitTimeout, "is closed", []string{"barrier", "wait", "--timeout", "0.3", w.Path("b")}},
		{exitTimeout, "not all 2 came", []string{"doublebarrier", "-n", "2", "--timeout", "0.3", w.Path("d"), "--", "true"}},
	} {
		p := on(t, w, append([]string{"--json"}, c.args...)...)
		require.Equal(t, c.status, p.exit(), "%q", c.args)
		told := p.output()
		if told == "" {
			told, _, _ = strings.Cut(p.stderr.String(), "\n")
		}
		story := parse[map[string]any](t, told)
		require.Contains(t, w.Path("l")+w.Path("q")+w.Path("b")+w.Path("d"), story["path"])
		require.EqualValues(t, c.status, story["status"])
		require.Contains(t, story["error"], c.says)
		require.Contains(t, p.stderr.String(), "coorddemo: ", "people are told as well")
	}
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
}

func TestAnInterruptedWaitIsToldOfInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, args := range [][]string{
		{"queue", "take", w.Path("q")},
		{"queue", "receive", w.Path("q"), "--", "true"},
	} {
		p := on(t, w, append([]string{"--json"}, args...)...)
		awaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
		requireInterruptTold(t, p)
	}
	p := on(t, w, "--json", "doublebarrier", "-n", "2", w.Path("b"), "--", "true")
	inBarrier(t, w, 1)
	requireInterruptTold(t, p)
}

func requireInterruptTold(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.exit())
	story := parse[map[string]any](t, p.output()+p.stderr.String())
	require.EqualValues(t, 130, story["status"])
	require.Contains(t, story["error"], "interrupt")
	require.NotEmpty(t, story["path"])
}

func TestATakenItemThatCannotBeWrittenIsToldOf(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("left out: needs /dev/full")
	}
	defer full.Close()
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "precious", "other")
	for _, args := range [][]string{{"take"}, {"len"}} {
		cmd := exec.Command(os.Args[0], append(target(w), "queue", args[0], w.Path("q"))...)
		cmd.Env = environment()
		cmd.Stdout = full
		var told strings.Builder
		cmd.Stderr = &told
		var ended *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &ended)
		require.Equal(t, exitFailed, ended.ExitCode())
		require.Contains(t, told.String(), "no space left")
		require.Equal(t, args[0] == "take", strings.Contains(told.String(), `"precious"`))
	}
}

func TestLinesArePutAsTheyComeUnlessTogether(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write([]byte("first\nsec"))
	require.NoError(t, err)
	require.Equal(t, "first", on(t, w, "queue", "take", w.Path("q")).output())
	_, err = p.in.Write([]byte("ond\n"))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())

	long := strings.Repeat("x", 1_000_002)
	p = on(t, w, "queue", "put", w.Path("r"), "--together")
	_, err = p.in.Write([]byte("first\n" + long + "\n"))
	require.NoError(t, err)
	require.Equal(t, exitFailed, p.exit())
	require.Contains(t, p.stderr.String(), "too long")
	require.Contains(t, p.stderr.String(), "0 items were put")
	require.Equal(t, "0", on(t, w, "queue", "len", w.Path("r")).output())
}

func TestAnInterruptedQueueDemoLeavesNothing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, "demo", "queue", "--items", "5000")
		for !strings.Contains(p.line(), "killed process") {
		}
		p.signal(syscall.SIGTERM)
		require.Equal(t, exitFailed, p.exit())
		r := parse[queueResult](t, p.last())
		require.False(t, r.OK)
		require.Zero(t, r.Lost, "%+v", r)
		require.Positive(t, r.Left)
		require.Contains(t, r.Error, "terminated")
		requireNoDemo(t, w, "queue")
	})
}

func TestADemoWhoseOutputNobodyReadsAnyMoreClearsUp(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], append(target(w), "demo", "queue")...)
	cmd.Env = environment()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.Error(t, cmd.Wait())
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
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

func TestTheQueueDemoLosesNothingThoughConsumersAreKilled(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, "--json", "demo", "queue", "--items", "80")
		require.Zero(t, p.exit())
		r := parse[queueResult](t, p.output())
		require.True(t, r.OK)
		require.Equal(t, 80, r.Put)
		require.Equal(t, 80, r.Acked)
		require.Equal(t, 2, r.Kills)
		require.GreaterOrEqual(t, r.Redelivered, 2)
		require.Zero(t, r.Lost)
		require.Less(t, r.Seconds, time.Minute.Seconds())
	})
}
