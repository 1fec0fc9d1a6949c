package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// verbs is the whole command line.
type verbs struct {
	connection

	JSON bool `group:"connection" help:"Write JSON, one object per line."`

	Demo          demoVerbs         `cmd:"" help:"See coordination at work, with real processes that are really killed."`
	Lock          lockVerb          `cmd:"" help:"Run a command while holding a lock."`
	Ls            lsVerb            `cmd:"" help:"List every lock, election, barrier, semaphore and queue at a path and below: who holds, how many wait, what is odd."`
	Graph         graphVerb         `cmd:"" help:"Tell who waits for whom, over all paths, and whether some wait in a circle."`
	Doctor        doctorVerb        `cmd:"" help:"Look for what is wrong: servers, sessions, clocks, permissions, nodes left behind."`
	Inspect       inspectVerb       `cmd:"" help:"Show who holds a lock and who waits for it; who is in a double barrier; what is in a queue."`
	Top           topVerb           `cmd:"" help:"The same again and again, until q is typed."`
	Held          heldVerb          `cmd:"" help:"Tell by the exit status whether something is still held: a health probe."`
	Revoke        revokeVerb        `cmd:"" help:"Ask the holder of a lock to give it up."`
	Break         breakVerb         `cmd:"" help:"Take a lock from its holder by force."`
	Elect         electVerb         `cmd:"" help:"Run a command while leading, or tell who leads."`
	Barrier       barrierVerbs      `cmd:"" help:"Let processes wait until another opens the way."`
	Doublebarrier doubleBarrierVerb `cmd:"" help:"Run a command in each of N processes: all start together and finish together."`
	Queue         queueVerbs        `cmd:"" help:"Put items into a queue, take them out, process them."`
	Ui            uiVerb            `cmd:"" help:"Serve a page that shows, live, what stands at a path and below, and who waits for whom."`
	Exporter      exporterVerb      `cmd:"" help:"Serve metrics for Prometheus of what stands at paths and below."`
	Server        serverVerb        `cmd:"" help:"Run an in-memory server for development and tests."`
	Version       versionVerb       `cmd:"" help:"Tell the version."`

	Completion completionVerb `cmd:"" help:"Write what a shell needs to complete command lines."`

	Manual   manualVerb   `cmd:"" name:"__manual" hidden:""`
	Guard    guardVerb    `cmd:"" name:"__guard" hidden:""`
	Counter  counterVerb  `cmd:"" name:"__counter" hidden:""`
	Replica  replicaVerb  `cmd:"" name:"__replica" hidden:""`
	Producer producerVerb `cmd:"" name:"__producer" hidden:""`
	Consumer consumerVerb `cmd:"" name:"__consumer" hidden:""`

	Seller sellerVerb `cmd:"" name:"__seller" hidden:""`
}

const about = `Coordination on ZooKeeper, to see and to use.

The servers are named by --zk or ZK_SERVERS as host:port,host:port/chroot. The demos start a server of their own when none is named.`

// Main runs a command line, which begins with the name that the program was
// called by, and returns the status to exit with.
func Main(args []string) int {
	unsetEmptyVariables()
	program = calledBy(args)
	if completing(os.Stdout, args) {
		return exitOK
	}
	args = withVerbs(args[min(1, len(args)):])
	notes := newNotes(os.Stderr)
	defer notes.flush()
	std := &streams{in: os.Stdin, out: &output{File: os.Stdout}, err: notes}
	v, ctx, err := parseArgs(std, args)
	if err != nil {
		return std.finish(err)
	}
	std.json, std.account, v.note = v.JSON, accountOf(ctx, nil), std.note
	return std.finish(ctx.Run(std, &v.connection))
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
		kong.Name(program), kong.Description(about),
		kong.ExplicitGroups([]kong.Group{{Key: "connection", Title: "Flags of every verb:"}}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(duration)),
		kong.KindMapper(reflect.String, kong.MapperFunc(verbatim)),
	}, opts...)...)
}

// parseArgs reads the command line, or returns what is wrong with it.
func parseArgs(std *streams, args []string) (*verbs, *kong.Context, error) {
	v := &verbs{}
	parser, err := newParser(v, kong.Writers(std.out, std.err), kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: min(width(std.out), 100)}))
	if err != nil {
		return nil, nil, exitWith(exitFailed, "%w", err)
	}
	ctx, err := parser.Parse(args)
	if err == nil {
		return v, ctx, nil
	}
	if joined, ok := joinNegative(args, err); ok {
		return parseArgs(std, joined)
	}
	var failed *kong.ParseError
	if errors.As(err, &failed) && failed.Context != nil {
		if len(args) == 0 {
			parser.Stdout = std.err
			_ = failed.Context.PrintUsage(false)
			return nil, nil, silently(exitUsage)
		}
		std.account = accountOf(failed.Context, args)
	}
	std.json = asksForJSON(args)
	return nil, nil, wrong(err)
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
