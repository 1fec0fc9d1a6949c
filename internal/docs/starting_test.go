package docs

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// docs/starting.md's program is built with its own go.mod, as a user's would
// be, and run on an embedded server.
func TestF97TheWholeProgramInTheDocumentsWritesOneReportHoweverManyHostsStartIt(t *testing.T) {
	parent := t.TempDir()
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(checkout, parent+"/zkcoord"))
	dir := parent + "/report"
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, kind := range map[string]string{"main.go": "go main.go", "go.mod": "go.mod"} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(blocksOfKind(t, kind)[0].text), 0o600))
	}
	require.NoError(t, os.WriteFile(dir+"/go.sum", []byte(read(t, root+"/go.sum")), 0o600))
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0")
		return cmd
	}
	out, err := command("go", "build", "-buildvcs=false", "-o", "report", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	for name, wait := range map[string]func(ended <-chan string){
		"each after the one before": func(ended <-chan string) { require.NotEmpty(t, <-ended) },
		"0.25 s apart":              func(<-chan string) { <-time.After(250 * time.Millisecond) },
	} {
		srv := coordtest.Embedded(t)
		var hosts []<-chan string
		for range 3 {
			run := command(dir + "/report")
			run.Env = append(run.Env, "ZK_SERVERS="+srv.ConnectString())
			ended := make(chan string, 2)
			hosts = append(hosts, ended)
			go func() {
				out, err := run.CombinedOutput()
				text := fmt.Sprint(string(out), err)
				ended <- text // once for wait
				ended <- text
			}()
			wait(ended)
		}
		written := 0
		for _, ended := range hosts {
			out := zktest.Receive(t, time.Minute, ended, "the end of a host")
			require.Contains(t, out, "the report is written")
			written += strings.Count(out, "writes the report, with a token: true")
		}
		require.Equal(t, 1, written, name)
	}
}

// serve calls run, the Run or Stay of a recipe, until a signal ends signalled.
// Then leave, if not nil, has the grace to end it in order, before run's
// context ends. A planned stop is no error.
func serve(signalled context.Context, grace time.Duration, run, leave func(context.Context) error) error {
	ctx, end := context.WithCancel(context.WithoutCancel(signalled))
	defer end()
	defer context.AfterFunc(signalled, func() {
		defer end()
		if leave != nil {
			leaving, cancel := context.WithTimeout(ctx, grace)
			defer cancel()
			_ = leave(leaving) // if it fails, run ends all the same
		}
	})()
	err := run(ctx)
	if signalled.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// planned is docs/starting.md's service with shards.
func planned(signalled context.Context, tenants *shards.Shards, own shards.Func) error {
	run := func(ctx context.Context) error { return tenants.Run(ctx, own) }
	err := serve(signalled, 30*time.Second, run, tenants.Leave)
	return err
}

// With the signal's context for Run, keys would be cut off without draining.
func TestAServiceThatASignalStopsDrainsItsKeysAndEndsWithoutAnError(t *testing.T) {
	srv, ctx := coordtest.Embedded(t), coordtest.Limited(t)
	signalled, signal := context.WithCancel(ctx)
	var cut atomic.Int64
	begun := make(chan string, 100)
	own := func(name string) shards.Func {
		return func(ctx context.Context, key string, _ coord.Held) error {
			begun <- name
			select {
			case <-shards.Draining(ctx):
			case <-ctx.Done():
				cut.Add(1)
			}
			return nil
		}
	}
	member := func() *shards.Shards {
		client, err := coord.Open(ctx, srv.ConnectString())
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(context.Background()) })
		s, err := shards.New(client, "/tenants", shards.Keys("ants", "bees", "cats"))
		require.NoError(t, err)
		return s
	}
	stopped := coordtest.Go(func() error { return planned(signalled, member(), own("stopped")) })
	for range 3 {
		require.Equal(t, "stopped", zktest.Receive(t, coordtest.Soon, begun, "it owns a key"))
	}
	other := member()
	stays := coordtest.Go(func() error { return other.Run(ctx, own("other")) })
	require.Equal(t, "other", zktest.Receive(t, coordtest.Soon, begun, "a key moves"))
	signal()
	require.NoError(t, zktest.Receive(t, coordtest.Soon, stopped, "the end"))
	require.Zero(t, cut.Load(), "keys whose function was cut off")
	for range 2 {
		require.Equal(t, "other", zktest.Receive(t, coordtest.Soon, begun, "the other keys have moved"))
	}
	require.NoError(t, other.Leave(ctx))
	require.NoError(t, zktest.Receive(t, coordtest.Soon, stays, "the end of the other"))
}

