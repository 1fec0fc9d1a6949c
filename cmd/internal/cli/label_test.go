//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
	"github.com/zkcoord/zkcoord/zkembed/control"
)

func TestALabelIsShownOfTheHolderAndOfThoseWhoWait(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("l")
		holder := cmdtest.On(t, w,
			cmdtest.Sh(path, cmdtest.UntilEOF, "--label", "nightly\t\x1b[31mbackup", "--on-revoke", "ignore")...).Begun()
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
		taker := cmdtest.On(t, w, "queue", "take", "--label", "our taker", "--timeout", "60", w.Path("q")).
			InLine(w, w.Path("q/consumers"), 1)
		owners := ""
		shown := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
		for _, c := range shown.Contenders {
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
		cmdtest.Must(w.Admin().Multi(ops...))
		ops = nil
	}
	create := func(path string, flags int32) {
		ops = append(ops,
			&zk.CreateRequest{Path: path, Data: []byte("job host7 4711"), Acl: zk.WorldACL(zk.PermAll), Flags: flags})
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
	flags := []string{"--zk", w.ConnectString(), "--connect-timeout", "5m", "--json"}
	status, output, notes := inProcess(append(flags, args...)...)
	require.Empty(t, notes)
	return output, status
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

func TestEveryVerbTellsInTimeAndInJSONThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	addr := cmdtest.SilentServer(t)
	for _, verb := range []string{
		"ls /l", "graph /l", "exporter /l", "ui /l", "inspect /l", "top /l", "revoke /l", "break --yes /l",
		"queue put /l x", "queue take /l", "queue peek /l", "queue len /l", "queue receive /l -- true",
		"elect --who /l", "elect --observe /l", "elect /l -- true", "lock /l -- true", "lock --slots 2 /l -- true",
		"barrier set /l", "barrier open /l", "barrier wait /l", "doublebarrier -n 2 /l -- true",
		"cron --list /l", "cron /l @hourly -- true", "once /l key -- true", "once --list /l", "once --forget /l key",
		"slot /l 2 -- true", "slot --list /l", "slot --forget name /l",
		"shards /l", "shards --plan /l", "shards --keys a /l -- true",
		"demo stock",
	} {
		var p *cmdtest.Process
		args := append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)
		cmdtest.InTime(t, 1500*time.Millisecond, func() time.Duration {
			begun := time.Now()
			p = cmdtest.Start(t, args...)
			require.Equal(t, term.ExitUnavailable, p.Exit(), verb)
			return time.Since(begun)
		})
		object := cmdtest.TheObject(t, p, verb)
		require.EqualValues(t, term.ExitUnavailable, object["status"], verb)
		require.Contains(t, object["error"], "no session", verb)
		if name, isDemo := strings.CutPrefix(verb, "demo "); isDemo {
			require.Equal(t, name, object["demo"])
			require.Equal(t, false, object["ok"], verb)
			continue
		}
		if strings.HasPrefix(verb, "exporter ") { // which has several
			require.NotContains(t, object, "path")
			continue
		}
		require.Equal(t, "/l", object["path"], verb)
	}
}

func TestACommandLineThatIsWrongIsToldInJSONToo(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{
		"lokc /l", "inspect", "inspect l", "queue put --priority x /q y", "lock --slots 0 /l -- true", "demo stock --kill -1",
		"server --addr nowhere",
	} {
		p := cmdtest.Start(t, append([]string{"--json", "--zk", "127.0.0.1:1"}, strings.Fields(verb)...)...)
		require.Equal(t, term.ExitUsage, p.Exit(), verb)
		object := cmdtest.TheObject(t, p, verb)
		require.EqualValues(t, term.ExitUsage, object["status"], verb)
		require.NotEmpty(t, object["error"], verb)
	}
	p := cmdtest.Start(t, "--json", "--zk", "127.0.0.1:1", "exporter", "--listen", "nowhere", "/a", "/b")
	require.NotZero(t, p.Exit())
	require.NotContains(t, cmdtest.TheObject(t, p, "exporter"), "path", "there are two")
	require.False(t, asksForJSON(strings.Fields("lock /l -- tool --json")), "that is the command's")
}

func TestWhatFailsHalfWayIsToldInOneObject(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Start(t,
		append(cmdtest.Target(w), "--json", "queue", "put", w.Path("q"), "one", "two", strings.Repeat("x", 100))...)
	require.Zero(t, p.Exit())
	cmdtest.Private(t, w, "someone", "secret")
	p = cmdtest.Start(t, append(cmdtest.Target(w), "--json", "queue", "put", w.Path("private/q"), "one")...)
	require.Equal(t, term.ExitFailed, p.Exit())
	object := cmdtest.TheObject(t, p, "queue put")
	require.EqualValues(t, 0, object["put"])
	require.EqualValues(t, term.ExitFailed, object["status"])
	require.Contains(t, object["error"], "not permitted")

	taken := cmdtest.Start(t, "--json", "server", "--addr", strings.Split(w.ConnectString(), "/")[0])
	require.Equal(t, term.ExitFailed, taken.Exit())
	object = cmdtest.TheObject(t, taken, "server")
	require.Contains(t, object["error"], strings.Split(w.ConnectString(), "/")[0])
	require.Contains(t, object["error"], "--addr")
}

