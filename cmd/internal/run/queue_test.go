//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestQueueVerbsPutTakeReceiveCountAndPeek(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		q := w.Path("q")
		ask := func(status int, args ...string) string {
			t.Helper()
			p := cmdtest.On(t, w, append([]string{"queue"}, args...)...)
			require.NoError(t, p.In.Close())
			return p.Gives(status)
		}
		ask(0, "put", q, "a", "b", "c")
		ask(0, "put", "--priority", "5", q, "urgent")
		require.Equal(t, "4", ask(0, "len", q))
		require.Equal(t, "urgent", ask(0, "peek", q))
		require.Equal(t, "urgent", ask(0, "take", q))
		require.Equal(t, "a 1", ask(0, "receive", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
		ask(3, "receive", q, "--", "sh", "-c", "exit 3")
		require.Equal(t, "b 2", ask(0, "receive", "--backoff", "0", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
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
	})
}

func TestItemsThatAreNoTextAreGivenInBase64(t *testing.T) {
	w := cmdtest.World(t)
	data := []byte("\xff\x00\xfe")
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write(append(data, "\ntext\n\n"...))
	require.NoError(t, err)
	p.LetGo(0)
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
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write([]byte("first\nsec"))
	require.NoError(t, err)
	require.Equal(t, "first", cmdtest.On(t, w, "queue", "take", w.Path("q")).Output())
	_, err = p.In.Write([]byte("ond\n"))
	require.NoError(t, err)
	p.LetGo(0)

	long := strings.Repeat("x", 1_000_002)
	p = cmdtest.On(t, w, "queue", "put", "--together", w.Path("r"))
	_, err = p.In.Write([]byte("first\n" + long + "\n"))
	require.NoError(t, err)
	p.Ends(term.ExitFailed, "too long", "0 items were put")
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("r")).Output())
}

func TestOneItemIsBuriedOrDropped(t *testing.T) {
	w := cmdtest.World(t)
	q := w.Path("q")
	ask := func(status int, args ...string) *cmdtest.Process {
		t.Helper()
		p := cmdtest.On(t, w, append([]string{"--json", "queue"}, args...)...)
		require.NoError(t, p.In.Close())
		require.Equal(t, status, p.Exit(), "%q", args)
		return p
	}
	name := func() string {
		t.Helper()
		return cmdtest.Parse[queueItem](t, ask(0, "peek", q).Line()).Name
	}
	require.Equal(t, "no dead letters", cmdtest.On(t, w, "queue", "dead", q).Output())
	ask(0, "put", q, "poison", "useless", "good")
	poison := name()
	ask(7, "receive", q, "--", "sh", "-c", "exit 7")
	ask(0, "bury", "--reason", "no such customer", q, poison)
	ask(0, "drop", q, name())
	require.Equal(t, "good", cmdtest.On(t, w, "queue", "peek", q).Output())

	ask(term.ExitFailed, "bury", q, poison)
	ask(term.ExitUsage, "drop", q, "poison")
	item := cmdtest.Must(cmdtest.Must(queue.New(cmdtest.Open(t, w), q)).Receive(t.Context()))
	taken := item.Node()
	ask(term.ExitBusy, "drop", q, taken[len(q+"/taken/"):])

	letters := cmdtest.Parse[struct{ Dead []deadLetter }](t, ask(0, "dead", q).Line()).Dead
	require.Len(t, letters, 1)
	require.Equal(t, "poison", *letters[0].Data)
	require.Equal(t, []any{1, poison, "no such customer"},
		[]any{letters[0].Deliveries, letters[0].Item, letters[0].Reason})
	require.NotEmpty(t, letters[0].By)
	require.Regexp(t, `(?m)^LETTER .*REASON\n.*"poison" .*no such customer`, cmdtest.On(t, w, "queue", "dead", q).Output())
	r, _ := cmdtest.Seen[look.Report](t, w, q+"/dead")
	require.Zero(t, r.Others)
	require.NotContains(t, cmdtest.On(t, w, "ls", q).Output(), "records")
	ask(0, "receive", q+"/dead", "--", "true")
}

func TestF95DeadLettersArePutBackToTheLastByte(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		q := cmdtest.Must(queue.New(cmdtest.Open(t, w), w.Path("q")))
		items := []string{"--help", "--json", "--priority=7", "--zk=127.0.0.1:9", "--", "", "\x00a\x00", "line\n\n"}
		var first string
		for i, item := range items {
			require.NoError(t, q.Put(t.Context(), []byte(item), queue.Priority(i)))
			require.NoError(t, cmdtest.Must(q.Receive(t.Context())).Bury(t.Context(), "bad"))
			if i == 0 {
				first = cmdtest.Must(q.DeadLetters(t.Context()))[0].Name
			}
		}
		requeue := func(args ...string) *cmdtest.Process {
			return cmdtest.On(t, w, append([]string{"queue", "requeue"}, args...)...)
		}
		requeue(w.Path("q")).Ends(term.ExitUsage, "--all")
		requeue("--all", w.Path("q"), first).Ends(term.ExitUsage, "--all")
		requeue(w.Path("q"), "--all").Ends(term.ExitUsage, "stands behind the path")
		requeue(w.Path("q"), "entry-100-0000000099").Ends(term.ExitFailed, "has no item", "0 letters put back before")
		require.Equal(t, "1 letter put back", requeue(w.Path("q"), first).Output())
		require.Equal(t, "7 letters put back", requeue("--all", w.Path("q")).Output())
		require.Equal(t, "0 letters put back", requeue("--all", w.Path("q")).Output())
		for i, want := range items {
			item := cmdtest.Must(q.Receive(t.Context()))
			require.Equal(t, want, string(item.Data))
			require.Equal(t, i, item.Priority)
			require.NoError(t, item.Ack(t.Context()))
		}
	})
}

