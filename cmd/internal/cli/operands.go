package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
)

// BeforeReset is called by kong when all arguments are read, and before --help
// is obeyed. It refuses options behind the path of a verb that takes more than
// the path. What stands there may be somebody else's data, such as an item or a
// key, which must neither choose the servers nor have help printed in place of
// the work. Data that begin with a dash are written behind --.
func (*verbs) BeforeReset(ctx *kong.Context) error {
	verb := ctx.Selected()
	if slices.Contains(ctx.Args, "--") && slices.ContainsFunc(ctx.Path, isHelp) {
		return errors.New("--help, and what is to be done behind --: write one of them")
	}
	if verb == nil || len(verb.Positional) < 2 || !isPath(verb.Positional[0]) {
		return nil
	}
	read := 0 // positional arguments
	for _, given := range ctx.Path {
		switch {
		case given.Positional != nil:
			read++
		case given.Flag == nil || given.Resolved || read == 0:
		case given.Flag.Tag.Has("inplaceofcmd") && read < len(verb.Positional) && verb.Positional[read].Passthrough:
		default:
			return fmt.Errorf("--%s stands behind the path, where no options are read: write it before the path, "+
				"or -- before it if it is none", given.Flag.Name)
		}
	}
	if read == 1 && slices.Index(ctx.Args, "--") == len(ctx.Args)-1 {
		return errors.New("nothing stands behind --")
	}
	return nil
}

func isHelp(given *kong.Path) bool { return given.Flag != nil && given.Flag.Name == "help" }

func isPath(arg *kong.Positional) bool {
	t := arg.Target.Type()
	return t == reflect.TypeFor[conn.NodePath]() || t == reflect.TypeFor[conn.NodePaths]()
}
