package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	"github.com/muesli/roff"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// negative is how a number below zero looks on a command line, which is also
// how a flag looks.
var negative = regexp.MustCompile(`^-[0-9.]`)

// joinNegative writes --flag -5 as --flag=-5 where the number could not be
// read, or returns nil. The verb can then say what is wrong with it.
func joinNegative(args []string, err error) []string {
	if !strings.Contains(err.Error(), "(short flag)") {
		return nil
	}
	for i := range len(args) - 1 {
		if args[i] == "--" {
			break
		}
		if strings.HasPrefix(args[i], "-") && !strings.Contains(args[i], "=") && negative.MatchString(args[i+1]) {
			return slices.Concat(args[:i], []string{args[i] + "=" + args[i+1]}, args[i+2:])
		}
	}
	return nil
}

// wrong says in brief what is wrong with the command line, and where to read
// on.
func wrong(err error) error {
	told := strings.NewReplacer(`expected "<`, `missing: "<`, `<cmd> ...`, `-- <cmd> ...`,
		"expected a valid 64 bit int but got ", "not a whole number, or too large a one: ").Replace(err.Error())
	more := fmt.Sprintf("\"%s --help\" lists the verbs", term.Program)
	var failed *kong.ParseError
	if errors.As(err, &failed) && failed.Context != nil && failed.Context.Selected() != nil {
		verb := failed.Context.Selected()
		more = fmt.Sprintf("usage: %s %s\n\"%s --help\" says more", term.Program, synopsis(verb), verb.FullPath())
	}
	if args, ok := strings.CutPrefix(told, "unexpected argument "); ok && strings.HasPrefix(more, `"`) {
		told = "there is no verb " + args
	}
	return term.UsageError("%s\n%s", told, more)
}

// synopsis is a verb's command line. Flags come before a command that is run:
// those behind it are its own.
func synopsis(verb *kong.Node) string {
	line, found := strings.CutSuffix(verb.Summary(), " [flags]")
	if args := strings.IndexAny(line+"<", "<["); found {
		line = strings.TrimSpace(line[:min(args, len(line))]) + " " +
			strings.TrimSpace("[flags] "+line[min(args, len(line)):])
	}
	for _, arg := range verb.Positional {
		if arg.Target.Type() == reflect.TypeFor[conn.NodePaths]() {
			line = strings.Replace(line, arg.Summary(), arg.Summary()+" ...", 1)
		}
	}
	if runsAlways(verb) {
		return strings.Replace(line, "[<cmd> ...]", "-- <cmd> ...", 1)
	}
	return strings.Replace(line, "[<cmd> ...]", "[-- <cmd> ...]", 1)
}

// help is kong's, with that synopsis, and examples.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	out := ctx.Kong.Stdout
	var text bytes.Buffer
	ctx.Kong.Stdout = &text
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Kong.Stdout = out
	told := text.String()
	if verb := ctx.Selected(); verb != nil {
		told = strings.Replace(told, verb.Summary(), synopsis(verb), 1) + examplesOf(verb)
	}
	if err == nil {
		_, err = io.WriteString(out, told)
	}
	if err != nil {
		return term.ExitWith(term.ExitFailed, "the help could not be written: %w", err)
	}
	return nil
}

// summariesFirst puts the summary of each verb before its details, behind which
// the writer of the page would have it.
func summariesFirst(node *kong.Node) {
	for _, verb := range node.Children {
		if verb.Detail != "" {
			verb.Detail, verb.Help = verb.Help+"\n"+verb.Detail, ""
		}
		summariesFirst(verb)
	}
}

type manualVerb struct{}

// Run writes the manual page. Each verb has the command line that its help
// shows, on a line of its own.
func (manualVerb) Run(s *term.Streams, app *kong.Kong) error {
	summariesFirst(app.Model.Node)
	manual := mangokong.NewManPage(1, app.Model)
	for _, part := range []struct{ name, text string }{
		{"Exit status", statuses},
		{"Environment", variables(app.Model)},
		{"Examples", allExamples(app.Model)},
		{"See also", seeAlso},
	} {
		manual = manual.WithSection(part.name, part.text)
	}
	page := manual.Build(roff.NewDocument())
	title := func(line string) string { return `\fB` + strings.ReplaceAll(line, ".", `\&.`) + `\fP` }
	for _, verb := range app.Model.Leaves(true) {
		own, helps := title(verb.Summary()), title(synopsis(verb))
		page = strings.NewReplacer(own+"\n", helps+"\n", own, helps+"\n.br\n").Replace(page)
	}
	_, err := fmt.Fprint(s.Out, page)
	return err
}

