package cli

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// account is what the JSON object of a verb that comes to nothing says beside
// its status and the error, and where it goes.
type account struct {
	paths nodePaths
	demo  string // the name of a demonstration
	runs  bool   // the verb runs a command, which has the standard output
	told  bool   // there is an object already that tells how it went
}

// accountOf reads from the command line what the account needs. A command line
// that is wrong is known as far as it could be read; its arguments, which are
// nil for one that is right, tell the rest.
func accountOf(ctx *kong.Context, args []string) (a account) {
	verb := ctx.Selected()
	if verb == nil {
		return a
	}
	if verb.Parent.Name == "demo" {
		a.demo = verb.Name
	}
	for _, arg := range verb.Positional {
		switch arg.Name {
		case "path":
			if several, ok := arg.Target.Interface().(nodePaths); ok {
				a.paths = several
			} else if arg.Target.Kind() == reflect.String && arg.Target.Len() > 0 {
				a.paths = nodePaths{nodePath(arg.Target.String())}
			}
		case "cmd":
			a.runs = runsAlways(verb) || hasCommand(verb) || slices.ContainsFunc(args, asksToRun)
		}
	}
	return a
}

// runsAlways reports whether a verb that runs commands cannot do without one.
func runsAlways(verb *kong.Node) bool { return verb.Name != "elect" }

// hasCommand reports whether a command was read for the verb.
func hasCommand(verb *kong.Node) bool {
	line, ok := verb.Target.Addr().Interface().(interface{ given() bool })
	return ok && line.given()
}

// shortCommand is -c, also behind other short flags.
var shortCommand = regexp.MustCompile(`^-[a-z]*c`)

// asksToRun reports whether an argument is, or is followed by, a command.
func asksToRun(arg string) bool {
	return arg == "--" || shortCommand.MatchString(arg) || strings.HasPrefix(arg, "--command")
}

// put has the only value under its name, or several as a list under the plural.
func put[T any](object map[string]any, name string, values []T) {
	switch len(values) {
	case 0:
	case 1:
		object[name] = values[0]
	default:
		object[name+"s"] = values
	}
}

// accountFor tells in JSON, if that is wanted, of an end that no object has
// told of. A demonstration does so in any case, as its last line.
func (s *streams) accountFor(status *exitError) {
	if s.told || !s.json && (s.demo == "" || status.code == exitUsage) {
		return
	}
	s.told = true
	object := map[string]any{"status": status.code, "error": briefly(status).Error()}
	put(object, "path", s.paths)
	if s.demo != "" {
		object["demo"], object["ok"] = s.demo, false
	}
	for name, value := range status.fields {
		object[name] = value
	}
	to := s.out
	if s.runs {
		to = s.err
	}
	_ = writeJSON(to, object)
}

// tell writes the object of a verb that runs a command.
func (s *streams) tell(object map[string]any) {
	if s.json {
		s.told = true
		_ = writeJSON(s.err, object)
	}
}
