package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/coord"
)

type revokeVerb struct {
	Node       string         `help:"Ask this contender, by its node's name or path, instead of the holders. At a queue: the one that has this item, or is this consumer."`
	Wait       bool           `help:"Wait until it has given up."`
	ForceAfter *time.Duration `placeholder:"D" help:"Wait so long, then take the lock by force. Implies --wait."`
	Timeout    *time.Duration `placeholder:"D" positive:"" help:"Stop waiting after that time, and exit with 124. Implies --wait."`
	Path       nodePath       `arg:"" predictor:"path" help:"The lock's path."`
}

// Run asks, and waits if that is wanted.
func (v *revokeVerb) Run(s *streams, c *connection) error {
	if v.ForceAfter != nil && *v.ForceAfter <= 0 {
		return usageError("--force-after %v: it must be positive; \"%s break\" forces at once", *v.ForceAfter, program)
	}
	return c.with(func(ctx context.Context, client *coord.Client) error {
		targets, err := targets(ctx, client, v.Path, v.Node)
		if err != nil {
			return err
		}
		asked := []string{}
		for _, t := range targets {
			if err := client.Revoke(ctx, t.Node); err != nil {
				return err
			}
			asked = append(asked, t.Node)
			if !s.json {
				fmt.Fprintf(s.out, "asked %s to give up %s\n", t.owner(), plain(t.Node))
			}
		}
		gone, err := v.await(client, asked)
		if err != nil {
			return err
		}
		told := ""
		if len(asked) == 0 {
			told = fmt.Sprintf("nobody holds %s\n", v.Path)
		} else if gone {
			told = "given up\n"
		}
		return s.print(map[string]any{"path": v.Path, "asked": asked, "gone": gone}, "%s", told)
	})
}

// await waits until the nodes are gone, if that is wanted, and reports whether
// they are.
func (v *revokeVerb) await(client *coord.Client, nodes []string) (bool, error) {
	if !v.Wait && v.ForceAfter == nil && v.Timeout == nil {
		return false, nil
	}
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
	for _, node := range nodes {
		waits.Go(func() error {
			err := client.RevokeAndWait(ctx, node, force)
			if errors.Is(err, context.DeadlineExceeded) {
				return exitWith(exitTimeout, "%s has been asked but is still there after %v", node, *v.Timeout)
			}
			return err
		})
	}
	err := waits.Wait()
	return err == nil, err
}

// targets are the contenders to act on: the holders, or what was named. At a
// queue those hold that have an item in hand.
func targets(ctx context.Context, client *coord.Client, path nodePath, node string) (found []contender, err error) {
	r, err := inspect(ctx, client, path)
	switch {
	case err != nil:
		return nil, err
	case r.Queue != nil:
		found = r.Queue.claimants(ctx, client, r, node)
	case node == "":
		found = r.holders()
	default:
		found = slices.DeleteFunc(r.Contenders, func(c contender) bool { return !c.isNamed(r.Path, node) })
	}
	if node != "" && len(found) == 0 {
		return nil, exitWith(exitFailed, "there is no contender %s at %s; \"%s inspect\" lists them", node, path, program)
	}
	return found, nil
}

// isNamed reports whether node is the contender's, by its name or path.
func (c contender) isNamed(path, node string) bool { return c.Node == node || c.Node == path+"/"+node }