// statuses are the exit statuses of the verbs that run a command; most others
// have some of them.
var statuses = strings.Join([]string{
	"Of the verbs that run CMD:",
	"CMD's own: CMD ended while the lock was held; 128+n if signal n ended it.",
	fmt.Sprintf("%d: usage error; nothing was changed.", term.ExitUsage),
	fmt.Sprintf("%d: no session with the servers in time (--connect-timeout).", term.ExitUnavailable),
	fmt.Sprintf("%d: with --try, the lock is held by another.", term.ExitBusy),
	fmt.Sprintf("%d: the lock was lost before CMD ended, and CMD was stopped.", term.ExitLost),
	"78: of shards, another member has this ID, or another list of keys.",
	"79: of doublebarrier, CMD succeeded here, and other members failed or died.",
	"80: of once, the attempts of the job are used up; once --forget has it done again.",
	fmt.Sprintf("%d: no turn within --timeout.", term.ExitTimeout),
	fmt.Sprintf("%d: CMD was not run for another reason, which the message says.", term.ExitOwnFault),
	"126, 127: CMD cannot be run; CMD is not found.",
	"128+n: signal n came during the wait.",
	fmt.Sprintf(
		"Of the others: %d, %d, %d and %d as above; %d if the servers refused a request, or the answer is no; %d if there is no node at the path.",
		term.ExitOK, term.ExitUsage, term.ExitUnavailable, term.ExitTimeout, term.ExitFailed, term.ExitAbsent),
}, "\n\n")

// variables describes the environment variables that stand for flags, and the
// ones that CMD gets.
func variables(app *kong.Application) string {
	text := ""
	for _, flag := range app.Flags {
		for _, name := range flag.Envs {
			text += fmt.Sprintf("%s: --%s. %s\n\n", name, flag.Name, flag.Help)
		}
	}
	return text +
		"CMD has COORD_PATH, COORD_NODE, COORD_TOKEN (the fencing token), COORD_SINCE and COORD_HELD (the nodes of all " +
		"locks that it runs under); with several paths COORD_PATH_1 and so on."
}

// allExamples returns the examples of every verb's help.
func allExamples(app *kong.Application) string {
	text := ""
	for _, verb := range app.Leaves(true) {
		for line := range strings.Lines(examples[verbName(verb)]) {
			text += fmt.Sprintf("%s %s\n\n", term.Program, strings.TrimRight(line, "\n"))
		}
	}
	return strings.TrimRight(text, "\n")
}

const seeAlso = "flock(1), timeout(1), systemd.service(5)\n\n" +
	"command.md, running.md and looking.md, in the folder doc/zkcoord of the installation: the reference, how CMD runs under a lock, and what the other verbs show."

