package see

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type RemoveVerb struct {
	Yes  bool          `short:"y" help:"Do not ask. Needed without a terminal."`
	Path conn.NodePath `arg:"" predictor:"path" help:"The path of a semaphore, a double barrier, a queue, a ledger of once, a schedule, slots or shards."`
}

// Help returns what does not fit into the list of options.
func (*RemoveVerb) Help() string {
	return `What is left is a semaphore's limit, an empty queue, the records of once and cron, the plan of shards. The request is refused while anybody is there. Locks, elections, groups and opened barriers leave nothing.

Exit status: 0 if it was removed; 75 if anybody is there (the message names them); 1 if you decline, if there is nothing to remove, or if the request was refused; 66 if there is no node at PATH; 69 no session with the servers; 64 usage.`
}

// Run removes what is left, after asking.
func (v *RemoveVerb) Run(s *term.Streams, c *conn.Connection) error {
	if !v.Yes && !term.IsTerminal(s.In) {
		return term.UsageError("remove deletes a limit, a list of keys or the records of jobs for good; " +
			"confirm with --yes, since there is no terminal to ask on")
	}
	var kind string
	err := c.With(func(ctx context.Context, client *coord.Client) (err error) {
		kind, _, err = v.find(ctx, client)
		return err
	})
	if err != nil {
		return err
	}
	if !v.Yes {
		fmt.Fprintf(s.Err, "Delete what is left of %s, of the kind %s? [y/N] ", v.Path, kind)
		if !s.Agrees() {
			return term.ExitWith(term.ExitFailed, "nothing was removed")
		}
	}
	err = c.With(func(ctx context.Context, client *coord.Client) error {
		_, remove, err := v.find(ctx, client)
		if err == nil {
			err = remove(ctx)
		}
		return err
	})
	if errors.Is(err, coord.ErrBusy) {
		return &term.ExitError{Code: term.ExitBusy, Err: err}
	}
	if err != nil {
		return err
	}
	return s.Print(map[string]any{"path": string(v.Path), "removed": kind}, "removed %s, of the kind %s\n", v.Path, kind)
}

// find finds out what is to be removed, and how.
func (v *RemoveVerb) find(ctx context.Context, client *coord.Client) (kind string, remove look.Remover, err error) {
	r, err := look.Examine(ctx, client, "", v.Path)
	switch {
	case err != nil:
		return "", nil, err
	case !r.Exists:
		return "", nil, term.Absent(string(v.Path))
	case r.Closed != nil:
		return "", nil, term.ExitWith(term.ExitFailed,
			"a closed barrier is at %s; \"%s barrier open\" opens it, and leaves nothing", v.Path, term.Program)
	case r.Kind == "":
		return "", nil, term.ExitWith(term.ExitFailed,
			"nothing that %s knows is left at %s: an empty directory goes by itself, and a value or a counter is removed by its program", term.Program, v.Path)
	}
	if remove, err = look.RemoverOf(client, r); err != nil || remove != nil {
		return r.Kind, remove, err
	}
	if len(r.Contenders) > 0 {
		return "", nil, term.ExitWith(term.ExitBusy, "%s is in use, by %s, and leaves nothing when they have gone", v.Path,
			r.Contenders[0].Who())
	}
	return "", nil, term.ExitWith(term.ExitFailed, "%s is of the kind %s, which leaves nothing", v.Path, r.Kind)
}
