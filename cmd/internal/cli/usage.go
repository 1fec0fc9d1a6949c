package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// negative is how a number below zero looks on a command line, which is also
// how a flag looks.
var negative = regexp.MustCompile(`^-[0-9.]`)

// joinNegative writes --flag -5 as --flag=-5 where that is what could not be
// read, so that the verb can say what is wrong with the number.
func joinNegative(args []string, err error) (joined []string, ok bool) {
	if !strings.Contains(err.Error(), "(short flag)") {
		return nil, false
	}
	for i := range len(args) - 1 {
		if args[i] == "--" {
			break
		}
		if strings.HasPrefix(args[i], "-") && !strings.Contains(args[i], "=") && negative.MatchString(args[i+1]) {
			joined = append(joined, args[:i]...)
			joined = append(joined, args[i]+"="+args[i+1])
			return append(joined, args[i+2:]...), true
		}
	}
	return nil, false
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
	if at := strings.Index(line, " <"); found && at >= 0 {
		line = line[:at] + " [flags]" + line[at:]
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
	return err
}
