package see

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

type BreakVerb struct {
	Node string        `help:"Delete this contender's node, instead of the holders'. At a queue: name an item, or a consumer for all of its items."`
	Yes  bool          `short:"y" help:"Do not ask. Needed without a terminal."`
	Path conn.NodePath `arg:"" predictor:"path" help:"The lock's path."`
}

// Run deletes the nodes of the holders, after asking.
func (v *BreakVerb) Run(s *term.Streams, c *conn.Connection) error {
	if !v.Yes && !term.IsTerminal(s.In) {
		return term.UsageError("break takes a lock from a holder that may still be at work; " +
			"confirm with --yes, since there is no terminal to ask on")
	}
	var found []look.Contender
	d := c.LineDialect()
	err := c.With(func(ctx context.Context, client *coord.Client) (err error) {
		found, err = targets(ctx, client, d, v.Path, v.Node)
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
			deleted, err := inspect.BreakClaim(ctx, client, t.Node, t.Token) // another claim may have the name by now
			if err != nil {
				return err
			}
			if deleted {
				broken = append(broken, t.Node)
			}
		}
		return nil
	})
	if err != nil {
		if !s.JSON && len(broken) > 0 {
			fmt.Fprint(s.Out, v.told(found, broken))
		}
		return term.StatusOf(err).With("broken", broken)
	}
	return s.Print(map[string]any{"path": v.Path, "broken": broken}, "%s", v.told(found, broken))
}

func (v *BreakVerb) told(found []look.Contender, broken []string) string {
	switch {
	case len(found) == 0:
		return fmt.Sprintf("nobody holds %s\n", v.Path)
	case len(broken) == 0:
		return fmt.Sprintf("gone by now, and nothing was deleted: %s\n", term.Plain(found[0].Node))
	}
	var text strings.Builder
	for _, node := range broken {
		fmt.Fprintf(&text, "deleted %s\n", term.Plain(node))
	}
	return text.String()
}

// confirm asks the person at the terminal.
func (v *BreakVerb) confirm(s *term.Streams, found []look.Contender) bool {
	for _, t := range found {
		fmt.Fprintf(s.Err, "%s\n  of %s, age %s, session %s\n", term.Plain(t.Node), t.Who(), t.Aged(), t.Session)
	}
	fmt.Fprintf(s.Err, "Delete? The holder may still be at work when the next one begins. [y/N] ")
	return s.Agrees()
}

type RevokeVerb struct {
	Node       string         `help:"Ask the contender with this node, instead of the holders. At a queue: name an item, or a consumer."`
	Wait       bool           `help:"Wait until all that were asked have given up."`
	ForceAfter *time.Duration `placeholder:"D" help:"After D, take the lock by force. Implies --wait."`
	Timeout    *time.Duration `placeholder:"D" positive:"" help:"Stop waiting after D, and exit with 124. Implies --wait."`
	Path       conn.NodePath  `arg:"" predictor:"path" help:"The lock's path."`
}

// Run asks, and waits if that is wanted.
func (v *RevokeVerb) Run(s *term.Streams, c *conn.Connection) error {
	if v.ForceAfter != nil && *v.ForceAfter <= 0 {
		return term.UsageError("--force-after %v: it must be positive; \"%s break\" forces immediately", *v.ForceAfter,
			term.Program)
	}
	d := c.LineDialect()
	return c.With(func(ctx context.Context, client *coord.Client) error {
		targets, err := targets(ctx, client, d, v.Path, v.Node)
		if err != nil {
			return err
		}
		asked := []string{}
		for _, t := range targets {
			if err := revoke(ctx, client, d, t); err != nil {
				return err
			}
			asked = append(asked, t.Node)
			if !s.JSON {
				fmt.Fprintf(s.Out, "asked %s to give up %s\n", t.Who(), term.Plain(t.Node))
			}
		}
		gone := v.Wait || v.ForceAfter != nil || v.Timeout != nil
		var forced []string
		if gone {
			if forced, err = v.await(client, targets); err != nil {
				return err
			}
		}
		told := ""
		switch {
		case len(asked) == 0:
			told = fmt.Sprintf("nobody holds %s\n", v.Path)
		case len(forced) > 0:
			told = fmt.Sprintf("deleted by force: %s; the former holder may still act\n", term.Plain(strings.Join(forced, ", ")))
		case gone:
			told = "given up\n"
		}
		return s.Print(map[string]any{"path": v.Path, "asked": asked, "gone": gone, "forced": len(forced) > 0}, "%s", told)
	})
}

