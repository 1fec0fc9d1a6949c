package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	shell "github.com/posener/complete"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

type completionVerb struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// completions ask this program, which finds the line so far in COMP_LINE. Where
// it knows nothing, as in CMD, local files are offered.
var completions = map[string]string{
	"bash": `complete -o default -o bashdefault -C {{.}} {{.}}
`,
	"zsh": `#compdef {{.}}
_{{.}}() {
	local -a found
	found=(${(f)"$(COMP_LINE="${(j: :)words[1,CURRENT]}" {{.}})"})
	if (( $#found )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _{{.}} ]]; then _{{.}} "$@"; else compdef _{{.}} {{.}}; fi
`,
	"fish": `function __complete_{{.}}
	set -lx COMP_LINE (string join ' ' -- (commandline -opc) (commandline -ct))
	set -l found ({{.}})
	if set -q found[1]
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c {{.}} -f -a '(__complete_{{.}})'
`,
}

// Run writes what a shell is to read.
func (v completionVerb) Run(s *term.Streams) error {
	return template.Must(template.New("").Parse(completions[v.Shell])).Execute(s.Out, term.Program)
}

// completing answers a shell, if it is one that asks: with the verbs, flags and
// paths that the line so far may go on with.
//
// bash calls with the command's name, the word and the one before it; the
// others without arguments. Any other command line with COMP_LINE in its
// environment is a normal one.
func completing(to io.Writer, args []string) bool {
	if os.Getenv("COMP_LINE") == "" || len(args) > 1 && args[1] != term.Program {
		return false
	}
	parser, err := newParser(&verbs{})
	if err != nil {
		return true
	}
	command, err := kongcompletion.Command(parser, kongcompletion.WithPredictor("path", shell.PredictFunc(pathsOf)))
	if err != nil {
		return true
	}
	knowFlags(command, parser.Model.Flags)
	for _, verb := range []string{"lock", "exporter"} {
		sub := command.Sub[verb]
		sub.Args = shell.PredictFunc(severalPathsOf)
		command.Sub[verb] = sub
	}
	asked := shell.New(term.Program, command)
	asked.Out = to
	return asked.Complete()
}

// knowFlags tells each verb of the flags of every verb, so that their values
// are not taken for the verb's arguments.
func knowFlags(command shell.Command, flags []*kong.Flag) {
	for _, verb := range command.Sub {
		if own, ok := verb.Args.(*kongcompletion.PositionalPredictor); ok {
			for _, flag := range flags {
				if name := "--" + flag.Name; flag.IsBool() {
					own.BoolFlags = append(own.BoolFlags, name)
				} else {
					own.ArgFlags = append(own.ArgFlags, name)
				}
			}
		}
		knowFlags(verb, flags)
	}
}

// completeWithin is how long a shell waits for the servers.
const completeWithin = 2 * time.Second

// connectionFlags are the flags of the connection that a line has so far, with
// their values.
func connectionFlags(app *kong.Application, words []string) (flags []string) {
	for i, word := range words {
		if word == "--" {
			break
		}
		name, _, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		for _, flag := range app.Flags {
			if flag.Group == nil || flag.Group.Key != "connection" || !strings.HasPrefix(word, "--") || flag.Name != name {
				continue
			}
			flags = append(flags, word)
			if !joined && !flag.IsBool() && i+1 < len(words) {
				flags = append(flags, words[i+1])
			}
		}
	}
	return flags
}

// pathsOf are the nodes that a path so far may go on with, if the line or
// ZK_SERVERS says where to look.
func pathsOf(a shell.Args) (paths []string) {
	v := &verbs{}
	parser, err := newParser(v)
	if err != nil {
		return nil
	}
	_, err = parser.Parse(append([]string{"version"}, connectionFlags(parser.Model, a.Completed)...))
	if err != nil || v.ZK == "" {
		return nil
	}
	v.Note = func(string, ...any) {}
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	client, err := v.Open(ctx)
	if err != nil {
		return nil
	}
	defer conn.HangUp(client)
	dir := a.Last[:strings.LastIndexByte(a.Last, '/')+1]
	names, _ := client.Children(ctx, "/"+strings.Trim(dir, "/"))
	for _, name := range names {
		paths = append(paths, "/"+strings.TrimPrefix(dir, "/")+name)
	}
	return paths
}

// severalPathsOf returns the paths of a verb that takes any number, up to its
// command.
func severalPathsOf(a shell.Args) []string {
	if slices.Contains(a.Completed, "--") {
		return nil
	}
	return pathsOf(a)
}