func TestTheObjectOfAnElectionThatFailsLeavesTheOutputToTheCommand(t *testing.T) {
	t.Parallel()
	addr := cmdtest.SilentServer(t)
	for verb, ofCommand := range map[string]bool{
		"elect -c true /e": true, "elect -vc true /e": true, "elect -vctrue /e": true, "elect --command true /e": true,
		"elect /e true": true, "elect /e -- true": true, "elect -- /e true": true,
		"elect --who /e": false, "elect --observe -- /e": false,
		// These are usage errors.
		"elect -vc true --timeout x /e": true, "elect -vc true e": true, "elect --who --again /e": false,
		"elect --who -v /e": false, "elect --connect-timeout 0 --who /e": false,
	} {
		p := cmdtest.Start(t,
			append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)...)
		require.Contains(t, []int{term.ExitUnavailable, term.ExitUsage}, p.Exit(), verb)
		place := ""
		if ofCommand {
			place = " -- "
		}
		require.EqualValues(t, p.Exit(), cmdtest.TheObject(t, p, place)["status"], verb)
	}
}

func TestTheServerServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
		address := server.Line()
		require.Equal(t, 3, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "sh", "-c", "exit 3").Exit())
		server.Signal(s)
		require.Empty(t, server.Gives(0))
	}
}

func TestTheServerTellsItsAddressInJSON(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "--json", "server", "--addr", "127.0.0.1:0")
	address := cmdtest.Parse[map[string]string](t, server.Line())["connect"]
	require.Equal(t, 0, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "true").Exit())
	server.EndsBy(syscall.SIGINT, 0)
}

func TestTheServerLetsTestsMakeFaultsOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--control", "127.0.0.1:0")
	address, faults := server.Line(), control.NewClient(server.Line())
	fault, err := faults.Inject(t.Context(), control.Fault{Do: control.ReplyError, Error: "NoAuth", PathPrefix: "/l"})
	require.NoError(t, err)
	cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "true").Ends(term.ExitOwnFault, "not permitted")
	fault, err = faults.Remove(t.Context(), fault.ID)
	require.NoError(t, err)
	require.Positive(t, fault.Struck)
	require.Equal(t, 0, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "true").Exit())
	server.EndsBy(syscall.SIGTERM, 0)

	server = cmdtest.Start(t, "--json", "server", "--addr", "127.0.0.1:0", "--control", "127.0.0.1:0")
	_, err = control.NewClient(cmdtest.Parse[map[string]string](t, server.Line())["control"]).Faults(t.Context())
	require.NoError(t, err)
	for _, at := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--control", at).Ends(term.ExitUsage, "not loopback")
	}
	cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--control", "x").Ends(term.ExitUsage, "HOST:PORT")
}

