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

type RevokeVerb struct {
	Node       string         `help:"Ask this contender, by its node's name or path, instead of the holders. At a queue: the one that has this item, or is this consumer."`
	Wait       bool           `help:"Wait until it has given up."`
	ForceAfter *time.Duration `placeholder:"D" help:"Wait so long, then take the lock by force. Implies --wait."`
	Timeout    *time.Duration `placeholder:"D" positive:"" help:"Stop waiting after that time, and exit with 124. Implies --wait."`
	Path       conn.NodePath  `arg:"" predictor:"path" help:"The lock's path."`
}

// Run asks, and waits if that is wanted.
func (v *RevokeVerb) Run(s *term.Streams, c *conn.Connection) error {
	if v.ForceAfter != nil && *v.ForceAfter <= 0 {
		return term.UsageError("--force-after %v: it must be positive; \"%s break\" forces immediately", *v.ForceAfter, term.Program)
	}
	return c.With(func(ctx context.Context, client *coord.Client) error {
		targets, err := targets(ctx, client, v.Path, v.Node)
		if err != nil {
			return err
		}
		asked := []string{}
		for _, t := range targets {
			if err := inspect.Revoke(ctx, client, t.Node); err != nil {
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

// targets are the contenders to act on: the holders, or what was named. At a
// queue those hold that have an item in hand.
func targets(ctx context.Context, client *coord.Client, path conn.NodePath, node string) (found []look.Contender, err error) {
	r, err := look.Examine(ctx, client, path)
	switch {
	case err != nil:
		return nil, err
	case r.Queue != nil:
		if found, err = r.Queue.Claimants(ctx, r, node); err != nil {
			return nil, err
		}
	case node == "":
		found = r.Holders()
	default:
		found = slices.DeleteFunc(r.Contenders, func(c look.Contender) bool { return !c.IsNamed(r.Path, node) })
	}
	if node != "" && len(found) == 0 {
		return nil, term.ExitWith(term.ExitFailed, "there is no contender %s at %s; \"%s inspect\" lists them", node, path, term.Program)
	}
	return found, nil
}