// examples are command lines for the help of each verb, without the program's
// name. What follows # is for people.
var examples = map[string]string{
	"demo stock": "demo stock\ndemo stock --unsafe  # without the lock",
	"lock": `lock /locks/backup -- ./backup.sh
lock --try /locks/site -- make site  # not while another does it
lock --label nightly /locks/backup -- make dump
lock --timeout 5m --shared /locks/data -- ./read.sh
lock --slots 3 /locks/licences -- ./simulate
lock /accounts/7 /accounts/3 -- ./transfer.sh  # holding both
lock /locks/build -c 'make && make install'`,
	"ls":         "ls /\nls --json /locks",
	"graph":      "graph /\ngraph --json /locks",
	"doctor":     "doctor\ndoctor --json /",
	"completion": "completion bash",
	"inspect":    "inspect /locks/backup\ninspect --json /jobs",
	"top":        `top --every 5s /jobs`,
	"held":       "held  # inside of CMD\nheld --timeout 2s --node _c_7c1f0a9e-lock-0000000041 /locks/backup\nheld --json --token 8589934612 /services/billing",
	"revoke": `revoke --wait /locks/backup
revoke --force-after 1m /locks/backup
revoke --node entry-100-0000000007 /jobs  # one item of a queue`,
	"break":  "break /locks/backup\nbreak --yes --node entry-100-0000000007 /jobs",
	"remove": "remove /limits/licence\nremove --yes /jobs/old",
	"elect": `elect --data 10.1.2.3:8080 /services/billing -- ./billing
elect --again /services/billing -- ./billing
elect --again --health 'curl -fs localhost:8080/health' /services/billing -- ./billing
elect --transfer 10.1.2.4:8080 /services/billing
elect --who /services/billing`,
	"barrier set":       `barrier set /maintenance`,
	"barrier open":      `barrier open /maintenance`,
	"barrier wait":      `barrier wait --timeout 10m /maintenance`,
	"doublebarrier":     `doublebarrier -n 4 /batch/nightly -- ./share.sh`,
	"slot":              "slot /ids/gpu 4 -- ./train.sh\nslot --durable \"$(hostname)\" --cooldown 1h /ids/billing 1024 -- ./serve.sh",
	"shards":            "shards --ranges 64 --data 10.1.2.3:8080 /shards/orders -- ./serve.sh\nshards /shards/orders\nshards --plan --without host1 /shards/orders",
	"once":              "once /jobs/migrations v42 -- ./migrate.sh\nonce --at-most-once --keep 24h /jobs/invoices 4711 -- ./send.sh",
	"cron":              "cron /cron/report '*/5 * * * *' -- ./report.sh\ncron --timezone Europe/Berlin --missed skip /cron/backup '30 2 * * *' -- ./backup.sh",
	"queue put":         "queue put /jobs -- one two\nqueue put --priority 5 --together /jobs < urgent.txt",
	"queue take":        `queue take --timeout 10s /jobs`,
	"queue receive":     "queue receive /jobs -- ./work.sh\nqueue receive --dead 5 --backoff 30s /jobs -- ./work.sh",
	"queue len":         `queue len /jobs`,
	"queue peek":        `queue peek --json /jobs`,
	"queue dead":        `queue dead /jobs`,
	"queue bury":        `queue bury --reason 'no such image' /jobs entry-100-0000000007`,
	"queue drop":        `queue drop /jobs entry-100-0000000007`,
	"queue requeue":     "queue requeue /jobs entry-100-0000000007\nqueue requeue --all /jobs",
	"queue acknowledge": "queue acknowledge /jobs entry-100-0000000007\nqueue acknowledge --all /jobs",
	"server":            "server\nserver --addr 127.0.0.1:0 --tick 100ms\nserver --control 127.0.0.1:0  # faults on demand, by HTTP",
	"ui":                "ui\nui --allow-break --listen 127.0.0.1:8080 /locks",
	"exporter":          "exporter /locks /jobs",
	"attend":            "attend --metrics 127.0.0.1:9142\nattend --check  # a health probe",
	"version":           `version --json`,
}

// verbName is how a verb is called, without the program's name.
func verbName(verb *kong.Node) string {
	name := verb.Name
	for above := verb.Parent; above != nil && above.Type == kong.CommandNode; above = above.Parent {
		name = above.Name + " " + name
	}
	return name
}

// examplesOf is the end of a verb's help.
func examplesOf(verb *kong.Node) string {
	lines, found := examples[verbName(verb)]
	if !found {
		return ""
	}
	text := "\nExamples:\n"
	for line := range strings.Lines(lines) {
		text += fmt.Sprintf("  %s %s\n", term.Program, strings.TrimRight(line, "\n"))
	}
	return text
}

// accountOf reads from the command line what the account needs. A wrong command
// line is known as far as it could be read; the rest is read from args, which
// are nil for a correct one.
func accountOf(ctx *kong.Context, args []string) (a term.Account) {
	verb := ctx.Selected()
	if verb == nil {
		return a
	}
	if verb.Parent.Name == "demo" {
		a.Demo = verb.Name
	}
	for _, arg := range verb.Positional {
		switch arg.Name {
		case "path":
			if several, ok := arg.Target.Interface().(conn.NodePaths); ok {
				a.Paths = several.Words()
			} else if arg.Target.Kind() == reflect.String && arg.Target.Len() > 0 {
				a.Paths = []string{arg.Target.String()}
			}
		case "cmd":
			a.Runs = runsAlways(verb) || hasCommand(verb) || slices.ContainsFunc(args, asksToRun)
		}
	}
	return a
}

// runsAlways reports whether a verb that runs commands cannot do without one.
func runsAlways(verb *kong.Node) bool {
	return verb.Name != "elect" && verb.Name != "once" && verb.Name != "slot" && verb.Name != "cron" &&
		verb.Name != "shards"
}

// hasCommand reports whether a command was read for the verb.
func hasCommand(verb *kong.Node) bool {
	line, ok := verb.Target.Addr().Interface().(interface{ Given() bool })
	return ok && line.Given()
}

// shortCommand is -c, also behind other short flags.
var shortCommand = regexp.MustCompile(`^-[a-z]*c`)

// asksToRun reports whether an argument is, or is followed by, a command.
func asksToRun(arg string) bool {
	return arg == "--" || shortCommand.MatchString(arg) || strings.HasPrefix(arg, "--command")
}
