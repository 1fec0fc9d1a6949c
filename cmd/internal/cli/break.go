package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

type breakVerb struct {
	Node string   `help:"Remove this contender, by its node's name or path, instead of the holders. At a queue: take this item, or all of this consumer, back."`
	Yes  bool     `short:"y" help:"Do not ask. Needed where there is no terminal to ask on."`
	Path nodePath `arg:"" predictor:"path" help:"The lock's path."`
}

// Run deletes the nodes of the holders, after asking.
func (v *breakVerb) Run(s *streams, c *connection) error {
	if !v.Yes && !isTerminal(s.in) {
		return usageError("break takes a lock from a holder that may still be at work; " +
			"confirm with --yes, since there is no terminal to ask on")
	}
	var found []contender
	err := c.with(func(ctx context.Context, client *coord.Client) (err error) {
		found, err = targets(ctx, client, v.Path, v.Node)
		return err
	})
	if err != nil {
		return err
	}
	if len(found) > 0 && !v.Yes && !v.confirm(s, found) {
		return exitWith(exitFailed, "nothing was broken")
	}
	broken := []string{}
	err = c.with(func(ctx context.Context, client *coord.Client) error {
		for _, t := range found {
			if err := client.Break(ctx, t.Node); err != nil {
				return err
			}
			broken = append(broken, t.Node)
		}
		return nil
	})
	if err != nil {
		if !s.json {
			fmt.Fprint(s.out, v.told(broken))
		}
		return statusOf(err).with("broken", broken)
	}
	return s.print(map[string]any{"path": v.Path, "broken": broken}, "%s", v.told(broken))
}

func (v *breakVerb) told(broken []string) string {
	if len(broken) == 0 {
		return fmt.Sprintf("nobody holds %s\n", v.Path)
	}
	return fmt.Sprintf("deleted %s\n", strings.Join(broken, "\ndeleted "))
}

// confirm asks the person at the terminal.
func (v *breakVerb) confirm(s *streams, found []contender) bool {
	for _, t := range found {
		fmt.Fprintf(s.err, "%s\n  of %s, age %s, session %s\n", plain(t.Node), t.owner(), t.age(), t.Session)
	}
	fmt.Fprintf(s.err, "Delete? The holder may still be at work, beside the next one. [y/N] ")
	answer, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(s.err) // the end of the input does not end the line
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