func TestAServiceOfEachKindThatASignalStopsEndsWithoutAnError(t *testing.T) {
	srv, ctx := coordtest.Embedded(t), coordtest.Limited(t)
	client, err := coord.Open(ctx, srv.ConnectString())
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	leader, err := election.New(client, "/leader", election.StopGrace(30*time.Second))
	require.NoError(t, err)
	schedule, err := cron.New(client, "/cron", eachSecond{}, cron.StopGrace(30*time.Second))
	require.NoError(t, err)
	jobs, err := queue.New(client, "/jobs")
	require.NoError(t, err)
	require.NoError(t, jobs.Put(ctx, []byte("job")))
	members, err := group.New(client, "/members")
	require.NoError(t, err)
	at := make(chan string, 100)
	coordtest.Cases(t, map[string]func(context.Context) error{
		"election": func(ctx context.Context) error {
			return leader.Run(ctx, nil, func(ctx context.Context, _ *election.Term) error {
				at <- "election"
				<-ctx.Done()
				return ctx.Err()
			})
		},
		"cron": func(ctx context.Context) error {
			return schedule.Run(ctx, func(context.Context, *cron.Slot) ([]byte, error) { at <- "cron"; return nil, nil })
		},
		"queue": func(ctx context.Context) error {
			return jobs.Run(ctx, func(context.Context, *queue.Item) error { at <- "queue"; return nil })
		},
		"group": func(ctx context.Context) error {
			at <- "group"
			return members.Stay(ctx, "me", nil)
		},
	}, func(t *testing.T, run func(context.Context) error) {
		signalled, signal := context.WithCancel(ctx)
		ended := coordtest.Go(func() error { return serve(signalled, 0, run, nil) })
		zktest.Receive(t, coordtest.Soon, at, "it runs")
		signal()
		require.NoError(t, zktest.Receive(t, coordtest.Soon, ended, "the end"))
	})
}

func TestAServiceThatFailsEndsWithItsError(t *testing.T) {
	failure := errors.New("no permission")
	require.Equal(t, failure, serve(t.Context(), 0, func(context.Context) error { return failure }, nil))
}

// eachSecond is a schedule.
type eachSecond struct{}

func (eachSecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// ready answers a readiness probe: 200 while the client is connected.
func ready(client *coord.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !client.Info().Connected {
			http.Error(w, "no connection to ZooKeeper", http.StatusServiceUnavailable)
		}
	}
}

// opened is docs/starting.md's client with two observers.
func opened(ctx context.Context, servers string, metrics func(event.Event), lost *atomic.Int64) (*coord.Client, error) {
	client, err := coord.Open(ctx, servers,
		coord.WithObserver(metrics),
		coord.WithObserver(func(e event.Event) {
			if e.Kind == event.Ended && !errors.Is(e.Err, coord.ErrReleased) {
				lost.Add(1)
			}
		}))
	return client, err
}

