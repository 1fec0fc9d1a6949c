//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

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

func putItems(t *testing.T, w *zktest.World, items ...string) {
	t.Helper()
	require.Equal(t, 0, on(t, w, append([]string{"queue", "put", w.Path("q")}, items...)...).exit())
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

func TestATakenItemThatCannotBeWrittenIsReported(t *testing.T) {
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
