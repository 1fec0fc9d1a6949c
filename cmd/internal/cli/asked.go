package cli

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// accountOf reads from the command line what the account needs. A command line
// that is wrong is known as far as it could be read; its arguments, which are
// nil for one that is right, tell the rest.
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
func runsAlways(verb *kong.Node) bool { return verb.Name != "elect" }

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
