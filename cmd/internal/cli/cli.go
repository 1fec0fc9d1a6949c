package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/attend"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo"
	"github.com/zkcoord/zkcoord/cmd/internal/run"
	"github.com/zkcoord/zkcoord/cmd/internal/see"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// verbs is the whole command line.
type verbs struct {
	conn.Connection

	JSON bool `group:"connection" help:"Write JSON, one object per line."`

	Demo          demo.DemoVerbs        `cmd:"" help:"See coordination at work, with real processes that are really killed."`
	Lock          run.LockVerb          `cmd:"" help:"Run a command while holding a lock."`
	Ls            see.LsVerb            `cmd:"" help:"List the recipes at a path and below: who holds, how many wait, what is odd."`
	Graph         see.GraphVerb         `cmd:"" help:"Tell who waits for whom, over all paths, and whether some wait in a circle."`
	Doctor        see.DoctorVerb        `cmd:"" help:"Look for what is wrong: servers, sessions, clocks, permissions, nodes left behind."`
	Inspect       see.InspectVerb       `cmd:"" help:"Show who holds a lock and who waits for it; who is in a double barrier; what is in a queue."`
	Top           see.TopVerb           `cmd:"" help:"The same again and again, until q is typed."`
	Held          see.HeldVerb          `cmd:"" help:"Tell by the exit status whether something is still held: a health probe."`
	Revoke        see.RevokeVerb        `cmd:"" help:"Ask the holder of a lock to give it up."`
	Break         see.BreakVerb         `cmd:"" help:"Take a lock from its holder by force."`
	Remove        see.RemoveVerb        `cmd:"" help:"Delete what is left of a recipe that nobody uses any more."`
	Elect         run.ElectVerb         `cmd:"" help:"Run a command while leading, or tell who leads."`
	Barrier       run.BarrierVerbs      `cmd:"" help:"Let processes wait until another opens the way."`
	Doublebarrier run.DoubleBarrierVerb `cmd:"" help:"Run a command in each of N processes: all start together and finish together."`
	Once          run.OnceVerb          `cmd:"" help:"Run a command unless it was done already, by any process; or list such jobs."`
	Cron          run.CronVerb          `cmd:"" help:"Run a command at certain times, each slot by one of all processes; or list the slots."`
	Slot          run.SlotVerb          `cmd:"" help:"Run a command with a number of its own, out of N; or list the numbers."`
	Shards        run.ShardsVerb        `cmd:"" help:"Run a command for each key that this process owns; or show who owns which."`
	Queue         run.QueueVerbs        `cmd:"" help:"Put items into a queue, take them out, process them."`
	Ui            see.UIVerb            `cmd:"" help:"Serve a page that shows, live, what stands at a path and below, and who waits for whom."`
	Exporter      see.ExporterVerb      `cmd:"" help:"Serve metrics for Prometheus of what stands at paths and below."`
	Attend        attend.Verb           `cmd:"" help:"Close the sessions of this host's processes that are killed: others need not wait for the session timeout."`
	Server        serverVerb            `cmd:"" help:"Run an in-memory server for development and tests."`
	Version       versionVerb           `cmd:"" help:"Tell the version."`

	Completion completionVerb `cmd:"" help:"Write what a shell needs to complete command lines."`

	Farewell  attend.Farewell `cmd:"" name:"__farewell" hidden:""`
	Manual    manualVerb      `cmd:"" name:"__manual" hidden:""`
	Reference referenceVerb   `cmd:"" name:"__reference" hidden:""`
	Seller    demo.SellerVerb `cmd:"" name:"__seller" hidden:""`
}

const about = `Coordination on ZooKeeper, to see and to use.

The servers are named by --zk or ZK_SERVERS as host:port,host:port/chroot. The demo starts a server of its own when none is named.

Options stand before the path where something follows the path. Write -- before what may begin with a dash.`

// Main runs a command line, which begins with the name that the program was
// called by, and returns the status to exit with.
func Main(args []string) int {
	empty := conn.UnsetEmptyVariables()
	term.Program = term.CalledBy(args)
	if completing(os.Stdout, args) {
		return term.ExitOK
	}
	args = withVerbs(args[min(1, len(args)):])
	notes := term.NewNotes(os.Stderr)
	defer notes.Flush()
	std := &term.Streams{In: os.Stdin, Out: &term.Output{File: os.Stdout}, Err: notes}
	v, ctx, err := parseArgs(std, args)
	if err != nil {
		return std.Finish(err, conn.Hint)
	}
	std.JSON, std.Account, v.Note, v.EmptyVariables = v.JSON, accountOf(ctx, nil), std.Note, empty
	return std.Finish(ctx.Run(std, &v.Connection), conn.Hint)
}

