package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	"github.com/muesli/roff"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

type manualVerb struct{}

// Run writes the manual page. The command line of each verb is that of its
// help, on a line of its own.
func (manualVerb) Run(s *term.Streams, app *kong.Kong) error {
	manual := mangokong.NewManPage(1, app.Model)
	for _, part := range []struct{ name, text string }{
		{"Exit status", statuses}, {"Environment", variables(app.Model)}, {"Examples", allExamples(app.Model)}, {"See also", seeAlso},
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

// statuses are those of the verbs that run a command; most others have some of
// them.
var statuses = strings.Join([]string{
	"Of the verbs that run CMD:",
	"CMD's own: CMD ended while the lock was held; 128+n if signal n ended it.",
	fmt.Sprintf("%d: the command line is wrong; nothing was changed.", term.ExitUsage),
	fmt.Sprintf("%d: there was no session with the servers in time (--connect-timeout).", term.ExitUnavailable),
	fmt.Sprintf("%d: with --try, the lock is held by another.", term.ExitBusy),
	fmt.Sprintf("%d: the lock was lost before CMD ended, and CMD was stopped.", term.ExitLost),
	fmt.Sprintf("%d: the turn did not come within --timeout.", term.ExitTimeout),
	fmt.Sprintf("%d: CMD was not run for another reason, which the message says.", term.ExitOwnFault),
	"126, 127: CMD cannot be run; CMD is not found.",
	"128+n: signal n came during the wait.",
	fmt.Sprintf("Of the others: %d, %d, %d and %d as above; %d if the servers refused a request, or the answer is no.",
		term.ExitOK, term.ExitUsage, term.ExitUnavailable, term.ExitTimeout, term.ExitFailed),
}, "\n\n")

// variables are those that stand for flags, and those that CMD gets.
func variables(app *kong.Application) string {
	text := ""
	for _, flag := range app.Flags {
		for _, name := range flag.Envs {
			text += fmt.Sprintf("%s: --%s. %s\n\n", name, flag.Name, flag.Help)
		}
	}
	return text + "CMD has COORD_PATH, COORD_NODE, COORD_TOKEN (the fencing token), COORD_SINCE and COORD_HELD (the nodes of all " +
		"locks that it runs under); with several paths COORD_PATH_1 and so on."
}

// allExamples are those of the verbs' helps.
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
	"command.md and running.md, in the folder doc/zkcoord of the installation: the reference, and how CMD runs under a lock."
