//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/see"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestALabelIsShownOfTheHolderAndOfThoseWhoWait(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("l")
		holder := cmdtest.On(t, w, cmdtest.Sh(path, cmdtest.UntilEOF, "--label", "nightly\t\x1b[31mbackup", "--on-revoke", "ignore")...).Begun()
		waiter := cmdtest.On(t, w, cmdtest.Sh(path, "exit 0", "--label", "monthly backup")...).InLine(w, path, 2)
		shown := func() look.Report {
			r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", path).Line())
			require.Len(t, r.Contenders, 2)
			require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "nightly\t\x1b[31mbackup "), r.Contenders[0].Owner)
			require.True(t, strings.HasPrefix(r.Contenders[1].Owner, "monthly backup "), r.Contenders[1].Owner)
			return r
		}
		require.False(t, shown().Contenders[0].Revoked)
		require.Equal(t, 0, cmdtest.On(t, w, "revoke", path).Exit())
		require.True(t, shown().Contenders[0].Revoked)

		quoted := `"nightly\t\x1b[31mbackup `
		require.Contains(t, cmdtest.On(t, w, "inspect", path).Output(), quoted)
		require.Contains(t, cmdtest.On(t, w, "ls", path).Output(), quoted)
		require.Contains(t, cmdtest.On(t, w, "graph", path).Output(), quoted)
		require.Contains(t, cmdtest.On(t, w, "graph", path).Output(), `"monthly backup `)
		g := cmdtest.Parse[see.WaitGraph](t, cmdtest.On(t, w, "--json", "graph", path).Line())
		require.Len(t, g.Waits, 1)
		require.True(t, strings.HasPrefix(g.Waits[0].ForWho, "nightly"))
		l := cmdtest.Parse[see.Listing](t, cmdtest.On(t, w, "--json", "ls", path).Line())
		require.True(t, strings.HasPrefix(l.Recipes[0].Holders[0], "nightly"))

		holder.LetGo(5)
		require.Equal(t, 0, waiter.Exit())
	})
}

func TestEveryVerbThatHoldsHasALabel(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		for name, verb := range map[string][]string{
			"l": cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--slots", "2"),
			"s": cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--shared"),
			"e": cmdtest.Elect(w.Path("e"), cmdtest.UntilEOF),
			"b": {"doublebarrier", "-n", "1", w.Path("b"), "--", "sh", "-c", cmdtest.UntilEOF},
		} {
			p := cmdtest.On(t, w, append([]string{verb[0], "--label", "our " + name}, verb[1:]...)...).Begun()
			r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path(name)).Line())
			require.Len(t, r.Contenders, 1)
			require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "our "+name+" "), r.Contenders[0].Owner)
			p.LetGo(5)
		}
		p := cmdtest.On(t, w, "queue", "receive", "--label", "our q", w.Path("q"), "--", "sh", "-c", cmdtest.Busy).Begun()
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
		require.True(t, strings.HasPrefix(r.Queue.First[0].Owner, "our q "), r.Queue.First[0].Owner)
		taker := cmdtest.On(t, w, "queue", "take", "--label", "our taker", "--timeout", "60", w.Path("q")).InLine(w, w.Path("q/consumers"), 1)
		owners := ""
		for _, c := range cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line()).Contenders {
			owners += c.Owner + "\n"
		}
		require.Contains(t, owners, "our taker ")
		cmdtest.PutItems(t, w, "more")
		require.Equal(t, "more", taker.Line())

		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", "--label", "our gate", w.Path("gate")).Exit())
		r = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("gate")).Line())
		require.True(t, strings.HasPrefix(r.Closed.By, "our gate "), r.Closed.By)
		p.EndsBy(syscall.SIGTERM, 128+15)
	})
}

// A name that is no label is not shown.
func TestWithoutALabelTheCommandsNameIsShown(t *testing.T) {
	w := cmdtest.World(t)
	strange := filepath.Join(t.TempDir(), "two\nlines")
	zktest.WriteProgram(t, strange, []byte("#!/bin/sh\n"+cmdtest.UntilEOF), 0o700)
	for command, want := range map[string]string{"/bin/sh": "sh ", strange: "coorddemo "} {
		p := cmdtest.On(t, w, "lock", w.Path("l"), "--", command, "-c", cmdtest.UntilEOF).Begun()
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
		require.True(t, strings.HasPrefix(r.Contenders[0].Owner, want), r.Contenders[0].Owner)
		p.LetGo(5)
	}
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("gate")).Exit())
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("gate")).Line())
	require.True(t, strings.HasPrefix(r.Closed.By, "coorddemo "), r.Closed.By)
}