// revoke asks a contender to give up, in the way of its dialect.
func revoke(ctx context.Context, client *coord.Client, d coord.Dialect, t look.Contender) error {
	switch {
	case t.Kind == look.NodeKind && !inspect.NamesOwner([]byte(t.Owner)):
		return term.ExitWith(term.ExitFailed,
			"%s is not a node of %s: a request written into it may mean something else to its program; \"%s break\" deletes it",
			t.Node, term.Program, term.Program)
	case t.Dialect != string(d):
		d = ""
	}
	return inspect.RevokeIn(ctx, client, d, t.Node)
}

// await waits until the nodes are gone, and returns the ones it deleted by
// force.
func (v *RevokeVerb) await(client *coord.Client, asked []look.Contender) (forced []string, err error) {
	ctx, force := context.Background(), time.Duration(0)
	if v.Timeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *v.Timeout)
		defer cancel()
	}
	if v.ForceAfter != nil {
		force = *v.ForceAfter
	}
	var waits errgroup.Group
	deleted := make([]bool, len(asked))
	for i, t := range asked {
		waits.Go(func() (err error) {
			deleted[i], err = inspect.Await(ctx, client, t.Node, t.Token, force)
			if errors.Is(err, context.DeadlineExceeded) {
				return term.ExitWith(term.ExitTimeout, "%s has been asked but is still there after %v", t.Node, *v.Timeout)
			}
			return err
		})
	}
	err = waits.Wait()
	for i, t := range asked {
		if deleted[i] {
			forced = append(forced, t.Node)
		}
	}
	return forced, err
}

// targets are the contenders to act on: the holders, or the ones that node
// names.
func targets(
	ctx context.Context, client *coord.Client, d coord.Dialect, path conn.NodePath, node string,
) ([]look.Contender, error) {
	r, err := look.Examine(ctx, client, d, path)
	if err != nil {
		return nil, err
	}
	found, err := named(ctx, client, r, node)
	switch {
	case err != nil:
		return nil, err
	case !r.Exists:
		return nil, term.Absent(string(path))
	case node == "":
		found = slices.DeleteFunc(found, func(c look.Contender) bool { return !c.Holds })
		if len(found) == 0 {
			err = heldBelow(ctx, client, d, path)
		}
		return found, err
	case len(found) == 0:
		return nil, term.ExitWith(term.ExitFailed, "there is no contender %s at %s; \"%s inspect\" lists them", node, path,
			term.Program)
	}
	return found, nil
}

// mostBelow is how many nodes below a path heldBelow looks at.
const mostBelow = 10_000

// heldBelow fails if something below a path is held, such as the jobs of a
// ledger: whoever names the path may mean that.
func heldBelow(ctx context.Context, client *coord.Client, d coord.Dialect, path conn.NodePath) error {
	below, err := look.Surveyed{Dialect: d, Most: mostBelow, Path: string(path)}.Look(ctx, client)
	if err != nil {
		return err
	}
	var held []string
	for _, r := range below.Recipes {
		if holders := r.Holders(); len(holders) > 0 && r.Path != string(path) {
			held = append(held, fmt.Sprintf("%s by %s", term.Plain(r.Path), holders[0].Who()))
		}
	}
	if len(held) == 0 {
		return nil
	}
	return term.ExitWith(term.ExitFailed,
		"nobody holds %s itself, and nothing was done; held below it: %s; name one of these paths", path, look.Few(held))
}

// named are the contenders that node names, or all if it is "". At a queue they
// are the consumers that have an item.
func named(ctx context.Context, client *coord.Client, r look.Report, node string) (found []look.Contender, err error) {
	if r.Queue != nil {
		if found, err = r.Queue.Claimants(ctx, r, node); err != nil || r.Kind == look.QueueKind {
			return found, err
		}
	}
	return append(found,
		slices.DeleteFunc(r.Contenders, func(c look.Contender) bool { return node != "" && !c.IsNamed(node) })...), nil
}