func TestDeadLettersAreAcknowledgedAndStay(t *testing.T) {
	w := cmdtest.World(t)
	q := cmdtest.Must(queue.New(cmdtest.Open(t, w), w.Path("q")))
	for _, item := range []string{"a", "b"} {
		require.NoError(t, q.Put(t.Context(), []byte(item)))
		require.NoError(t, cmdtest.Must(q.Receive(t.Context())).Bury(t.Context(), "bad"))
	}
	acknowledge := func(args ...string) *cmdtest.Process {
		return cmdtest.On(t, w, append([]string{"queue", "acknowledge"}, args...)...)
	}
	acknowledge(w.Path("q")).Ends(term.ExitUsage, "--all")
	acknowledge(w.Path("q"), "entry-100-0000000099").Ends(term.ExitFailed, "has no item", "0 letters acknowledged before")
	first := cmdtest.Must(q.DeadLetters(t.Context()))[0].Name
	for range 2 {
		require.Equal(t, "1 letter acknowledged", acknowledge(w.Path("q"), first).Output())
	}
	all := cmdtest.Parse[struct{ Dead []deadLetter }](t,
		cmdtest.On(t, w, "--json", "queue", "dead", w.Path("q")).Gives(0)).Dead
	require.NotNil(t, all[0].Acknowledged)
	require.NotEmpty(t, all[0].AcknowledgedBy)
	require.Nil(t, all[1].Acknowledged)
	require.Regexp(t, `(?m)^LETTER .*ACKNOWLEDGED BY.*\n`+first+` .*`+regexp.QuoteMeta(all[0].AcknowledgedBy),
		cmdtest.On(t, w, "queue", "dead", w.Path("q")).Gives(0))
	require.Equal(t, "2 letters put back", cmdtest.On(t, w, "queue", "requeue", "--all", w.Path("q")).Output())
}

func TestAnItemThatIsDeliveredAgainAndAgainIsOdd(t *testing.T) {
	w := cmdtest.World(t)
	q := cmdtest.Must(queue.New(cmdtest.Open(t, w), w.Path("q"), queue.Backoff(0)))
	require.NoError(t, q.PutBatch(t.Context(), [][]byte{[]byte("poison"), []byte("good")}))
	deliver := func() {
		t.Helper()
		item := cmdtest.Must(q.Receive(t.Context()))
		require.Equal(t, "poison", string(item.Data))
		require.NoError(t, item.Nack(t.Context(), 0))
	}
	for range look.TooOften - 1 {
		deliver()
	}
	r, _ := cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Empty(t, r.Odd)
	deliver()
	r, _ = cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Equal(t, []string{"1 item was delivered 10 times or more"}, r.Odd)
	p := cmdtest.On(t, w, "doctor", cmdtest.Below(w))
	require.Contains(t, p.Output(), "1 item was delivered 10 times or more")
	require.Equal(t, term.ExitFailed, p.Exit())
}

func TestACommandGetsTheWholeItem(t *testing.T) {
	w := cmdtest.World(t)
	line := strings.Repeat("0123456789", 50_000) // more than a pipe holds
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write([]byte(line))
	require.NoError(t, err)
	p.LetGo(0)
	require.Equal(t, "500000", strings.TrimSpace(cmdtest.Receive(t, w, "wc -c").Output()))
	require.Equal(t, 0, cmdtest.On(t, w, "queue", "len", w.Path("q")).Exit())
}

func TestASignalEndsTheWaitForAnItem(t *testing.T) {
	w := cmdtest.World(t)
	for _, args := range [][]string{{"take", w.Path("q")}, {"receive", w.Path("q"), "--", "true"}} {
		p := cmdtest.On(t, w, append([]string{"queue"}, args...)...).InLine(w, w.Path("q/consumers"), 1)
		p.Signal(syscall.SIGINT)
		require.Equal(t, 128+int(syscall.SIGINT), p.Exit(), "%q", args)
		require.Empty(t, p.Stderr.String(), "%q", args)
	}
}

// Each pass of a shell's loop is a new process with a new session.
func TestF93ALoopOfReceiveDoesWhatStandsBehindAnItemThatAlwaysFails(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "poison", "1", "2", "3")
	const work = "read -r item; echo $item; [ $item != poison ]"
	for _, want := range []string{"poison", "1", "2", "3"} {
		p := cmdtest.Receive(t, w, work, "--backoff", "1h")
		require.Equal(t, want, p.Line())
		p.Exit()
	}
	cmdtest.Receive(t, w, work, "--backoff", "1h", "--timeout", "5s").
		Ends(term.ExitTimeout, "1 to be delivered again later")
	p := cmdtest.Receive(t, w, work+"; echo again $COORD_DELIVERIES", "--backoff", "0")
	require.Equal(t, "poison\nagain 2", p.Output())
	cmdtest.Receive(t, w, "true", "--backoff=-1s").Ends(term.ExitUsage, "--backoff -1s")
}

func TestACommandThatCannotBeRunIsNoDelivery(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"no-such-command": 127, "/no/such/file": 127, plain: 126} {
		for range 2 {
			p := cmdtest.On(t, w, "--json", "queue", "receive", "--dead", "1", w.Path("q"), "--", command)
			require.Equal(t, want, p.Exit())
			summary := cmdtest.Parse[map[string]any](t, strings.SplitN(p.Stderr.String(), "\n", 2)[0])
			require.EqualValues(t, want, summary["status"])
			require.Contains(t, summary["error"], command)
		}
	}
	require.Equal(t, "item 1", cmdtest.Receive(t, w, "echo $(cat) $COORD_DELIVERIES", "--dead", "1").Output())
}
