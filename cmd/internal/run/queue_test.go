//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestQueueVerbsPutTakeReceiveCountAndPeek(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := w.Path("q")
		ask := func(status int, args ...string) string {
			t.Helper()
			p := cmdtest.On(t, w, append([]string{"queue"}, args...)...)
			require.NoError(t, p.In.Close())
			require.Equal(t, status, p.Exit(), "%q", args)
			return p.Output()
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
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, "queue", "take", q, "--timeout", timeout)
		})
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.Receive(t, w, "true", "--timeout", timeout)
		})
		ask(term.ExitUsage, "receive", q)
		ask(term.ExitUsage, "put", q, "x", "--priority", "1000")
		ask(term.ExitUsage, "take", "relative")
	})
}

func TestQueuePutReadsLines(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write([]byte("first line\nsecond line\n"))
	require.NoError(t, err)
	require.NoError(t, p.In.Close())
	require.Zero(t, p.Exit())
	require.Equal(t, "first line", cmdtest.On(t, w, "queue", "take", w.Path("q")).Output())
}

func TestItemsThatAreNoTextAreGivenInBase64(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	data := []byte("\xff\x00\xfe")
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write(append(data, "\ntext\n\n"...))
	require.NoError(t, err)
	require.NoError(t, p.In.Close())
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
	require.Equal(t, data, r.Queue.First[0].DataBase64)
	require.Equal(t, "text", r.Queue.First[1].Data)
	require.Empty(t, r.Queue.First[1].DataBase64)
	for _, verb := range []string{"peek", "take"} {
		line := cmdtest.On(t, w, "--json", "queue", verb, w.Path("q")).Line()
		require.Equal(t, data, cmdtest.Parse[term.NodeData](t, line).Base64, verb)
		require.NotContains(t, line, `"data":`)
	}
	for _, text := range []string{"text", ""} {
		line := cmdtest.On(t, w, "--json", "queue", "take", w.Path("q")).Line()
		require.JSONEq(t, fmt.Sprintf(`{"path":%q,"data":%q}`, w.Path("q"), text), line)
	}
}

func TestATakenItemThatCannotBeWrittenIsReported(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("left out: needs /dev/full")
	}
	defer full.Close()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.PutItems(t, w, "precious", "other")
	for _, args := range [][]string{{"take"}, {"len"}} {
		cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "queue", args[0], w.Path("q"))...)
		cmd.Env = cmdtest.Environment()
		cmd.Stdout = full
		var told strings.Builder
		cmd.Stderr = &told
		var ended *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &ended)
		require.Equal(t, term.ExitFailed, ended.ExitCode())
		require.Contains(t, told.String(), "no space left")
		require.Equal(t, args[0] == "take", strings.Contains(told.String(), `"precious"`))
	}
}

func TestLinesArePutAsTheyComeUnlessTogether(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write([]byte("first\nsec"))
	require.NoError(t, err)
	require.Equal(t, "first", cmdtest.On(t, w, "queue", "take", w.Path("q")).Output())
	_, err = p.In.Write([]byte("ond\n"))
	require.NoError(t, err)
	require.NoError(t, p.In.Close())
	require.Equal(t, 0, p.Exit())

	long := strings.Repeat("x", 1_000_002)
	p = cmdtest.On(t, w, "queue", "put", w.Path("r"), "--together")
	_, err = p.In.Write([]byte("first\n" + long + "\n"))
	require.NoError(t, err)
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Contains(t, p.Stderr.String(), "too long")
	require.Contains(t, p.Stderr.String(), "0 items were put")
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("r")).Output())
}
