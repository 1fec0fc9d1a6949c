package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// referenceVerb writes docs/command.md from what the parser knows.
type referenceVerb struct{}

// Run writes a section for each verb. Flags that several verbs have stand once,
// before the verbs.
func (referenceVerb) Run(s *term.Streams, app *kong.Kong) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# zkcoord, the reference\n\n<!-- Written by the program: begin. -->\n\n%s\n\n",
		strings.TrimSpace(app.Model.Help))
	b.WriteString(
		"[running.md](running.md) explains how CMD runs under a lock, and has its variables; [looking.md](looking.md) what the other\n" +
			"verbs show and do; [troubleshooting.md](troubleshooting.md#exit-statuses) the exit statuses that verbs share, and messages.\n\n")
	fmt.Fprintf(&b, "## Flags of every verb\n\n%s\n", flagList(app.Model.Flags))
	shared := sharedFlags(app.Model)
	fmt.Fprintf(&b, "## Flags of several verbs\n\n%s\n", flagList(shared))
	for _, verb := range app.Model.Leaves(true) {
		describe(&b, verb, shared)
	}
	b.WriteString("<!-- Written by the program: end. -->\n")
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}

func describe(b *strings.Builder, verb *kong.Node, shared []*kong.Flag) {
	fmt.Fprintf(b, "## %s\n\n```usage\n%s %s\n```\n\n", verbName(verb), term.Program, synopsis(verb))
	fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(verb.Help+"\n\n"+withoutUsual(verb.Detail)))
	own := slices.DeleteFunc(slices.Clone(verb.Flags), func(f *kong.Flag) bool { return hasFlag(shared, f) })
	if table := flagList(own); table != "" {
		b.WriteString(table + "\n")
	}
	var others []string
	for _, f := range verb.Flags {
		if hasFlag(shared, f) {
			others = append(others, "`--"+f.Name+"`")
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(b, "[Also](#flags-of-several-verbs): %s.\n\n", strings.Join(others, ", "))
	}
	lines, found := examples[verbName(verb)]
	if !found {
		return
	}
	b.WriteString("```sh elsewhere\n")
	for line := range strings.Lines(lines) {
		fmt.Fprintf(b, "%s %s\n", term.Program, strings.TrimRight(line, "\n"))
	}
	b.WriteString("```\n\n")
}

// usual are the exit statuses that most verbs have; docs/troubleshooting.md
// explains them once.
var usual = regexp.MustCompile("; (128\\+n if signal n ended it|126 or 127 if (it|CMD) cannot be run|" +
	"69 no session with the servers|64 usage|124 [^;.]+|125 if something else (kept CMD from being run|went wrong))")

// withoutUsual leaves the usual statuses out of a verb's help.
func withoutUsual(detail string) string { return usual.ReplaceAllString(detail, "") }

// sharedFlags are the flags that several verbs have with the same words.
func sharedFlags(app *kong.Application) (shared []*kong.Flag) {
	const several = 2
	verbs := app.Leaves(true)
	for _, verb := range verbs {
		for _, f := range verb.Flags {
			users := 0
			for _, other := range verbs {
				if hasFlag(other.Flags, f) {
					users++
				}
			}
			if users >= several && !hasFlag(shared, f) {
				shared = append(shared, f)
			}
		}
	}
	return shared
}

// hasFlag reports whether there is a flag of that name and with the same words.
func hasFlag(flags []*kong.Flag, f *kong.Flag) bool {
	return slices.ContainsFunc(flags, func(o *kong.Flag) bool { return o.Name == f.Name && o.Help == f.Help })
}

// flagList lists flags; it is empty without any.
func flagList(flags []*kong.Flag) string {
	var b strings.Builder
	for _, f := range flags {
		if f.Name == "help" || f.Hidden {
			continue
		}
		name := "`" + strings.TrimSpace(f.String()) + "`"
		for _, env := range f.Envs {
			name += ", `" + env + "`"
		}
		fmt.Fprintf(&b, "- %s: %s\n", name, f.Help)
	}
	return b.String()
}