func TestTheReadinessProbeAndTheObserversInTheDocumentsWork(t *testing.T) {
	srv := coordtest.Embedded(t)
	var metrics, lost atomic.Int64
	client, err := opened(coordtest.Limited(t), srv.ConnectString(), func(event.Event) { metrics.Add(1) }, &lost)
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	m, err := lock.New(client, "/lock")
	require.NoError(t, err)
	h, err := m.Acquire(t.Context())
	require.NoError(t, err)
	probe := func() int {
		w := httptest.NewRecorder()
		ready(client)(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return w.Code
	}
	require.Equal(t, http.StatusOK, probe())
	require.NoError(t, srv.ExpireSession(h.Session()))
	zktest.Receive(t, coordtest.Soon, h.Done(), "the loss")
	zktest.Eventually(t, coordtest.Soon, func() bool { return lost.Load() == 1 }, "the loss is observed")
	require.Positive(t, metrics.Load())
	srv.Stop()
	zktest.Eventually(t, coordtest.Soon, func() bool { return probe() == http.StatusServiceUnavailable },
		"it is not ready")
}

var held = flag.Int("held", 2000, "how many locks the measurement for docs/operations.md holds")

// docs/operations.md has the figures of larger runs, and their
// command.
func TestAHeldLockCostsTheServerLessThan4KiB(t *testing.T) {
	server := zktest.RequireReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	before := heap(t, server.PID())
	c, err := coord.Open(ctx, server.ConnectString(), coord.WithSessionTimeout(4*time.Second))
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	var all errgroup.Group
	all.SetLimit(64)
	for i := range *held {
		all.Go(func() error {
			m, err := lock.New(c, fmt.Sprintf("/sizing/%d", i))
			if err != nil {
				return err
			}
			_, err = m.Acquire(ctx)
			return err
		})
	}
	require.NoError(t, all.Wait())
	// A reading can be too high, by what is garbage since the collection, and
	// never too low.
	zktest.Eventually(t, 2*time.Minute, func() bool {
		each := (heap(t, server.PID()) - before) * 1024 / *held
		t.Logf("%d locks are held: %d bytes of the server's heap for each", *held, each)
		return each < 4096
	}, "it costs more")
}

// heap is how much of a server's heap is in use, in KiB, without garbage.
func heap(t *testing.T, pid int) int {
	t.Helper()
	jcmd := func(what string) string {
		out, err := exec.CommandContext(t.Context(), "jcmd", strconv.Itoa(pid), what).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	jcmd("GC.run")
	total := 0
	used := regexp.MustCompile(`(?m)^ .*(?:generation|heap) .*used (\d+)K`)
	for _, found := range used.FindAllStringSubmatch(jcmd("GC.heap_info"), -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		total += n
	}
	require.Positive(t, total)
	return total
}

const (
	module    = "github.com/zkcoord/zkcoord/"
	zkLibrary = "go-zookeeper/zk"
)

var update = flag.Bool("update", false, "write anew what documents show of the code")

// imports returns, for each package of the library, the command and the proofs,
// which others it imports in code that is no test, on Linux, and whether it
// imports the client library.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-f",
		`{{.ImportPath}} {{join .Imports " "}}`,
		"./...", "./cmd/...", "./internal/proofs/...")
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS=linux")
	text, err := list.Output()
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], module)
		if strings.HasPrefix(from, "examples") {
			continue // users' programs
		}
		all[from] = nil
		for _, to := range fields[1:] {
			own, ok := strings.CutPrefix(to, module)
			if ok || strings.HasSuffix(to, zkLibrary) {
				all[from] = append(all[from], strings.TrimPrefix(own, "github.com/"))
			}
		}
		slices.Sort(all[from])
	}
	require.Contains(t, all, "coord")
	return all
}

// A room is a set of packages that may import the same ones.
type room string

const (
	command   room = "command"
	proof     room = "proof"
	handler   room = "handler above a recipe"
	recipe    room = "recipe"
	part      room = "part of a recipe"
	shared    room = "room that recipes share"
	primitive room = "primitive"
	client    room = "client"
	server    room = "server"
	library   room = "library"
)

