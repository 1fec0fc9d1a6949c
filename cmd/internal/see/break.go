package see

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

type BreakVerb struct {
	Node string        `help:"Remove this contender, by its node's name or path, instead of the holders. At a queue: take this item, or all of this consumer, back."`
	Yes  bool          `short:"y" help:"Do not ask. Needed where there is no terminal to ask on."`
	Path conn.NodePath `arg:"" predictor:"path" help:"The lock's path."`
}

// Run deletes the nodes of the holders, after asking.
func (v *BreakVerb) Run(s *term.Streams, c *conn.Connection) error {
	if !v.Yes && !term.IsTerminal(s.In) {
		return term.UsageError("break takes a lock from a holder that may still be at work; " +
			"confirm with --yes, since there is no terminal to ask on")
	}
	var found []look.Contender
	err := c.With(func(ctx context.Context, client *coord.Client) (err error) {
		found, err = targets(ctx, client, v.Path, v.Node)
		return err
	})
	if err != nil {
		return err
	}
	if len(found) > 0 && !v.Yes && !v.confirm(s, found) {
		return term.ExitWith(term.ExitFailed, "nothing was broken")
	}
	broken := []string{}
	err = c.With(func(ctx context.Context, client *coord.Client) error {
		for _, t := range found {
			if err := inspect.Break(ctx, client, t.Node); err != nil {
				return err
			}
			broken = append(broken, t.Node)
		}
		return nil
	})
	if err != nil {
		if !s.JSON && len(broken) > 0 {
			fmt.Fprint(s.Out, v.told(broken))
		}
		return term.StatusOf(err).With("broken", broken)
	}
	return s.Print(map[string]any{"path": v.Path, "broken": broken}, "%s", v.told(broken))
}

func (v *BreakVerb) told(broken []string) string {
	if len(broken) == 0 {
		return fmt.Sprintf("nobody holds %s\n", v.Path)
	}
	return fmt.Sprintf("deleted %s\n", strings.Join(broken, "\ndeleted "))
}

// confirm asks the person at the terminal.
func (v *BreakVerb) confirm(s *term.Streams, found []look.Contender) bool {
	for _, t := range found {
		fmt.Fprintf(s.Err, "%s\n  of %s, age %s, session %s\n", term.Plain(t.Node), t.Who(), t.Aged(), t.Session)
	}
	fmt.Fprintf(s.Err, "Delete? The holder may still be at work when the next one begins. [y/N] ")
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(s.Err) // the end of the input does not end the line
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