func TestALabelIsOneLineAndNotTooLong(t *testing.T) {
	t.Parallel()
	for label, message := range map[string]string{
		"":                       "the label is empty",
		"two\nlines":             "must be one line",
		"\rback":                 "must be one line",
		strings.Repeat("x", 257): "257 bytes; 256 at most",
	} {
		for _, verb := range [][]string{{"lock"}, {"elect"}, {"doublebarrier", "-n", "2"}, {"queue", "receive"}} {
			status, _, says := inProcess(append(verb, "--label", label, "/l", "--", "true")...)
			require.Equal(t, term.ExitUsage, status)
			require.Contains(t, says, message)
		}
	}
	cmdtest.Start(t, "lock", "--label", "two\nlines", "/l", "--", "true").Ends(term.ExitUsage, "must be one line")
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, 0, cmdtest.On(t, w, "lock", "--label", strings.Repeat("x", 256), w.Path("l"), "--", "true").Exit())
	for _, args := range [][]string{
		{"elect", "--data", "x", "--label", "y", "/e", "--", "true"}, {"elect", "--who", "--label", "y", "/e"},
	} {
		cmdtest.Start(t, args...).Ends(term.ExitUsage, "--label")
	}
}

// inDir is how many locks manyHeld makes in one directory.
const inDir = 100

// manyHeld makes the locks, each held by one; at every tenth another waits.
func manyHeld(t testing.TB, w *zktest.World, locks int) {
	t.Helper()
	var ops []any
	carryOut := func() {
		_, err := w.Admin().Multi(ops...)
		require.NoError(t, err)
		ops = nil
	}
	create := func(path string, flags int32) {
		ops = append(ops, &zk.CreateRequest{Path: path, Data: []byte("job host7 4711"), Acl: zk.WorldACL(zk.PermAll), Flags: flags})
	}
	create(cmdtest.Below(w), 0)
	for dir := range locks / inDir {
		create(w.Path(fmt.Sprint(dir)), 0)
		for i := range inDir {
			path := w.Path(fmt.Sprintf("%d/%d", dir, i))
			create(path, 0)
			create(path+"/_c_"+cmdtest.Guid1+"-lock-0000000000", zk.FlagEphemeral)
			if i%10 == 0 {
				create(path+"/_c_"+cmdtest.Guid2+"-lock-0000000001", zk.FlagEphemeral)
			}
		}
		carryOut()
	}
}

// called runs a verb in this process, and returns its output and status.
func called(t testing.TB, w *zktest.World, args ...string) (output string, status int) {
	t.Helper()
	var out, notes bytes.Buffer
	std := &term.Streams{Out: &out, Err: &notes}
	v, ctx, err := parseArgs(std, append([]string{"--zk", w.ConnectString(), "--connect-timeout", "5m", "--json"}, args...))
	require.NoError(t, err)
	std.JSON, v.Note = true, std.Note
	status = std.Finish(ctx.Run(std, &v.Connection), hint)
	require.Empty(t, notes.String())
	return out.String(), status
}

// requestGauge counts reads, and now and then holds one reply back and
// with it all that follow: what comes meanwhile was sent without waiting.
type requestGauge struct {
	mu      sync.Mutex
	reads   int
	until   time.Time // no reply goes out before
	pending int
	most    int
}

const (
	heldBack     = 200 * time.Millisecond
	heldBackEach = 500 // reads
)

// match is called with one request after the other, before it is carried out.
func (g *requestGauge) match(r zkembed.Request) bool {
	if !slices.Contains([]zkembed.Op{zkembed.OpGetChildren2, zkembed.OpGetData, zkembed.OpExists}, r.Op) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	holds := g.reads%heldBackEach == 0
	switch now := time.Now(); {
	case now.Before(g.until):
		g.pending++
		holds = false
	case holds:
		g.until, g.pending = now.Add(heldBack), 1
	}
	g.most = max(g.most, g.pending)
	return holds
}

func TestAThousandLocksAreListedWithFewRequestsUnderWay(t *testing.T) {
	t.Parallel()
	const locks, waiters = 1000, 1000 / 10
	w := zktest.NewEmbedded(t)
	manyHeld(t, w, locks)
	for _, verb := range []string{"ls", "graph"} {
		g := &requestGauge{}
		fault := w.Embedded().Inject(zkembed.Match{Func: g.match}, zkembed.DelayReply(heldBack))
		text, status := called(t, w, verb, cmdtest.Below(w))
		fault.Remove()
		require.Zero(t, status)
		all := cmdtest.Parse[struct {
			Recipes, Waits []struct{}
			Left           int `json:"left_out"`
		}](t, text)
		require.Zero(t, all.Left)
		if verb == "ls" {
			require.Len(t, all.Recipes, locks)
		} else {
			require.Len(t, all.Waits, waiters)
		}
		require.Positive(t, fault.Fired(), "nothing was held back, and this test proves nothing")
		require.LessOrEqual(t, g.most, look.Surveyors, "requests under way at once")
		require.Greater(t, g.most, 1, "one after the other: that takes long")
		require.LessOrEqual(t, g.reads, 1+locks/inDir+locks+locks+waiters, "a listing of each node, a read of each contender")
	}
}

func BenchmarkTenThousandLocks(b *testing.B) {
	for _, backend := range []zktest.Backend{zktest.Embedded, zktest.Real} {
		b.Run(backend.String(), func(b *testing.B) {
			w := zktest.NewPrivate(b, backend)
			manyHeld(b, w, 10_000)
			for _, verb := range []string{"ls", "graph", "doctor"} {
				b.Run(verb, func(b *testing.B) {
					for b.Loop() {
						called(b, w, verb, cmdtest.Below(w))
					}
				})
			}
		})
	}
}