func TestTheServerAnswersHealthChecksAsZooKeepersAdminServerDoes(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	_, commands := server.Line(), server.Line()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, commands+"/ruok", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"command": "ruok", "error": null}`, string(text))
	server.EndsBy(syscall.SIGTERM, 0)
}

func TestTheServersTickBoundsItsSessions(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
	// A session lasts 20 ticks at most: two seconds do not fit into a third of
	// it.
	cmdtest.Start(t, "--zk", server.Line(), "--session-timeout", "1h", "lock", "--kill-after", "2s", "/l", "--", "true").
		Ends(term.ExitUsage, "2s", "does not fit")
	server.EndsBy(syscall.SIGINT, 0)
}

// section is a part of the document about the verbs that look.
func section(t *testing.T, title string) string {
	t.Helper()
	text := string(cmdtest.Must(os.ReadFile("../../../docs/looking.md")))
	_, text, found := strings.Cut(text, "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// fieldsOf are the fields of an object in JSON, and of those within it; some
// may be left out of it.
func fieldsOf(object reflect.Type, within bool) (always, perhaps []string) {
	for object.Kind() == reflect.Slice || object.Kind() == reflect.Pointer {
		object = object.Elem()
	}
	if object.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range object.NumField() {
		f := object.Field(i)
		if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
			continue
		}
		if name, omit, _ := strings.Cut(f.Tag.Get("json"), ","); omit != "" {
			perhaps = append(perhaps, name)
		} else if name != "" {
			always = append(always, name)
		}
		if within || f.Anonymous {
			a, p := fieldsOf(f.Type, within)
			always, perhaps = append(always, a...), append(perhaps, p...)
		}
	}
	return always, perhaps
}

var (
	quoted  = regexp.MustCompile(`(\S?)\s*"([a-z0-9_]+)"`)
	inWords = regexp.MustCompile("`([a-z0-9_]+)`")
)

// keys are the keys of objects in a text; their values may be left out.
func keys(text string) (found []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		if match[1] != ":" { // which comes before a value
			found = append(found, match[2])
		}
	}
	return found
}

func TestTheDocumentTellsEveryFieldOfTheJSONAndNoOther(t *testing.T) {
	t.Parallel()
	inspect, list, doctor := section(t, "inspect, top"), section(t, "ls, graph"), section(t, "doctor")
	object := regexp.MustCompile("`--json`\\s+writes\\s+`({.*})`")
	lists := object.FindAllString(list, -1)
	require.Len(t, lists, 2, "of ls, and of graph")
	part := func(name string) string {
		found := regexp.MustCompile("`\"" + name + "\": ({.*})`").FindStringSubmatch(inspect)
		require.NotNil(t, found, name)
		return found[1]
	}
	line := regexp.MustCompile("(?s)```json\n(.*?)```").FindString(inspect)
	for name, c := range map[string]struct {
		objects []any
		within  bool
		told    string
		words   string
	}{
		"inspect": {[]any{look.Report{}, look.Contender{}}, false, line, inspect},
		"round":   {[]any{look.RoundReport{}}, true, part("round"), inspect},
		"queue":   {[]any{look.QueueReport{}}, true, part("queue"), inspect},
		"closed":  {[]any{look.Closing{}}, true, part("closed"), inspect},
		"ls":      {[]any{see.Listing{}}, true, lists[0], list},
		"graph":   {[]any{see.WaitGraph{}}, true, lists[1], list},
		"doctor":  {[]any{see.Diagnosis{}}, true, object.FindString(doctor), doctor},
	} {
		fields, described := map[string]bool{}, map[string]bool{}
		for _, key := range keys(c.told) {
			described[key] = true
		}
		for _, o := range c.objects {
			always, perhaps := fieldsOf(reflect.TypeOf(o), c.within)
			for _, field := range always {
				fields[field] = true
			}
			for _, field := range perhaps { // may be described in words
				fields[field] = true
				inWords := inWords.FindAllString(c.words, -1)
				if slices.Contains(inWords, "`"+field+"`") || strings.Contains(c.words, "`\""+field+"\":") {
					described[field] = true
				}
			}
		}
		require.Equal(t, slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(described)), name)
	}
}

func TestTheDocumentTellsEveryStateOfAContender(t *testing.T) {
	t.Parallel()
	text := section(t, "inspect, top")
	made := map[string]bool{}
	for _, file := range cmdtest.Must(filepath.Glob("../look/*.go")) {
		source := string(cmdtest.Must(os.ReadFile(file)))
		for _, match := range regexp.MustCompile(`State(?:: | = )"([a-z]+)"`).FindAllStringSubmatch(source, -1) {
			made[match[1]] = true
			require.Contains(t, text, "`"+match[1]+"`")
		}
	}
	require.Len(t, made, 6)
}

func TestTheDocumentTellsEveryMetricAndNoOther(t *testing.T) {
	t.Parallel()
	var made, told []string
	source := string(cmdtest.Must(os.ReadFile("../see/exporter.go")))
	for _, match := range regexp.MustCompile(`(?:metric|sample|known|gauge)\("([a-z_]+)"`).FindAllStringSubmatch(source, -1) {
		made = append(made, match[1])
	}
	document := section(t, "exporter")
	for _, match := range regexp.MustCompile("`(?:zkcoord_path)?_([a-z_]+)`").FindAllStringSubmatch(document, -1) {
		told = append(told, match[1])
	}
	require.ElementsMatch(t, made, told)
	w := zktest.New(t, zktest.Embedded)
	object := cmdtest.Parse[map[string]string](t,
		cmdtest.On(t, w, "--json", "exporter", "--listen", "127.0.0.1:0", "/").Line())
	require.Equal(t, []string{"metrics"}, slices.Collect(maps.Keys(object)))
	require.Contains(t, section(t, "JSON"), "| `exporter` | `metrics` |")
}

func TestExitStatusesOfVerbsThatLook(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, cmdtest.Below(w), nil)
	secret := w.Path("secret")
	cmdtest.Must(w.Admin().Create(secret, nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	for verb, status := range map[string]int{
		"inspect " + secret: term.ExitFailed, "top " + secret: term.ExitFailed, // refused
		"ls " + secret: term.ExitOK, "graph " + secret: term.ExitOK, // which say so
		"doctor " + secret: term.ExitFailed, // to whom that is wrong
		"inspect":          term.ExitUsage, "top l": term.ExitUsage, "ls l": term.ExitUsage, "graph --most 0": term.ExitUsage,
		"doctor l": term.ExitUsage, "exporter l": term.ExitUsage,
		"exporter --listen " + strings.Split(w.ConnectString(), "/")[0] + " /": term.ExitFailed, // taken
	} {
		require.Equal(t, status, cmdtest.On(t, w, strings.Fields(verb)...).Exit(), verb)
	}
}
