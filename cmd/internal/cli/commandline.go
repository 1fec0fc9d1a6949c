package cli

import (
	"cmp"
	"fmt"
	"os"
)

// commandLine is the command of a verb that runs one: words that follow, or a
// line for a shell.
type commandLine struct {
	Command string   `short:"c" placeholder:"STRING" help:"Run STRING by the shell ($SHELL, or else /bin/sh) instead of CMD."`
	Cmd     []string `arg:"" optional:"" name:"cmd" passthrough:"partial" help:"The command and its arguments, after --."`
	labelled
}

// given reports whether there is a command at all.
func (l commandLine) given() bool { return len(l.Cmd) > 0 || l.Command != "" }

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

// Validate is called by kong.
func (l commandLine) Validate() error {
	switch argv := l.argv(); {
	case l.Command != "" && len(l.Cmd) > 0:
		return fmt.Errorf("two commands: -c %q, and %q; say one of them", l.Command, l.Cmd)
	case len(argv) == 0 || argv[0] == "":
		return fmt.Errorf("no command to run: write <cmd> after --, as in %[1]s lock /locks/a -- make deploy, "+
			"or a line for the shell, as in %[1]s lock /locks/a -c 'make && make deploy'", program)
	}
	return nil
}