// withVerbs writes --version and help VERB, as other commands have them, as
// they are called here.
func withVerbs(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// newParser makes what reads a command line into v.
func newParser(v *verbs, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(v, append([]kong.Option{
		kong.Name(term.Program), kong.Description(about),
		kong.ExplicitGroups([]kong.Group{{Key: "connection", Title: "Flags of every verb:"}}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(duration)),
		kong.KindMapper(reflect.String, kong.MapperFunc(verbatim)),
	}, opts...)...)
}

// parseArgs reads the command line, or returns what is wrong with it.
func parseArgs(std *term.Streams, args []string) (*verbs, *kong.Context, error) {
	v := &verbs{}
	parser, err := newParser(v, kong.Writers(std.Out, std.Err), kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: min(term.Width(std.Out), 100)}))
	if err != nil {
		return nil, nil, term.ExitWith(term.ExitFailed, "%w", err)
	}
	ctx, err := parser.Parse(args)
	if err == nil {
		if err = refuseEmpty(ctx); err == nil {
			return v, ctx, nil
		}
		std.Account, std.JSON = accountOf(ctx, args), v.JSON
		return nil, nil, err
	}
	if unwritten := (*term.ExitError)(nil); errors.As(err, &unwritten) {
		return nil, nil, unwritten
	}
	if joined := joinNegative(args, err); joined != nil {
		return parseArgs(std, joined)
	}
	var failed *kong.ParseError
	if errors.As(err, &failed) && failed.Context != nil {
		if len(args) == 0 {
			parser.Stdout = std.Err
			_ = failed.Context.PrintUsage(false)
			return nil, nil, term.Silently(term.ExitUsage)
		}
		std.Account = accountOf(failed.Context, args)
	}
	std.JSON = asksForJSON(args)
	return nil, nil, wrong(err)
}

// refuseEmpty refuses options that are given without a value, such as --node
// "$NODE" where the variable is not set: the verb would take the option for
// absent, and do what nobody asked for.
func refuseEmpty(ctx *kong.Context) error {
	for _, given := range ctx.Path {
		if given.Flag == nil || given.Resolved || given.Flag.Tag.Has("mayBeEmpty") || !isEmpty(given.Flag.Target) {
			continue
		}
		return term.UsageError("--%s is empty: give it a value, or leave the option out", given.Flag.Name)
	}
	return nil
}

// isEmpty reports whether a string, or one of several, is empty.
func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.String:
		return value.Len() == 0
	case reflect.Pointer:
		return !value.IsNil() && isEmpty(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			if isEmpty(value.Index(i)) {
				return true
			}
		}
		return value.Len() == 0
	}
	return false
}

// asksForJSON reports whether a command line that cannot be read has --json.
func asksForJSON(args []string) bool {
	if at := slices.Index(args, "--"); at >= 0 {
		args = args[:at]
	}
	return slices.Contains(args, "--json")
}

// verbatim takes an argument as it is, byte by byte. Kong's own decoder goes
// through JSON, which has only UTF-8.
func verbatim(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(fmt.Sprint(token.Value))
	}
	return err
}

// mostSeconds is about what a duration can hold.
const mostSeconds = 9e9

// duration reads Go's notation, and plain numbers as seconds, as other commands
// take them.
func duration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	seconds, plain := strconv.ParseFloat(text, 64)
	if plain == nil && math.Abs(seconds) < mostSeconds {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	switch {
	case plain == nil && math.Abs(seconds) >= mostSeconds:
		return fmt.Errorf("%s seconds are too long: the most is 285 years", text)
	case err != nil:
		return fmt.Errorf("%q is not a duration; write for example 500ms, 10s or 10", text)
	case d <= 0 && ctx.Value.Tag.Has("positive"):
		return fmt.Errorf("%v: it must be positive", d)
	}
	target.SetInt(int64(d))
	return nil
}

// version and commit are set by a build of a release; see scripts/dist.sh.
var version, commit string

type versionVerb struct{}

// Run prints what the build has set, or else what the Go toolchain noted.
func (versionVerb) Run(s *term.Streams) error {
	v := struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"go"`
	}{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = setting.Value
			}
		}
	}
	v.Version, v.Commit = cmp.Or(version, v.Version), cmp.Or(commit, v.Commit)
	of := ""
	if v.Commit != "" {
		of = ", commit " + v.Commit
	}
	return s.Print(v, "%s %s (%s%s)\n", term.Program, v.Version, v.Go, of)
}
