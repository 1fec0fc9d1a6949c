package run

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// commandLine is the command of a verb that runs one: words that follow, or a
// line for a shell.
type commandLine struct {
	Command string   `short:"c" placeholder:"STRING" help:"Run STRING by the shell ($SHELL, or else /bin/sh) instead of CMD."`
	Cmd     []string `arg:"" optional:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
	conn.Labelled
}

// Given reports whether there is a command at all.
func (l commandLine) Given() bool { return len(l.Cmd) > 0 || l.Command != "" }

// argv is the command as it is run, without the separator.
func (l commandLine) argv() []string {
	switch {
	case l.Command != "":
		return []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", l.Command}
	case len(l.Cmd) > 0 && l.Cmd[0] == "--":
		return l.Cmd[1:]
	}
	return l.Cmd
}

// inQuotes shows the words of a command.
func inQuotes(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = strconv.Quote(word)
	}
	return strings.Join(shown, " ")
}

// Validate is called by kong.
func (l commandLine) Validate() error {
	switch argv, words := l.argv(), (commandLine{Cmd: l.Cmd}).argv(); {
	case l.Command != "" && len(words) > 0:
		return fmt.Errorf("two commands: %s by -c, and %s behind it; give one of them", strconv.Quote(l.Command), inQuotes(words))
	case len(argv) == 0 || argv[0] == "":
		return fmt.Errorf("no command to run: write <cmd> after --, as in %[1]s lock /locks/a -- make deploy, "+
			"or a line for the shell, as in %[1]s lock /locks/a -c 'make && make deploy'", term.Program)
	}
	return nil
}