// mayImport says where each room's data may flow, rooms from top to bottom.
var mayImport = map[room][]room{
	command:   {command, recipe, shared, primitive, server},
	proof:     {proof, recipe, shared, primitive, server, library},
	handler:   {recipe},
	recipe:    {recipe, part, shared, primitive},
	part:      {part, shared, primitive},
	shared:    {shared, primitive, client},
	primitive: {primitive, client, library},
	client:    {client, library},
	server:    {server},
}

func roomOf(pkg string) room {
	begins := func(folder string) bool { return strings.HasPrefix(pkg+"/", folder) }
	switch {
	case pkg == zkLibrary:
		return library
	case pkg == "coord", pkg == "coord/attend", pkg == "coord/event", pkg == "coord/fence", pkg == "coord/inspect":
		return primitive
	case pkg == "coord/recipe", pkg == "coord/hold", pkg == "internal/layout":
		return shared
	case begins("coord/internal/"):
		return client
	case pkg == "coord/recipetest":
		return proof
	case pkg == "coord/election/probe":
		return handler
	case begins("coord/") && strings.Contains(pkg, "/internal/"):
		return part
	case begins("coord/"):
		return recipe
	case begins("cmd/internal/cmdtest/"):
		return proof
	case begins("cmd/"):
		return command
	case begins("zkembed/"), pkg == "internal/jute":
		return server
	default:
		return proof
	}
}

func TestDataFlowsOneWay(t *testing.T) {
	for from, direct := range imports(t) {
		for _, to := range direct {
			if !slices.Contains(mayImport[roomOf(from)], roomOf(to)) {
				t.Errorf("%s, a %s, imports %s, a %s", from, roomOf(from), to, roomOf(to))
			}
		}
	}
}

// drawing draws the library's arrows: a line for each importer, above what it
// imports. What concerns all recipes is drawn once, to and from a box around
// them.
func drawing(all map[string][]string) string {
	const box = "recipes"
	var inside []string
	for pkg := range all {
		if roomOf(pkg) == recipe {
			inside = append(inside, pkg)
		}
	}
	slices.Sort(inside)
	shared := slices.Clone(all[inside[0]])
	for _, pkg := range inside {
		shared = slices.DeleteFunc(shared, func(to string) bool { return !slices.Contains(all[pkg], to) })
	}
	arrows := map[string][]string{box: shared}
	for from, direct := range all {
		if !strings.HasPrefix(from, "coord") {
			continue
		}
		in := func(set []string) func(string) bool {
			return func(to string) bool { return slices.Contains(set, to) }
		}
		if rest := slices.DeleteFunc(slices.Clone(direct), in(inside)); len(direct)-len(rest) == len(inside) {
			direct = append(rest, box)
		}
		if in(inside)(from) {
			direct = slices.DeleteFunc(slices.Clone(direct), in(shared))
		}
		if len(direct) > 0 {
			arrows[from] = direct
		}
	}
	var height func(pkg string) int
	height = func(pkg string) int {
		highest := 0
		for _, to := range arrows[pkg] {
			highest = max(highest, 1+height(to))
		}
		return highest
	}
	var b strings.Builder
	fmt.Fprintf(&b, "flowchart TD\n  subgraph %s\n    %s\n  end\n", box, strings.Join(inside, " & "))
	for _, from := range slices.SortedFunc(maps.Keys(arrows), func(a, b string) int {
		return cmp.Or(cmp.Compare(height(b), height(a)), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "  %s --> %s\n", from, strings.Join(arrows[from], " & "))
	}
	return b.String()
}

var drawn = regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$")

func TestTheDrawingOfThePackagesShowsTheirImports(t *testing.T) {
	const name = root + "/docs/design.md"
	text := read(t, name)
	at := drawn.FindStringSubmatchIndex(text)
	require.NotNil(t, at, "docs/design.md has no drawing")
	is, want := text[at[2]:at[3]], drawing(imports(t))
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text[:at[2]]+want+text[at[3]:]), 0o600))
		return
	}
	require.Equal(t, want, is, "go test ./internal/docs -run Drawing -update writes it")
}
